"""The GPU code found in shared objects."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from elfmaker import FAMILY, ONLY_THIS, PTX, SASS, ZSTD, Held, fat_binary, make_elf
from fuzzing import FUZZ, mutated
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.elf.fatbin import RELOCATABLE, device_code
from envbuild.core.elf.pieces import ElfError

MANY = fat_binary((SASS, 80, 0), (SASS, 90, ONLY_THIS), (PTX, 90, 0))


def names(section: bytes, *, name: str = ".nv_fatbin") -> tuple[list[str], list[str]] | None:
    """Give the machine code and PTX of a file with one section."""
    code = device_code(Held(make_elf(sections={name: section})))
    return (
        None if code is None else ([one.sm for one in code.sass], [one.compute for one in code.ptx])
    )


def test_machine_code_and_ptx() -> None:
    assert names(MANY) == (["sm_80", "sm_90a"], ["compute_90"])


def test_the_newest_version_of_ptx_is_kept_for_each_capability() -> None:
    section = fat_binary((PTX, 90, 0), isa=(8, 4)) + fat_binary((PTX, 90, 0), isa=(8, 5))
    section += fat_binary((PTX, 120, ONLY_THIS), isa=(9, 0)) + fat_binary((PTX, 75, 0), isa=(0, 0))
    code = device_code(Held(make_elf(sections={".nv_fatbin": section + fat_binary((SASS, 80, 0))})))
    assert code is not None
    found = {one.compute: version for one, version in code.isa}
    assert found == {"compute_90": (8, 5), "compute_120a": (9, 0)}
    assert [one.compute for one in code.ptx] == ["compute_75", "compute_90", "compute_120a"]


def test_suffixes_come_from_the_flags_and_not_from_the_compression() -> None:
    section = fat_binary(
        (SASS, 100, FAMILY | ZSTD), (SASS, 103, ONLY_THIS | ZSTD), (SASS, 120, ZSTD), (PTX, 121, 0)
    )
    assert names(section) == (["sm_100f", "sm_103a", "sm_120"], ["compute_121"])


def test_fat_binaries_follow_each_other_behind_padding() -> None:
    later = fat_binary((SASS, 86, 0))
    assert names(MANY + bytes(8) + later) == (["sm_80", "sm_86", "sm_90a"], ["compute_90"])
    assert names(MANY + bytes(20_000) + later) == (["sm_80", "sm_86", "sm_90a"], ["compute_90"])
    assert names(MANY + bytes(4094) + later) == (["sm_80", "sm_86", "sm_90a"], ["compute_90"])


def test_entries_of_other_kinds_are_passed_over() -> None:
    assert names(fat_binary((8, 75, 0), (SASS, 75, 0))) == (["sm_75"], [])


def test_code_for_a_later_link_is_kept_apart() -> None:
    data = Held(make_elf(sections={RELOCATABLE: fat_binary((PTX, 90, 0))}))
    assert device_code(data) is None
    relocatable = device_code(data, section=RELOCATABLE)
    assert relocatable is not None
    assert [one.compute for one in relocatable.ptx] == ["compute_90"]
    assert relocatable.source == RELOCATABLE


def test_without_the_section_there_is_none() -> None:
    assert device_code(Held(make_elf(soname="x.so"))) is None
    assert names(b"") is None
    assert names(bytes(64)) is None


def test_a_file_without_section_headers_has_none() -> None:
    data = bytearray(make_elf(sections={".nv_fatbin": MANY}))
    data[40:48] = bytes(8)
    assert device_code(Held(bytes(data))) is None


@pytest.mark.parametrize(
    ("section", "said"),
    [
        (MANY[:8] + struct.pack("<Q", 1 << 40) + MANY[16:], "larger than its section"),
        (MANY[:20] + struct.pack("<I", 0) + MANY[24:], "entries of a fat binary are broken"),
        (fat_binary((SASS, 0, 0)), "`sm_0`"),
        (fat_binary((SASS, 0x7FFFFFFF, 0)), "wanted one like `sm_90`"),
    ],
)
def test_broken_code_is_said(section: bytes, said: str) -> None:
    with pytest.raises(ElfError, match=said):
        names(section)


def test_what_is_no_elf_file() -> None:
    with pytest.raises(ElfError, match="no ELF header"):
        device_code(Held(b"#!/bin/sh\n"))


VALID = make_elf(sections={".nv_fatbin": MANY + bytes(24) + MANY, RELOCATABLE: MANY})


@FUZZ
@given(section=st.binary(max_size=300), prefix=st.sampled_from([b"", MANY, MANY[:16], MANY[:80]]))
def test_random_sections_only_raise_the_declared_error(section: bytes, prefix: bytes) -> None:
    with suppress(ElfError):
        names(prefix + section)


@FUZZ
@given(data=mutated(VALID))
def test_broken_files_only_raise_the_declared_error(data: bytes) -> None:
    for section in (".nv_fatbin", RELOCATABLE):
        with suppress(ElfError):
            device_code(Held(data), section=section)
