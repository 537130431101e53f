"""Find the version of a C or C++ library in its file name or in its bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_GLIBC_NAME = re.compile(r"libc-(2\.\d{1,3})\.so")
_GLIBC_BANNER = re.compile(rb"GNU C Library [^\n\0]{0,100}?version (2\.\d{1,3})\b")
_GLIBC_CONFSTR = re.compile(r"glibc (2\.\d{1,3})\b")
_STDCXX_NAME = re.compile(r"libstdc\+\+\.so\.6\.0\.(\d{1,3})")
_GLIBCXX = re.compile(rb"GLIBCXX_3\.4\.(\d{1,3})\b")


def glibc_of_name(name: str) -> str | None:
    """Return the version in the file name that glibc had up to 2.33 (``libc-2.31.so``)."""
    found = _GLIBC_NAME.fullmatch(name)
    return found[1] if found else None


def glibc_of_bytes(data: bytes) -> str | None:
    """Return the version in the banner that ``libc.so.6`` prints when it is run."""
    found = _GLIBC_BANNER.search(data)
    return found[1].decode() if found else None


def glibc_of_confstr(text: str | None) -> str | None:
    """Return the version in ``CS_GNU_LIBC_VERSION``, None under another C library."""
    found = _GLIBC_CONFSTR.match(text or "")
    return found[1] if found else None


def glibcxx_of_name(name: str) -> str | None:
    """Return the newest GLIBCXX of ``libstdc++.so.6.0.30``: the last numbers are the same."""
    found = _STDCXX_NAME.fullmatch(name)
    return f"3.4.{int(found[1])}" if found else None


def glibcxx_of_chunks(chunks: Iterable[bytes]) -> str | None:
    """Return the newest GLIBCXX symbol version that consecutive pieces of a library name."""
    newest = -1
    tail = b""
    for chunk in chunks:
        numbers = [int(number) for number in _GLIBCXX.findall(tail + chunk)]
        newest = max([newest, *numbers])
        tail = chunk[-16:]
    return f"3.4.{newest}" if newest >= 0 else None
