"""Files of absurd counts, sizes and depths: each costs less than a second and 200 MB."""

from __future__ import annotations

import struct
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING

import pytest
from checkvalues import env
from elfmaker import SASS, Held, fat_binary, make_elf
from spending import spent

from envbuild.core.elf.fatbin import device_code
from envbuild.core.elf.sharedobject import Elf, ElfError
from envbuild.core.installedrequires import marker_environments, parsed
from envbuild.core.link.ldcache import MAGIC, LdCacheError, parse_ld_cache
from envbuild.core.locktexts import read_pylock, read_requirements, read_uv_lock
from envbuild.core.project.manifest import parse_project
from envbuild.core.project.positions import toml_positions
from envbuild.core.project.requirementsfile import BadLine, parse_requirements_file
from envbuild.core.pylock import exported_packages, read_target_lock
from envbuild.core.recordfile import parse_record
from envbuild.core.simplepage import parse_page
from envbuild.core.torchversion import parse_torch_version
from envbuild.core.wheelmetadata import parse_metadata
from envbuild.errors import InputError, WorldError
from envbuild.model.target import Platform, Target
from envbuild.model.wheel import IndexPage, PageKind

if TYPE_CHECKING:
    from envbuild.model.wheel import WheelFile

HERE = marker_environments(env())
TARGET = Target(name="t", python="3.11", platform=Platform.LINUX_X86_64)
PAGE = IndexPage(kind=PageKind.PYTORCH, key="cu128", name="p", url="https://h.org/whl/cu128")
DIGITS = "9" * 5000
TAGS = ".".join(f"t{number}" for number in range(2000))
NESTED = {
    "10 MB of [": "a = " + "[" * 10_000_000,
    "tables in one another": "a = " + "{a=" * 1_000_000,
    "digits": "a = " + "9" * 10_000_000,
    "a dotted key": "a." * 500_000 + "b = 1",
}


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_toml_without_end(text: str) -> None:
    with spent(), pytest.raises(WorldError, match=r"`uv\.lock` is not readable"):
        read_uv_lock("uv.lock", f"version = 1\n{text}", HERE)
    with spent(), pytest.raises(InputError, match=r"`pylock\.toml` is no valid lock file"):
        read_pylock("pylock.toml", text, HERE)
    with spent(), pytest.raises(InputError, match=r"pyproject\.toml:1: found invalid TOML"):
        parse_project(text)


@pytest.mark.parametrize(
    "text",
    [
        *NESTED.values(),
        " " * 1_000_000,
        'a = "' + "x" * 1_000_000 + '"',
        'a = """' + "x" * 1_000_000,
        'a = "' + "\\" * 500_000,
        "[" + "a." * 100_000 + "a]",
        "".join(f"[{'a.' * depth}a]\n" for depth in range(700)),
    ],
    ids=lambda text: f"{text[:8]} {len(text)}",
)
def test_positions_of_toml(text: str) -> None:
    with spent():
        toml_positions(text)


PYLOCK = """\
lock-version = "1.0"
created-by = "x"
[[packages]]
name = "a"
{more}
"""
SHA = f'hashes = {{ sha256 = "{"ab" * 32}" }}'


@pytest.mark.parametrize(
    "name", [f"a-{DIGITS}-py3-none-any.whl", f"a-1-{TAGS}-{TAGS}-any.whl", "a-1.s-py3-none-any.whl"]
)
@pytest.mark.parametrize("kind", ["wheels = [{}]", "archive = {}"])
def test_names_of_wheels_in_locks(name: str, kind: str) -> None:
    file = f'{{ url = "https://h.org/{name}", {SHA} }}'
    version = 'version = "1"\n' if "wheels" in kind else ""
    text = PYLOCK.format(more=version + kind.format(file))
    for read in (
        lambda: read_pylock("pylock.toml", text, HERE),
        lambda: read_target_lock(text, path="pylock.toml"),
        lambda: exported_packages(text, TARGET),
        lambda: read_requirements("r.txt", f"a @ https://h.org/{name}\n", HERE),
    ):
        with spent(), suppress(InputError, WorldError):
            read()


def test_a_name_that_no_wheel_can_have_is_said() -> None:
    text = PYLOCK.format(
        more=f'archive = {{ url = "https://h.org/a-1.s-py3-none-any.whl", {SHA} }}'
    )
    (package,) = read_pylock("pylock.toml", text, HERE).packages
    assert package.version == ""
    with pytest.raises(InputError, match="no lock file of envbuild"):
        read_target_lock(text, path="pylock.toml")
    with pytest.raises(WorldError, match=r"`uv export` gave what cannot be locked: .*a-1\.s-py3"):
        exported_packages(text, TARGET)


@pytest.mark.parametrize("name", [f"a-{DIGITS}-py3-none-any.whl", f"a-1-{TAGS}-{TAGS}-any.whl"])
def test_names_of_wheels_in_requirements_and_on_pages(name: str) -> None:
    with spent():
        (entry,) = parse_requirements_file("r.txt", f"https://h.org/{name}")
        assert isinstance(entry, BadLine)
    with spent():
        assert page(f'<a href="{name}">x</a><a href="b-1-py3-none-any.whl">b</a>')[0].project == "b"


def page(body: str) -> tuple[WheelFile, ...]:
    return parse_page(
        body.encode(), content_type="text/html", base_url="https://h.org/", page=PAGE, project=None
    )


@pytest.mark.parametrize("piece", ["<", "<a ", "<a href=", "<!--", "<![CDATA[", "<!DOCTYPE ", "<?"])
def test_tags_that_never_end(piece: str) -> None:
    with spent(), pytest.raises(WorldError, match="is cut off"):
        page(piece * (2_000_000 // len(piece)))


@pytest.mark.parametrize(
    "text", ["a; " + "(" * 100_000, "a==" + DIGITS, "a" + " " * 1_000_000 + "b", "\\\n" * 500_000]
)
def test_requirements(text: str) -> None:
    with spent():
        parse_requirements_file("r.txt", text)
        read_requirements("r.txt", text, HERE)
        parsed(text)


@pytest.mark.parametrize(
    "data",
    [
        b"a" * 10_000_000,
        b'"' * 1_000_000,
        b'"a' + b"b\n" * 100_000,
        b"../" * 3_000_000,
        b"a,," + b"9" * 10_000_000,
        b'"' + b"a," * 1_000_000 + b'"',
    ],
    ids=lambda data: f"{data[:4]!r}",
)
def test_lines_of_records(data: bytes) -> None:
    with spent():
        found = parse_record(BytesIO(data), site="/venv/site", prefix="/venv")
    assert len(found.refused) <= 20


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Type: message/rfc822\n\n" * 2000,
        b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\n" * 20_000,
        b"Content-Type: multipart/mixed; boundary=" + b'"' * 1_000_000,
        b'Content-Type: multipart/mixed; boundary="' + b"\\" * 1_000_000,
        b"Content-Type: " + b"a;" * 500_000,
        b"Name: a" + b"\n b" * 300_000,
        b"Name: " + b" " * 1_000_000,
        b"Keywords: " + b"," * 1_000_000,
        b"Name: " + b"=?utf-8?q?a?= " * 50_000,
        b"Name: \xe9" * 300_000,
        bytes(1_000_000),
    ],
    ids=lambda data: f"{data[:44]!r}",
)
def test_metadata(data: bytes) -> None:
    with spent(), suppress(WorldError):
        parse_metadata(data)


@pytest.mark.parametrize("piece", ["__version__: ", "__version__ ", "cuda: x\n", "cuda : =''\n"])
def test_versions_of_torch(piece: str) -> None:
    with spent(), pytest.raises(WorldError):
        parse_torch_version(piece * (1_000_000 // len(piece)))


class Vast(Held):
    """A file that says it has a tebibyte, of which all but the beginning are zeros."""

    @property
    def size(self) -> int:
        return 1 << 40

    def read(self, offset: int, length: int) -> bytes:
        return self.data[offset : offset + length].ljust(length, b"\0")


def counted(data: bytes, **fields: tuple[int, str, int]) -> bytes:
    """Return an ELF file with fields of its head, (offset, form, value), replaced."""
    changed = bytearray(data)
    for at, form, value in fields.values():
        struct.pack_into(form, changed, at, value)
    return bytes(changed)


OBJECT = make_elf(soname="a.so", defines=("b", "c@@V1"), wants=("d@V2=e.so",), needed=("e.so",))
CODE = make_elf(sections={".nv_fatbin": fat_binary(*[(SASS, 90, 0)] * 3)})
HEADS = {
    "segments": {"count": (56, "<H", 0xFFFF)},
    "segments of no size": {"size": (54, "<H", 0), "count": (56, "<H", 0xFFFF)},
    "sections": {"count": (60, "<H", 0xFFFF)},
    "sections counted in the first": {"count": (60, "<H", 0), "names": (62, "<H", 0xFFFF)},
    "names of sections": {"names": (62, "<H", 0xFFFE)},
    "sections far away": {"at": (40, "<Q", 1 << 39)},
}


@pytest.mark.parametrize("fields", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("held", [Held, Vast])
def test_counts_in_the_heads_of_objects(
    fields: dict[str, tuple[int, str, int]], held: type[Held]
) -> None:
    with spent(), suppress(ElfError):
        touch(held(counted(OBJECT, **fields)))
    with spent(), suppress(ElfError):
        device_code(held(counted(CODE, **fields)))


def touch(data: Held) -> None:
    one = Elf(data)
    one.undefined()
    one.needs()
    one.definitions()
    one.names()
    one.defines(b"b", "V1")


@pytest.mark.parametrize("value", [0xFFFF, 1 << 20, 0x7FFFFFFF, 0xFFFFFFFF])
@pytest.mark.parametrize("held", [Held, Vast])
def test_every_word_of_an_object_as_a_count(value: int, held: type[Held]) -> None:
    with spent(seconds=10):  # of some 500 files together
        for at in range(16, len(OBJECT) - 4, 4):
            with suppress(ElfError):
                touch(held(counted(OBJECT, word=(at, "<I", value))))


def test_counts_of_the_cache_of_the_loader() -> None:
    head = struct.pack("<20sIIB3sI12x", MAGIC, 0xFFFFFFFF, 0, 2, b"", 0)
    with spent(), pytest.raises(LdCacheError, match="cut short"):
        parse_ld_cache(head + bytes(1_000_000), machine="x86_64")
