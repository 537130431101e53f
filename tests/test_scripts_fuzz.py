"""The fuzzer's readers take their valid files, and its watch sees what goes wrong."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from envbuild.errors import WorldError

if TYPE_CHECKING:
    from types import ModuleType

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


def script(name: str) -> ModuleType:
    """Import a script, once."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


FUZZ: Any = script("fuzz")
READERS: Any = script("fuzz_readers")
NO_ERROR = {"elf", "fatbin", "ld-cache", "record", "metadata", "uv-lock", "pylock", "project"}


@pytest.mark.parametrize("reader", READERS.READERS, ids=lambda reader: reader.name)
def test_every_reader_has_valid_files(reader: Any, tmp_path: Path) -> None:  # noqa: ANN401
    assert reader.seeds
    for valid in reader.seeds:
        if reader.name in NO_ERROR:
            reader.read(valid)
        else:
            watch = FUZZ.Watch(reader=reader, kept=tmp_path)
            watch.read(valid)
            assert watch.escapes == {}


def fail(data: bytes) -> None:
    """Raise what the data says."""
    raise {b"declared": WorldError, b"key": KeyError}[data]("x")


def test_an_undeclared_error_is_kept_once_and_a_declared_one_is_none(tmp_path: Path) -> None:
    reader = READERS.Reader(name="x", read=fail, raises=(WorldError,))
    watch = FUZZ.Watch(reader=reader, kept=tmp_path)
    for data in (b"declared", b"key", b"key"):
        watch.read(data)
    (said,) = watch.escapes.values()
    assert "KeyError" in said
    kept = Path(said.splitlines()[1].strip())
    assert kept.read_bytes() == b"key"
    assert watch.inputs == 3


def test_much_memory_and_time_escape(tmp_path: Path) -> None:
    reader = READERS.Reader(name="x", read=lambda _: sum(range(4_000_000)) + len(b"x" * (1 << 29)))
    watch = FUZZ.Watch(reader=reader, kept=tmp_path, most_seconds=0.02)
    watch.read(b"")
    assert set(watch.escapes) == {"slow", "memory"}


def test_lines_are_changed_by_the_words_of_a_format() -> None:
    (reader,) = (one for one in READERS.READERS if one.name == "uv-lock")
    (valid,) = reader.seeds
    changed = {FUZZ.mutate_lines(valid, reader, seed, most=4096) for seed in range(50)}
    assert len(changed) > 40
    assert max(map(len, changed)) <= 4096
