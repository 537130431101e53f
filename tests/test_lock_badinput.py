"""`envbuild lock` on input that is wrong or impossible: said clearly, and no file is touched."""

from __future__ import annotations

import re
import shutil
import time
from typing import TYPE_CHECKING

import pytest
from index import LocalIndex, local_wheel
from lockrun import assert_clear, run_lock, snapshot, temporary
from lockworld import World, populate, pyproject

from envbuild.core.project.manifest import parse_project
from envbuild.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lockrun import Ended

    from envbuild.catalog.reader import Catalog

GOOD = pyproject("torch", "six<1.17")
CATALOG = ("--source", "catalog")


@pytest.fixture(scope="module")
def rich_index(catalog: Catalog) -> Iterator[LocalIndex]:
    """Serve more than the world: packages that contradict each other or fit old Pythons."""
    with LocalIndex() as index:
        populate(index, catalog)
        index.add_pypi(
            local_wheel("needy", "1.0", requires=["numpy>=2"]),
            local_wheel("spconv-cu120", "2.3.6", "cp311-cp311-manylinux_2_17_x86_64"),
        )
        yield index


@pytest.fixture(scope="module")
def template(
    rich_index: LocalIndex, catalog: Catalog, tmp_path_factory: pytest.TempPathFactory
) -> World:
    """Return a world whose project was locked."""
    folder = tmp_path_factory.mktemp("template")
    root = folder / "project"
    root.mkdir()
    world = World(index=rich_index, root=root, cache=folder / "cache", catalog=catalog)
    world.write(GOOD)
    world.lock()
    return world


@pytest.fixture
def locked(template: World, tmp_path: Path) -> World:
    """Return a copy of the locked project, with the times of its files."""
    root = tmp_path / "project"
    shutil.copytree(template.root, root)
    return World(index=template.index, root=root, cache=template.cache, catalog=template.catalog)


def refused(world: World, code: int, *arguments: str, hint: bool = True) -> Ended:
    """Run the command, and assert that it fails and changes nothing."""
    before = snapshot(world.root)
    ended = run_lock(world, *arguments)
    assert_clear(ended, code, hint=hint)
    assert snapshot(world.root) == before
    assert not list(temporary(world).iterdir())
    return ended


def on_python(text: str, python: str) -> str:
    return text.replace('"3.11"', f'"{python}"').replace("==3.11.*", f"=={python}.*")


WRONG_TYPES = (
    GOOD.replace('python = "3.11"', "python = 3.11")
    .replace('gpus = ["B200"]', 'gpus = "B200"')
    .replace('torch = "2.7.0"', "torch = 2.7")
)

INPUT = {
    "unknown keys": (
        pyproject("torch", more='gpu = ["B200"]\npyhton = "3.11"'),
        ("2 problems", "`gpu`; did you mean `gpus`?", "`pyhton`; did you mean `python`?"),
        "",
    ),
    "wrong types": (
        WRONG_TYPES,
        ("3 problems", ":14: ", "the number `3.11`, wanted a text", "wanted a list of texts"),
        'gpus = ["B200"]',
    ),
    "unknown GPUs": (
        pyproject("torch", gpus=["RTX PRO 200 Blackwell", "H1000"]),
        ("2 problems", "did you mean `RTX PRO 2000 Blackwell`", "did you mean `H100`"),
        "",
    ),
    "an Arm GPU on x86": (
        pyproject("torch", gpus=["Jetson AGX Orin"]),
        ("`Jetson AGX Orin` with platform `linux-x86_64`, wanted `linux-aarch64`",),
        'platform = "linux-aarch64"',
    ),
    "two versions of torch": (
        pyproject("torch==2.7.0", torch="2.8.0"),
        ("found `==2.8.0`", "`torch==2.7.0` (pyproject.toml:5, [project] dependencies)"),
        "remove one of the two",
    ),
    "requires-python": (
        GOOD.replace("==3.11.*", ">=3.12"),
        ("found `3.11`, wanted one that `requires-python", "(line 4) allows"),
        "",
    ),
    "no requires-python": (
        GOOD.replace('requires-python = "==3.11.*"\n', ""),
        ("`project.requires-python` is missing",),
        'requires-python = "==3.11.*"',
    ),
    "an unknown Python": (on_python(GOOD, "3.9"), ("found `3.9`, wanted `3.10`",), ""),
    "no targets": (
        GOOD.partition("[tool.envbuild.targets")[0],
        ("found no target, wanted at least one",),
        "[tool.envbuild.targets.cu128]",
    ),
    "no table": (
        GOOD.partition("[tool.envbuild]")[0],
        ("found no `[tool.envbuild]`",),
        "[tool.envbuild.targets.cu128]",
    ),
    "nothing": ("", ("found no `[tool.envbuild]`",), "add this to `pyproject.toml`"),
    "no TOML": (GOOD + "\n[[[\n", ("invalid TOML",), ""),
    "merge conflict": (f"<<<<<<< HEAD\n{GOOD}", ("pyproject.toml:1: found invalid TOML",), ""),
    "a byte order mark": (f"\ufeff{GOOD}", ("found a byte order mark",), "without BOM"),
    "no requirement": (
        pyproject("torch", "six>>1"),
        ("found `six>>1`, wanted a requirement (PEP 508)",),
        "",
    ),
    "git": (
        pyproject("torch", "gs @ git+https://u:secret@example.org/a/b@main"),
        ("`gs` ([project] dependencies, line 5) taken from git, wanted what a sha256 can pin",),
        'gs = { git = "https://example.org/a/b@COMMIT" }',
    ),
    "a misspelled package": (
        pyproject("torch", "nunpy"),
        ("no index has `nunpy`, which [project] dependencies asks for",),
        "is `nunpy` spelled right?",
    ),
}


@pytest.mark.parametrize(("text", "said", "advised"), INPUT.values(), ids=INPUT)
def test_wrong_input_is_the_users(
    locked: World, text: str, said: tuple[str, ...], advised: str
) -> None:
    locked.write(text)
    ended = refused(locked, 2, hint=bool(advised))
    for fragment in said:
        assert fragment in ended.message
    assert advised in ended.hint
    assert "secret" not in ended.err
    assert "envbuild init" not in ended.err  # there is no such command


def test_a_hint_that_is_a_git_build_is_accepted(locked: World) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    locked.write(pyproject("torch", f"gs @ git+https://example.org/a/b@{commit}"))
    hint = refused(locked, 2).hint
    _, table, line = hint.partition("[tool.envbuild.build]\n")
    locked.write(f"{GOOD}\n{table}{line}\n")
    assert run_lock(locked).code == 0
    assert commit in locked.read("lockfiles/pylock.cu128.toml")


def not_utf_8(path: Path) -> None:
    path.write_bytes(b"[project]\nname = '\xff'\n")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


FILES: dict[str, tuple[str, Callable[[Path], None], int, str]] = {
    "no pyproject": ("pyproject.toml", lambda path: path.unlink(), 2, "has no pyproject.toml"),
    "a folder": ("pyproject.toml", a_folder, 2, "is a folder, wanted a file"),
    "not UTF-8": ("pyproject.toml", not_utf_8, 2, "`pyproject.toml` is no UTF-8 text"),
    "a lock that is not UTF-8": ("uv.lock", not_utf_8, 2, "`uv.lock` is no UTF-8 text"),
    "a lock that is a folder": ("uv.lock", a_folder, 3, "`uv.lock` cannot be read: Is a directory"),
}


@pytest.mark.parametrize(("path", "spoil", "code", "said"), FILES.values(), ids=FILES)
def test_files_that_are_none(
    locked: World, path: str, spoil: Callable[[Path], None], code: int, said: str
) -> None:
    spoil(locked.root / path)
    assert said in refused(locked, code).message


BROKEN = {
    "merge conflict": ("uv.lock", "<<<<<<< HEAD\nversion = 1\n=======\nversion = 1\n>>>>>>> x\n"),
    "newer schema": ("uv.lock", 'version = 2\nrevision = 9\nrequires-python = ">=3.11"\n'),
    "no list of packages": ("uv.lock", "version = 1\npackage = 3\n"),
    "package without name": ("uv.lock", 'version = 1\n[[package]]\nname = 1\nversion = "2"\n'),
    "nothing": ("uv.lock", ""),
    "pylock": ("lockfiles/pylock.cu128.toml", "<<<<<<< HEAD\n"),
    "pylock of others": (
        "lockfiles/pylock.cu128.toml",
        'lock-version = "1.0"\ncreated-by = "x"\npackages = []\n',
    ),
    "pylock with other values": (
        "lockfiles/pylock.cu128.toml",
        (
            'lock-version = "1.0"\ncreated-by = "x"\npackages = []\n'
            "[tool.envbuild]\nincomplete = 3\nbuilds = [{}]\n"
        ),
    ),
    "requirements": ("lockfiles/requirements.cu128.txt", "<<<<<<< HEAD\n"),
}


@pytest.mark.parametrize(("path", "text"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_of_the_lock_is_written_anew(locked: World, path: str, text: str) -> None:
    good = locked.read(path)
    locked.write(text, path)
    ended = run_lock(locked)
    assert ended.code == 0, ended
    assert path in ended.out
    assert locked.read(path) == good
    if path == "uv.lock":
        assert "`uv.lock` is not readable" in ended.err
        assert "it is written anew" in ended.err


def test_a_newer_revision_of_uv_lock_is_read(locked: World) -> None:
    good = locked.read("uv.lock")
    locked.write(good.replace("revision = 3", "revision = 99", 1), "uv.lock")
    assert run_lock(locked).code == 0
    assert locked.read("uv.lock") == good


SEES = "no build of torch fits target `cu128`: "
IMPOSSIBLE = {
    "B200 with CUDA 12.6": (
        pyproject("torch", more='cuda = "12.6"'),
        (),
        ("no code for sm_100", '`cuda = "12.6.*"` excludes CUDA 12.8'),
        '`cuda = "12.8"` gives torch 2.7.0+cu128',
    ),
    "V100 with CUDA 13": (
        pyproject("torch", gpus=["V100"], torch="2.9", more='cuda = "13"'),
        CATALOG,
        ("no code for sm_70", '`cuda = "13.*"` excludes CUDA 12'),
        '`cuda = "12.',
    ),
    "RTX 5090 with torch 2.6": (
        pyproject("torch", gpus=["RTX 5090"], torch="2.6"),
        CATALOG,
        ("torch 2.6.0+cu126 has no code for sm_120", '`torch = "2.6.*"` excludes torch 2.'),
        '`torch = "2.',
    ),
    "spconv on Python 3.14": (
        on_python(pyproject("torch", "spconv", torch="2.9"), "3.14"),
        CATALOG,
        ("spconv-cu126 2.3.8 has wheels for Python 3.9 to 3.13",),
        '`python = "3.13"` gives torch 2.9.1',
    ),
    "spconv-cu120 on Python 3.12": (
        on_python(pyproject("torch", "spconv-cu120==2.3.6", gpus=["RTX 4090"]), "3.12"),
        CATALOG,
        ("spconv-cu120 2.3.6 has wheels for Python 3.9 to 3.11",),
        '`python = "3.11"` gives torch 2.7.0+cu128 with spconv-cu120 2.3.6',
    ),
    "spconv with CUDA 13": (
        pyproject("torch", "spconv", torch="2.9", more='cuda = "13"'),
        CATALOG,
        ("spconv has no wheel for CUDA 13 (newest: spconv-cu126)",),
        '`cuda = "12.9"` gives torch 2.9.1+cu129 with spconv-cu126 2.3.8',
    ),
    "xformers of another torch": (
        pyproject("torch", "xformers==0.0.31", torch="2.8.0"),
        CATALOG,
        ("no release of `xformers==0.0.31` is built for torch 2.8.0",),
        '`torch = "2.7.1"` gives torch 2.7.1+cu128 with xformers 0.0.31',
    ),
    "a driver that is too old": (
        pyproject("torch", more='driver = "525"'),
        (),
        ('torch has no wheel for Python 3.11 on linux-x86_64 within `torch = "2.7.0"`',),
        '`driver = ">=525.60.13"` gives torch 2.7.0+cu128',
    ),
}


@pytest.mark.parametrize(
    ("text", "arguments", "said", "advised"), IMPOSSIBLE.values(), ids=IMPOSSIBLE
)
def test_what_nothing_fits_is_refused(
    locked: World, text: str, arguments: tuple[str, ...], said: tuple[str, ...], advised: str
) -> None:
    locked.write(text)
    ended = refused(locked, 1, *arguments)
    assert ended.message.startswith(SEES)
    for fragment in said:
        assert fragment in ended.message
    assert advised in ended.hint


def test_uvs_reason_is_short(locked: World) -> None:
    locked.write(pyproject("torch", "numpy<2", "needy"))
    ended = refused(locked, 1)
    assert ended.message == (
        "the requirements of target `cu128` contradict each other, whatever torch is taken: all"
        " versions of needy depend on numpy>=2 and your project depends on needy; your project"
        " depends on numpy<2"
    )
    assert ended.hint == "loosen one of the requirements that are named"


def test_two_problems_of_two_targets_come_together(locked: World) -> None:
    more = '[tool.envbuild.targets.other]\npython = "3.1"\ngpus = ["nothing"]'
    ended = refused_text(locked, pyproject("torch", more=more), 2)
    assert ended.message.startswith("2 problems in `pyproject.toml`\n")


def refused_text(world: World, text: str, code: int) -> Ended:
    world.write(text)
    return refused(world, code, hint=False)


APPLIED = {
    "cuda": (pyproject("torch", more='cuda = "12.6"'), ()),
    "torch": (pyproject("torch", gpus=["RTX 5090"], torch="2.6"), ()),
    "driver": (pyproject("torch", more='driver = "525"'), ()),
    "python": (
        on_python(pyproject("torch", "spconv-cu120==2.3.6", gpus=["RTX 4090"]), "3.12"),
        CATALOG,
    ),
    "project without": (
        pyproject("torch", "torch-scatter", "six", torch="2.8.0"),
        (),
    ),
}


@pytest.mark.parametrize(("text", "arguments"), APPLIED.values(), ids=APPLIED)
def test_the_hint_helps(locked: World, text: str, arguments: tuple[str, ...]) -> None:
    locked.write(text)
    hint = refused(locked, 1, *arguments).hint
    locked.write(applied(hint, text))
    ended = run_lock(locked, *arguments)
    assert ended.code == 0, (hint, ended)
    promised = re.search(r" gives torch (\S+)", hint)
    assert promised is not None
    assert f"torch {promised[1]}" in ended.out


def applied(hint: str, text: str) -> str:
    """Do what a hint says."""
    line = re.match(r'`((\w+) = "([^"]+)")`', hint)
    if line is None:
        without = re.match(r"the project without `([^`]+)`", hint)
        assert without is not None, hint
        return text.replace(f', "{without[1]}"', "")
    key = line[2]
    if key == "python":
        text = re.sub(r'requires-python = "[^"]+"', f'requires-python = "=={line[3]}.*"', text)
    return re.sub(rf'^{key} = "[^"]+"$', line[1], text, flags=re.MULTILINE)


def test_a_v100_runs_cuda_12_8(locked: World) -> None:
    locked.write(pyproject("torch", gpus=["V100"], torch="2.8.0", more='cuda = "12.8"'))
    assert "torch 2.8.0+cu128" in run_lock(locked).out


def test_a_gpu_of_12_1_runs_code_for_12_0(locked: World) -> None:
    locked.write(pyproject("torch", gpus=["12.1"], more='cuda = "12.8"'))
    ended = run_lock(locked)
    assert ended.code == 0
    assert "torch 2.7.0+cu128" in ended.out
    assert "JIT" not in ended.out


def test_a_gb10_is_told_what_is_not_known(locked: World) -> None:
    locked.write(pyproject("torch", gpus=["GB10"], more='platform = "linux-aarch64"'))
    ended = run_lock(locked)
    assert ended.code == 0, ended
    assert "the GPU code of torch 2.7.0+cu128 is not known" in ended.out


def test_a_jetson_is_told_that_wheels_for_servers_do_not_run(locked: World) -> None:
    locked.write(pyproject("torch", gpus=["Jetson AGX Orin"], more='platform = "linux-aarch64"'))
    ended = refused(locked, 1)
    assert "torch 2.7.0+cu128 is made for servers and has no code for sm_87" in ended.message
    assert "a Jetson needs NVIDIA's own wheels" in ended.message


def test_a_jetson_is_told_that_server_wheels_lack_its_code(locked: World) -> None:
    locked.write(
        pyproject(
            "torch", gpus=["Jetson AGX Orin"], torch="2.13.0", more='platform = "linux-aarch64"'
        )
    )
    ended = refused(locked, 1, *CATALOG)
    assert "torch 2.13.0+cu130 has no code for sm_87: SASS sm_80 … sm_120" in ended.message


def test_ten_thousand_dependencies_are_read_in_moments() -> None:
    names = [f"dep-{number}>=1" for number in range(10_000)]
    start = time.monotonic()
    assert len(parse_project(pyproject("torch", *names)).requirements) == 10_001
    with pytest.raises(InputError) as caught:
        parse_project(pyproject("torch", *(f"{name}>>" for name in names)))
    assert time.monotonic() - start < 10
    assert caught.value.message.startswith("10000 problems in `pyproject.toml`\n")
    assert caught.value.message.endswith("\n... and 9975 more")


def test_a_package_that_only_another_needs_and_no_index_has(locked: World) -> None:
    locked.index.add_pypi(local_wheel("hollow", "1.0", requires=["nowhere-to-be-found"]))
    locked.write(pyproject("torch", "hollow"))
    ended = refused(locked, 1)
    assert "no index has `nowhere-to-be-found`, which target `cu128` needs" in ended.message
    assert "mirror" in ended.hint
