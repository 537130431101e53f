"""What the install script compiles: sources, compilers, toolkits, and what came of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import pytest
from buildworld import CPP, KERNEL, write_compiler, write_source, write_toolkit
from lockworld import World, pyproject
from scriptworld import bare, contents, make_script, run_script, versions

from envbuild.core.elf.fatbin import device_code

if TYPE_CHECKING:
    import subprocess

    from index import LocalIndex

    from envbuild.catalog.reader import Catalog

NVCC = which("nvcc")
MORE = '[tool.envbuild.build]\nmyext = {{ path = "libs/my ext", requires = [] }}'
GPUS = ("B200", "RTX PRO 2000 Blackwell")
SITE = ".venv/lib/python3.11/site-packages"


@pytest.fixture(scope="module")
def template(
    shared_index: LocalIndex,
    shared_cache: Path,
    catalog: Catalog,
    tmp_path_factory: pytest.TempPathFactory,
) -> World:
    """Return a project whose lock has an extension that is compiled on install."""
    root = tmp_path_factory.mktemp("build")
    one = World(index=shared_index, root=root, cache=shared_cache, catalog=catalog)
    one.write(pyproject("torch", layer="pip", gpus=GPUS, more=MORE.format()))
    write_source(root / "libs/my ext", "myext", module_cpp=CPP)
    one.lock()
    make_script(one)
    return one


@pytest.fixture(name="built")
def a_project_that_compiles(world: World, template: World) -> World:
    """Return it with an environment and caches of its own for what is built."""
    shutil.copytree(template.root, world.root, dirs_exist_ok=True)
    return world


def install(world: World, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    own = str(world.root.parent / "built")
    return run_script(world, *arguments, **{"ENVBUILD_CACHE_DIR": own, **changes})


def source(world: World, **files: str) -> None:
    write_source(world.root / "libs/my ext", "myext", **files)


def test_a_cpp_extension_needs_no_nvcc(built: World, tmp_path: Path) -> None:
    log = tmp_path / "log"
    ended = install(built, BUILD_LOG=str(log))
    assert ended.returncode == 0, ended.stderr
    assert versions(built.root / ".venv")["myext"] == "1.0"
    told = dict(line.split("=", 1) for line in log.read_text().splitlines())
    assert told["TORCH_CUDA_ARCH_LIST"] == "10.0;12.0"
    assert told["CMAKE_CUDA_ARCHITECTURES"] == "100;120"
    assert told["FORCE_CUDA"] == "1"
    assert int(told["MAX_JOBS"]) >= 1
    assert "nothing to do" in install(built).stderr


def test_a_build_is_made_once(built: World, tmp_path: Path) -> None:
    log = tmp_path / "log"
    install(built, BUILD_LOG=str(log))
    shutil.rmtree(built.root / ".venv")
    again = install(built, BUILD_LOG=str(log))
    assert "was built before" in again.stderr
    assert log.read_text().count("FORCE_CUDA=1") == 1
    (built.root / "libs/my ext/module.cpp").write_text(CPP + "int more;\n")
    changed = install(built, BUILD_LOG=str(log))
    assert changed.returncode == 0, changed.stderr
    assert "compile myext" in changed.stderr
    assert log.read_text().count("FORCE_CUDA=1") == 2


def test_users_own_limits_go_before(built: World, tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert install(built, BUILD_LOG=str(log), MAX_JOBS="1", NVCC_THREADS="3").returncode == 0
    assert {"MAX_JOBS=1", "NVCC_THREADS=3"} <= set(log.read_text().splitlines())


def test_what_was_left_in_the_source_is_not_built(built: World) -> None:
    stale = built.root / "libs/my ext/build"
    stale.mkdir()
    (stale / "old.o").write_text("old")
    before = contents(built.root / "libs")
    assert install(built).returncode == 0
    assert contents(built.root / "libs") == before


def test_a_hollow_extension_is_refused_and_not_kept(built: World) -> None:
    source(built, module_cpp=CPP, hollow="")
    ended = install(built)
    assert ended.returncode == 19
    assert "is hollow" in ended.stderr
    (built.root / "libs/my ext/hollow").unlink()
    assert install(built).returncode == 0


def test_a_build_that_fails_says_why(built: World) -> None:
    source(built, fail="")
    ended = install(built, "--venv", "other")
    assert ended.returncode == 18
    assert "this source cannot be compiled" in ended.stderr
    assert "MAX_JOBS" in ended.stderr


def test_a_source_that_is_gone(built: World) -> None:
    (built.root / "libs").rename(built.root / "gone")
    ended = install(built)
    assert ended.returncode == 18
    assert "is not there" in ended.stderr
    assert not (built.root / ".venv").exists()


def test_no_nvcc(built: World) -> None:
    if NVCC is not None or Path("/usr/local/cuda").exists():
        pytest.skip("this machine has nvcc")
    source(built, kernel_cu=KERNEL)
    assert install(built).returncode == 15


def test_a_toolkit_without_nvcc(built: World, tmp_path: Path) -> None:
    source(built, kernel_cu=KERNEL)
    ended = install(built, CUDA_HOME=str(tmp_path))
    assert ended.returncode == 15
    assert "no nvcc was found" in ended.stderr


@pytest.mark.parametrize(
    ("version", "said"),
    [("13.0", "found nvcc of CUDA 13.0"), ("12.6", "wanted CUDA 12, 12.8 or newer")],
)
def test_nvcc_of_another_cuda(built: World, tmp_path: Path, version: str, said: str) -> None:
    source(built, kernel_cu=KERNEL)
    home = write_toolkit(tmp_path / "cuda", version)
    ended = install(built, CUDA_HOME=str(home))
    assert ended.returncode == 16
    assert said in ended.stderr
    assert not (built.root / ".venv").exists()


def test_a_compiler_that_is_too_new_for_nvcc(built: World, tmp_path: Path) -> None:
    source(built, kernel_cu=KERNEL)
    home = write_toolkit(tmp_path / "cuda", "12.8")
    new = write_compiler(tmp_path / "g++-77", "77")
    ended = install(built, CUDA_HOME=str(home), CXX=str(new))
    assert ended.returncode == 17
    assert "g++-77 is 77" in ended.stderr
    assert "wanted g++ 9 to 14" in ended.stderr


def test_a_compiler_that_is_too_old(built: World, tmp_path: Path) -> None:
    old = write_compiler(tmp_path / "g++-7", "7")
    assert install(built, CXX=str(old)).returncode == 17


def test_an_older_compiler_is_taken_where_the_default_is_too_new(
    built: World, tmp_path: Path
) -> None:
    source(built, kernel_cu=KERNEL, fail="")
    home = write_toolkit(tmp_path / "cuda", "12.8")
    write_compiler(tmp_path / "bin/g++", "77")
    write_compiler(tmp_path / "bin/c++", "77")
    write_compiler(tmp_path / "bin/g++-14", "14")
    path = f"{tmp_path}/bin:{bare(built)['PATH']}"
    ended = install(built, CUDA_HOME=str(home), PATH=path)
    assert "compiler g++-14" in ended.stderr


@pytest.mark.skipif(NVCC is None, reason="needs nvcc")
def test_a_kernel_has_code_for_each_gpu(built: World, tmp_path: Path) -> None:
    source(built, kernel_cu=KERNEL)
    home = write_toolkit(tmp_path / "cuda", "12.8", real=str(NVCC))
    ended = install(built, CUDA_HOME=str(home))
    assert ended.returncode == 0, ended.stderr

    class Bytes:
        data = (built.root / SITE / "myext_c.so").read_bytes()
        size = len(data)

        def read(self, offset: int, size: int) -> bytes:
            return self.data[offset : offset + size]

    code = device_code(Bytes())
    assert code is not None
    assert {one.sm for one in code.sass} == {"sm_100", "sm_120"}


@pytest.mark.skipif(NVCC is None, reason="needs nvcc")
def test_a_kernel_that_lacks_a_gpu_is_refused(built: World, tmp_path: Path) -> None:
    source(built, kernel_cu=KERNEL, drop="")
    home = write_toolkit(tmp_path / "cuda", "12.8", real=str(NVCC))
    ended = install(built, CUDA_HOME=str(home))
    assert ended.returncode == 19
    assert "has no code for 12.0; it has sm_100" in ended.stderr


@pytest.mark.skipif(NVCC is None, reason="needs nvcc")
def test_an_arch_list_of_the_users_that_lacks_a_gpu_is_refused(
    built: World, tmp_path: Path
) -> None:
    source(built, kernel_cu=KERNEL)
    home = write_toolkit(tmp_path / "cuda", "12.8", real=str(NVCC))
    ended = install(built, CUDA_HOME=str(home), TORCH_CUDA_ARCH_LIST="10.0")
    assert ended.returncode == 19
    assert "TORCH_CUDA_ARCH_LIST is `10.0` by your environment" in ended.stderr
