"""The readers that are fuzzed: what each may raise, and the words of its format."""

from __future__ import annotations

import sys
import sysconfig
from dataclasses import dataclass
from importlib.metadata import distribution
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envbuild.core import distinfo
from envbuild.core.elf.fatbin import LINKED, RELOCATABLE, device_code
from envbuild.core.elf.sharedobject import Elf, ElfError
from envbuild.core.installedrequires import marker_environments, parsed
from envbuild.core.link.ldcache import MAGIC, LdCacheError, parse_ld_cache
from envbuild.core.locktexts import read_pylock, read_requirements, read_uv_lock
from envbuild.core.project.manifest import parse_project, requirement_files_named
from envbuild.core.project.positions import toml_positions
from envbuild.core.project.requirementsfile import parse_requirements_file
from envbuild.core.pylock import exported_packages, read_target_lock
from envbuild.core.pyvenv import parse_pyvenv
from envbuild.core.recordfile import parse_record
from envbuild.core.simplepage import parse_page
from envbuild.core.torchversion import parse_torch_version
from envbuild.core.uvlock import requires_python_in
from envbuild.core.wheelmetadata import parse_metadata
from envbuild.errors import EnvbuildError, InputError, WorldError
from envbuild.model.installed import EnvironmentKind, Installed
from envbuild.model.target import Platform, Target
from envbuild.model.wheel import IndexPage, PageKind

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS))
from elfmaker import AARCH64, PTX, SASS, Held, fat_binary, make_elf  # noqa: E402

SEEDS = TESTS / "data" / "fuzz"
PREFIX, SITE = "/venv", "/venv/lib/python3.11/site-packages"
HERE = marker_environments(
    Installed(
        root="/",
        prefix=PREFIX,
        executable="",
        python="3.11",
        kind=EnvironmentKind.VENV,
        sites=(SITE,),
        distributions=(),
    )
)
TARGET = Target(name="t", python="3.11", platform=Platform.LINUX_X86_64)
PAGE = IndexPage(kind=PageKind.PYTORCH, key="cu128", name="p", url="https://h.org/whl/cu128")
JSON_TYPE = "application/vnd.pypi.simple.v1+json"
_LARGEST_OBJECT = 64 << 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Reader:
    """One reader; ``share`` is its part of all inputs.

    ``words`` make its format; empty for files that are no lines of text. Valid files lie in
    the folder of its name, ``made`` are more of them.
    """

    name: str
    read: Callable[[bytes], object]
    raises: tuple[type[Exception], ...] = ()
    made: tuple[bytes, ...] = ()
    words: tuple[str, ...] = ()
    share: int = 1

    @property
    def seeds(self) -> tuple[bytes, ...]:
        """Valid files of its kind."""
        stored = tuple(path.read_bytes() for path in sorted(SEEDS.glob(f"{self.name}/*")))
        return (*stored, *self.made)


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def _elf(data: bytes) -> None:
    one = Elf(Held(data))
    wanted = one.undefined()
    one.needs()
    one.definitions()
    one.names()
    for name in (b"ncclSend", b"new", b"absent", *(symbol.name for symbol in wanted[:4])):
        one.defines(name)
        one.defines(name, "V1")


def _fatbin(data: bytes) -> None:
    for section in (LINKED, RELOCATABLE):
        device_code(Held(data), section=section)


def _record(data: bytes) -> None:
    for entry in parse_record(BytesIO(data), site=SITE, prefix=PREFIX).entries:
        inside = entry.path[:1] != "/" or entry.path.startswith(f"{PREFIX}/")
        if not inside or ".." in entry.path.split("/"):
            raise AssertionError(f"`{entry.path}` leaves the environment")


def _metadata(data: bytes) -> None:
    for requirement in parse_metadata(data).requires_dist:
        parsed(requirement)


def _uv_lock(data: bytes) -> None:
    requires_python_in(_text(data))
    read_uv_lock("uv.lock", _text(data), HERE, groups=("dev",))


def _pylock(data: bytes) -> None:
    read_pylock("pylock.toml", _text(data), HERE)
    read_target_lock(_text(data), path="pylock.toml")
    exported_packages(_text(data), TARGET)


def _requirements(data: bytes) -> None:
    parse_requirements_file("requirements.txt", _text(data))
    read_requirements("requirements.txt", _text(data), HERE)


def _project(data: bytes) -> None:
    requirement_files_named(_text(data))
    parse_project(_text(data), requirement_files={"r.txt": "torch"})


def _simple_page(data: bytes) -> None:
    base = "https://h.org/whl/cu128/torch/"
    content_type = JSON_TYPE if data[:1] in {b"{", b"["} else "text/html"
    parse_page(data, content_type=content_type, base_url=base, page=PAGE, project=None)


def _distinfo(data: bytes) -> None:
    text = _text(data)
    distinfo.parse_entry_name(text)
    distinfo.parse_conda_name(text)
    distinfo.parse_wheel_tags(text)
    distinfo.parse_installer(text)
    distinfo.parse_requires_txt(text)
    files = distinfo.parse_installed_files(text, info="x.egg-info")
    parse_record(files, site=SITE, prefix=PREFIX)
    distinfo.parse_direct_url(text)


def _small_objects() -> tuple[bytes, ...]:
    """Give the two smallest compiled modules of this Python and its environment."""
    folders = {sysconfig.get_path("platlib"), sysconfig.get_config_var("DESTSHARED") or "/none"}
    paths = (path for folder in sorted(folders) for path in Path(folder).rglob("*.so"))
    found = sorted((path.stat().st_size, str(path)) for path in paths)
    return tuple(Path(path).read_bytes() for size, path in found[:2] if size <= _LARGEST_OBJECT)


def _installed(name: str) -> bytes:
    return (distribution("packaging").read_text(name) or "").encode()[:4096]


def _ld_cache() -> bytes:
    rows = ((0x303, 96, 104, 0, 0, 0), (0x303, 96, 104, 0, 0, 2))
    numbers = (2, 24, 2, 0, 0, 0, 0, *rows[0], *rows[1])
    table = b"".join(number.to_bytes(4, "little") for number in numbers)
    return b"ld.so-1.7.0\0" + MAGIC + table + b"liba.so\0/lib/liba.so\0"


_RICH: dict[str, Any] = {
    "soname": "liba.so.1",
    "needed": ("libc.so.6", "libb.so"),
    "defines": ("ncclSend", "pncclSend", "new@@V2", "new@V1", "old@V1", "?faint"),
    "wants": ("printf@GLIBC_2.2.5=libc.so.6", "?maybe", "plain"),
}
_OBJECTS = (
    *(make_elf(**_RICH, hashes=one) for one in ("gnu", "sysv", "both")),
    make_elf(**_RICH, patched=True, rpath="$ORIGIN"),
    make_elf(machine=AARCH64, wants=("a", "b")),
)
_CODE = fat_binary((SASS, 80, 0), (SASS, 90, 0x100000), (PTX, 90, 0))
_FAT = make_elf(sections={LINKED: _CODE + bytes(24) + _CODE, RELOCATABLE: _CODE})

_LONG = "9" * 4500  # more digits than int() takes
_TOML = (
    *("1", "-1", '""', '"x"', "[]", "{}", "[1]", "{ a = 1 }", '["x"]', "true", "nan", "inf", "1e9"),
    *("2025-05-01", "2025-05-01T00:00:00Z", "07:32:00", '"""', "'''", "[[a]]", "{a=[{a=[", "\\"),
    *('"1!2.3.dev1+x"', "\"python_version < '3'\"", '"https://[x"', f'"{_LONG}"', _LONG, "a.b.c."),
    *("\"extra == 'extra-4-demo-vis'\"", '">=3.8"', '"a-1-1-py3-none-any.whl"', "[" * 400),
)
_PEP508 = (
    *("==", "~=", "===", ">=", "!=", ".*", "; ", " and ", " or ", "extra == 'a'", " @ https://["),
    *("python_full_version", "platform_machine", " in ", " not in ", "[a,b]", "1!2.0.post1", "+x"),
    *(
        _LONG,
        "implementation_version",
        "'",
        '"',
        "(" * 400,
        "\\\n",
        "--hash=sha256:",
        "${X}",
        "-r ",
    ),
)
_HEADERS = (
    *("Name: ", "Version: ", "Requires-Dist: ", "Requires-Python: ", "Content-Type: ", "\n\n"),
    *("multipart/mixed; boundary=a", "message/rfc822", "message/delivery-status", "\n--a\n", "\r"),
    *("charset=", "utf-16", "idna", "=?utf-8?b?", "?=", "Content-Transfer-Encoding: base64", "\n "),
    *("Description: ", "Keywords: ", "Project-URL: ", "Provides-Extra: ", "Import-Name: ", "\0"),
    *("Content-Type: message/rfc822\n\n" * 200, _LONG, "(" * 400, "Dynamic: "),
)
_MARKUP = (
    *(
        "<a href=",
        "<base href=",
        "<!--",
        "-->",
        "<![CDATA[",
        "<!DOCTYPE",
        "<?",
        "&#9;",
        "</",
        ".whl",
    ),
    *("data-requires-python", "#sha256=", "<input type=password>", "https://[", f"&#{_LONG};"),
    *('{"', '"files":', "[" * 400, "null", "1e999", "\\ud800", _LONG, '"url": ', "-1", "file:"),
)
_PLAIN = (
    "=",
    ":",
    "\n",
    "__version__",
    "cuda: ",
    "'",
    '"',
    "None",
    "#",
    "\\",
    "version = ",
    "[",
    "]",
)
_RECORD = ('"', ",", "../", "./", "//", "\0", "sha256=", f"{SITE}/", "é", "\r", _LONG, "a" * 5000)

READERS = (
    Reader(name="elf", read=_elf, raises=(ElfError,), made=(*_OBJECTS, *_small_objects()), share=4),
    Reader(name="fatbin", read=_fatbin, raises=(ElfError,), made=(_FAT, _OBJECTS[0]), share=2),
    Reader(
        name="ld-cache",
        read=lambda data: parse_ld_cache(data, machine="x86_64"),
        raises=(LdCacheError,),
        made=(_ld_cache(),),
    ),
    Reader(
        name="record",
        read=_record,
        raises=(WorldError,),
        made=(_installed("RECORD"),),
        words=_RECORD,
        share=2,
    ),
    Reader(
        name="metadata",
        read=_metadata,
        raises=(WorldError,),
        made=(_installed("METADATA"),),
        words=(*_HEADERS, *_PEP508),
        share=2,
    ),
    Reader(name="uv-lock", read=_uv_lock, raises=(WorldError,), words=_TOML, share=3),
    Reader(name="pylock", read=_pylock, raises=(EnvbuildError,), words=_TOML, share=3),
    Reader(name="project", read=_project, raises=(InputError,), words=(*_TOML, *_PEP508)),
    Reader(name="requirements", read=_requirements, words=_PEP508),
    Reader(name="simple-page", read=_simple_page, raises=(WorldError,), words=_MARKUP, share=2),
    Reader(name="distinfo", read=_distinfo, raises=(WorldError,), words=(*_MARKUP, *_PLAIN)),
    Reader(
        name="torch-version",
        read=lambda data: parse_torch_version(_text(data)),
        raises=(WorldError,),
        words=_PLAIN,
    ),
    Reader(name="pyvenv", read=lambda data: parse_pyvenv(_text(data)), words=_PLAIN),
    Reader(name="toml-positions", read=lambda data: toml_positions(_text(data)), words=_TOML),
)
