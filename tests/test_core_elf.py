"""The reader of ELF files, over files made byte by byte and by a compiler."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from elfmaker import AARCH64, Held, gnu_hash, make_elf, sysv_hash
from fuzzing import FUZZ, mutated
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.elf import hashtable as elfhash
from envbuild.core.elf.header import parse_kind
from envbuild.core.elf.pieces import TABLE_LIMIT, UnreadElfError, Window
from envbuild.core.elf.sharedobject import Elf, ElfError

RICH = {
    "soname": "liba.so.1",
    "needed": ("libc.so.6", "libb.so"),
    "defines": ("ncclSend", "pncclSend", "new@@V2", "new@V1", "old@V1", "?faint"),
    "wants": ("printf@GLIBC_2.2.5=libc.so.6", "strlen@GLIBC_2.38=libc.so.6", "?maybe", "plain"),
}
HASHES = ("gnu", "sysv", "both")


def elf(**parts: object) -> Elf:
    """Make a file and read it."""
    return Elf(Held(make_elf(**parts)))  # type: ignore[arg-type]


def touch(data: bytes) -> None:
    """Ask for everything that a file can be asked for."""
    one = Elf(Held(data))
    assert one.machine in {"x86_64", "aarch64"}
    wanted = one.undefined()
    one.needs()
    one.definitions()
    one.names()
    for name in (b"ncclSend", b"new", b"absent", *(symbol.name for symbol in wanted[:4])):
        one.defines(name)
        one.defines(name, "V1")


@pytest.mark.parametrize("patched", [False, True])
@pytest.mark.parametrize("hashes", HASHES)
def test_everything_is_read(hashes: str, *, patched: bool) -> None:
    one = elf(**RICH, hashes=hashes, patched=patched, rpath="$ORIGIN")
    assert one.machine == "x86_64"
    assert one.needed == ("libc.so.6", "libb.so")
    assert one.soname == "liba.so.1"
    assert (one.dynamic.rpath, one.dynamic.runpath) == ("$ORIGIN", None)
    assert [(wanted.name, wanted.weak) for wanted in one.undefined()] == [
        (b"printf", False),
        (b"strlen", False),
        (b"maybe", True),
        (b"plain", False),
    ]
    assert [(need.library, need.version) for need in one.needs()] == [
        ("libc.so.6", "GLIBC_2.2.5"),
        ("libc.so.6", "GLIBC_2.38"),
    ]
    assert set(one.definitions().values()) == {"V1", "V2"}


def test_a_needed_version_is_tied_to_its_symbols() -> None:
    one = elf(**RICH)
    versions = {need.index: need.version for need in one.needs()}
    found = {wanted.name: versions.get(wanted.version) for wanted in one.undefined()}
    assert found == {
        b"printf": "GLIBC_2.2.5",
        b"strlen": "GLIBC_2.38",
        b"maybe": None,
        b"plain": None,
    }


@pytest.mark.parametrize("hashes", HASHES)
def test_exactly_what_is_defined(hashes: str) -> None:
    one = elf(**RICH, hashes=hashes)
    assert one.defines(b"ncclSend")
    assert one.defines(b"faint"), "a weak definition counts"
    assert not one.defines(b"maybe"), "an undefined symbol is no definition"
    assert not one.defines(b"ncclSen")
    assert not one.defines(b"liba.so.1")


@pytest.mark.parametrize("hashes", HASHES)
def test_versions_of_definitions(hashes: str) -> None:
    one = elf(**RICH, hashes=hashes)
    assert one.defines(b"new", "V2")
    assert one.defines(b"new", "V1")
    assert one.defines(b"old", "V1")
    assert not one.defines(b"old", "V2")
    assert not one.defines(b"new", "V3")
    assert one.defines(b"new"), "a reference without version takes the default"


def test_a_hidden_version_is_not_for_references_without_one() -> None:
    one = elf(defines=("gone@V2", "there@@V2"), versions=("V1", "V2"))
    assert one.defines(b"there")
    assert not one.defines(b"gone")
    assert one.defines(b"gone", "V2")


def test_an_unversioned_symbol_satisfies_a_versioned_reference() -> None:
    assert elf(defines=("free", "bound@@V1")).defines(b"free", "V9")
    assert elf(defines=("free",)).defines(b"free", "V9"), "a file without any versions"


def test_tail_merged_names_are_found_exactly_and_not_by_the_quick_look() -> None:
    one = elf(defines=("pncclAllReduce", "ncclAllReduce"), merge=True)
    plain = elf(defines=("pncclAllReduce",), merge=True)
    assert b"ncclAllReduce" not in one.names()
    assert one.defines(b"ncclAllReduce")
    assert not plain.defines(b"ncclAllReduce"), "the tail of another name is no symbol"


def test_the_quick_look_leaves_out_what_is_wanted() -> None:
    names = elf(defines=("mine",), wants=("theirs", "?faint")).names()
    assert b"mine" in names
    assert not {b"theirs", b"faint"} & names


def test_padding_behind_the_strings_is_harmless() -> None:
    one = elf(**RICH, padding=64)
    assert one.soname == "liba.so.1"
    assert one.defines(b"old", "V1")


@pytest.mark.parametrize("hashes", HASHES)
def test_a_file_that_exports_nothing_still_tells_what_it_wants(hashes: str) -> None:
    one = elf(wants=("alpha", "beta", "gamma"), hashes=hashes)
    assert [wanted.name for wanted in one.undefined()] == [b"alpha", b"beta", b"gamma"]
    assert not one.defines(b"alpha")


def test_without_section_headers_the_symbols_are_counted_all_the_same() -> None:
    data = bytearray(make_elf(**RICH))  # type: ignore[arg-type]
    data[40:48] = bytes(8)  # e_shoff
    assert len(Elf(Held(bytes(data))).undefined()) == 4


def test_aarch64_is_read() -> None:
    assert elf(machine=AARCH64, soname="x.so").machine == "aarch64"


def test_release_drops_and_reads_again() -> None:
    one = elf(**RICH)
    before = one.undefined()
    one.release()
    assert one.undefined() == before
    assert one.defines(b"old", "V1")


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        (4, b"\x01", "32-bit little-endian x86_64"),
        (5, b"\x02", "64-bit big-endian machine 15872"),
        (18, struct.pack("<H", 243), "64-bit little-endian riscv64"),
        (18, struct.pack("<H", 999), "64-bit little-endian machine 999"),
    ],
)
def test_other_machines_are_named(at: int, value: bytes, said: str) -> None:
    data = bytearray(make_elf(soname="x.so"))
    data[at : at + len(value)] = value
    assert str(parse_kind(Held(bytes(data)))) == said
    with pytest.raises(ElfError, match=f"the file is {said}, wanted"):
        Elf(Held(bytes(data)))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the file is empty"),
        (b"/* GNU ld script */ INPUT(libx.a)", "no ELF header"),
        (b"version https://git-lfs.github.com/spec/v1\n", "no ELF header"),
        (b"\x7fELF\x02\x01", "cut short"),
    ],
)
def test_what_is_no_elf_file(data: bytes, said: str) -> None:
    with pytest.raises(ElfError, match=said):
        Elf(Held(data))


def test_a_file_cut_short_is_noticed_before_its_tables_are_read() -> None:
    data = make_elf(**RICH, patched=True)  # type: ignore[arg-type]
    with pytest.raises(ElfError, match="the file ends at 700 of"):
        Elf(Held(data[:700]))


@pytest.mark.parametrize("kept", [100, 700])
def test_how_long_a_file_should_be_is_told_from_its_section_headers(kept: int) -> None:
    data = make_elf(**RICH, sections={".nv_fatbin": bytes(5000)})  # type: ignore[arg-type]
    with pytest.raises(ElfError, match=f"the file ends at {kept} of {len(data)} bytes"):
        Elf(Held(data[:kept]))


def test_section_headers_that_are_cut_off_do_no_harm() -> None:
    data = make_elf(**RICH, sections={".nv_fatbin": bytes(5000)})  # type: ignore[arg-type]
    assert Elf(Held(data[:-10])).soname == Elf(Held(data)).soname


def test_more_entries_than_are_read_are_no_fault_of_the_file() -> None:
    data = bytearray(make_elf(soname="x.so"))
    at = data.index(struct.pack("<II", 2, 6), 64)  # PT_DYNAMIC
    data[at + 32 : at + 40] = struct.pack("<Q", 65537 * 16)
    with pytest.raises(UnreadElfError, match="more than 65536 entries"):
        Elf(Held(bytes(data) + bytes(65537 * 16)))


def test_more_symbols_than_are_read_are_no_fault_of_the_file() -> None:
    data = bytearray(make_elf(defines=("one",), hashes="sysv"))
    at = data.index(struct.pack("<4I", 1, 2, 1, 0))
    data[at + 4 : at + 8] = struct.pack("<I", 1_000_001)
    with pytest.raises(UnreadElfError, match="holds 1000001 symbols, at most 1000000 are read"):
        Elf(Held(bytes(data) + bytes(1_000_001 * 24))).undefined()


def test_a_name_that_is_not_utf8() -> None:
    with pytest.raises(ElfError, match="the SONAME is not UTF-8"):
        elf(soname="lib\udcff.so")


def test_a_cycle_in_a_hash_chain_ends() -> None:
    data = bytearray(make_elf(defines=("one", "two"), hashes="sysv"))
    table = struct.pack("<6I", 1, 3, 2, 0, 0, 1)  # one bucket: 2, then 1, then the end
    at = data.index(table)
    assert not Elf(Held(bytes(data))).defines(b"absent")
    data[at : at + 24] = struct.pack("<6I", 1, 3, 2, 0, 2, 1)
    with pytest.raises(ElfError, match="is a cycle"):
        Elf(Held(bytes(data))).defines(b"absent")


def test_tables_of_absurd_size_are_refused_before_they_are_read() -> None:
    class Huge(Held):
        @property
        def size(self) -> int:
            return 1 << 40

    window = Window(Huge(b""))
    with pytest.raises(ElfError, match="at most 268435456 are read"):
        window.table(0, TABLE_LIMIT + 1, what="symbol table")


def test_a_runpath_of_hundreds_of_folders_as_in_tensorflow() -> None:
    folders = ":".join(f"$ORIGIN/../_solib_local/_U_S_Sthird_Uparty_S{n}" for n in range(500))
    made = Elf(Held(make_elf(soname="libtensorflow_framework.so.2", runpath=folders)))
    assert made.dynamic.runpath == folders
    with pytest.raises(UnreadElfError, match="the SONAME is longer than the 4096 bytes"):
        Elf(Held(make_elf(soname="x" * 5000)))


def test_a_dynamic_section_of_absurd_length_is_refused() -> None:
    data = bytearray(make_elf(soname="x.so"))
    at = data.index(struct.pack("<II", 2, 6), 64)  # PT_DYNAMIC
    data[at + 32 : at + 40] = struct.pack("<Q", 1 << 30)
    with pytest.raises(ElfError, match="the dynamic section lies outside of the file"):
        Elf(Held(bytes(data)))


def test_more_symbols_than_the_file_holds_are_refused() -> None:
    data = bytearray(make_elf(defines=("one",), hashes="sysv"))
    at = data.index(struct.pack("<4I", 1, 2, 1, 0))
    data[at + 4 : at + 8] = struct.pack("<I", 999_999)
    with pytest.raises(ElfError, match="the symbol table lies outside of the file"):
        Elf(Held(bytes(data))).undefined()


def test_hashes_are_those_of_the_specifications() -> None:
    assert elfhash.gnu_hash(b"printf") == 0x156B2BB8
    assert elfhash.sysv_hash(b"GLIBC_2.2.5") == 0x9691A75
    for name in ("", "a", "_ZN3c105ErrorC2ENS_14SourceLocationESs"):
        assert elfhash.gnu_hash(name.encode()) == gnu_hash(name)
        assert elfhash.sysv_hash(name.encode()) == sysv_hash(name)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler here")
@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_what_a_compiler_made(tmp_path: Path, style: str) -> None:
    source, script, out = tmp_path / "a.c", tmp_path / "a.map", tmp_path / "liba.so"
    source.write_text(
        "int printf(const char *, ...); extern int absent(void);\n"
        "extern int faint(void) __attribute__((weak));\n"
        'int mine(void) { return absent() + (faint ? faint() : 0) + printf("x"); }\n'
        "static int hidden(void) { return 1; } int other(void) { return hidden(); }\n",
        encoding="utf-8",
    )
    script.write_text("V1 { global: mine; }; V2 { global: other; } V1;\n", encoding="utf-8")
    flags = ("-shared", "-fPIC", f"-Wl,--hash-style={style}", "-Wl,-soname,liba.so.3")
    path = f"-Wl,-rpath,$ORIGIN/x,--disable-new-dtags,--version-script={script}"
    subprocess.run(["gcc", *flags, path, "-o", out, source], check=True)  # noqa: S607
    one = Elf(Held(out.read_bytes()))
    wanted = {symbol.name: symbol.weak for symbol in one.undefined()}
    assert one.soname == "liba.so.3"
    assert one.dynamic.rpath == "$ORIGIN/x"
    assert "libc.so.6" in one.needed
    assert (wanted[b"absent"], wanted[b"faint"]) == (False, True)
    assert one.defines(b"mine", "V1")
    assert not one.defines(b"mine", "V2")
    assert one.defines(b"other", "V2")
    assert not one.defines(b"hidden")


def test_the_interpreter_itself_defines_the_c_api() -> None:
    one = Elf(Held(Path(sys.executable).read_bytes()))
    assert one.defines(b"Py_Main") or any("libpython" in name for name in one.needed)


@FUZZ
@given(data=st.binary(max_size=400))
def test_random_bytes_only_raise_the_declared_error(data: bytes) -> None:
    for start in (b"", b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\x3e\x00"):
        with suppress(ElfError):
            touch(start + data)


VALID = tuple(
    make_elf(**RICH, hashes=hashes, patched=patched)  # type: ignore[arg-type]
    for hashes in HASHES
    for patched in (False, True)
)


@FUZZ
@given(data=st.sampled_from(VALID).flatmap(mutated))
def test_broken_files_only_raise_the_declared_error(data: bytes) -> None:
    with suppress(ElfError):
        touch(data)
