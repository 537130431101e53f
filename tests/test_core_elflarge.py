"""A file of more names than are held at once, as libtensorflow_cc.so.2 with 87 MB of them."""

from __future__ import annotations

import pytest
from elfmaker import Held, make_elf
from imagemaker import NVIDIA, with_torch

from envbuild.core.elf.sharedobject import Elf, ElfError
from envbuild.core.elf.symbols import LARGE

LONG = f"_Z{'x' * 3000}"
PARTS = {
    "defines": ("ncclSend", "pncclSend", "new@@V2", "old@V1"),
    "wants": ("printf@GLIBC_2.2.5=libc.so.6", "?maybe", LONG),
}


class Counted(Held):
    """A file that keeps how much was read of it at most."""

    most = 0

    def read(self, offset: int, length: int) -> bytes:
        self.most = max(self.most, length)
        return super().read(offset, length)


def test_it_answers_as_a_small_one_does() -> None:
    small = Elf(Held(make_elf(**PARTS)))  # type: ignore[arg-type]
    data = Counted(make_elf(**PARTS, padding=LARGE))  # type: ignore[arg-type]
    large = Elf(data)
    assert (small.is_large, large.is_large) == (False, True)
    assert large.undefined() == small.undefined()
    assert large.undefined()[-1].name == LONG.encode()
    for name in (b"ncclSend", b"new", b"old", b"printf", b"absent"):
        assert large.defines(name) == small.defines(name)
        assert large.defines(name, "V1") == small.defines(name, "V1")
    assert large.names() == set()
    assert data.most < LARGE // 8


def test_a_name_without_an_end_is_an_error() -> None:
    data = make_elf(wants=("plain",), padding=LARGE)
    start = data.index(b"plain\0")
    torn = data[: start + 5] + b"x" * 70_000 + data[start + 70_005 :]
    with pytest.raises(ElfError, match="outside of the string table"):
        Elf(Held(torn)).undefined()


def test_symbols_are_looked_for_in_it() -> None:
    image = with_torch()
    nccl = f"{NVIDIA}/nccl/lib/libnccl.so.2"
    image.add(nccl, defines=("ncclSend", "ncclCommSplit"), padding=LARGE)
    assert image.judge().symbols == ()
    image.add(nccl, defines=("ncclSend",), padding=LARGE)
    assert [one.name for one in image.judge().symbols] == ["ncclCommSplit"]
