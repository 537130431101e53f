"""What the tests of real failures share: a torch of a few functions, and `envbuild doctor` on it.

The environment is read from disk; the machine, its compilers, toolkits and driver are a value.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from elfmaker import PTX, SASS, fat_binary, make_elf
from envmaker import EnvMaker, MadeEnv

from envbuild.catalog.reader import Catalog
from envbuild.checks.registry import all_rules
from envbuild.cli.doctorcommand import DoctorWorld
from envbuild.cli.doctorwiring import DiskExaminer, real_world
from envbuild.cli.main import main
from envbuild.commands.doctor import doctor
from envbuild.model.cuda import ComputeCapability
from envbuild.model.host import Host
from envbuild.model.target import Gpu

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import pytest

    from envbuild.cli.doctorcommand import Where
    from envbuild.commands.doctor import DoctorOptions
    from envbuild.model.diagnosis import DoctorReport
    from envbuild.model.installed import Installed

OLD_ERROR = "_ZN3c105ErrorC2ENS_14SourceLocationESs"
NEW_ERROR = (
    "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
)
NCCL = ("ncclAllReduce", "ncclCommInitRank")
NCCL_FILE = "nvidia/nccl/lib/libnccl.so.2"
CUDA_FILE = "torch/lib/libtorch_cuda.so"
ANY_LINUX = "py3-none-manylinux_2_18_x86_64"
_REPAIR = re.compile(r"^repair:.*\n", re.MULTILINE)
PLAIN = Host(glibc="2.39", cores=8, memory_bytes=64 << 30)
FOLDERS = ("nccl", "cudnn", "cuda_runtime", "cusparselt", "nvshmem", "nvjitlink", "cusparse")
SYSTEM = "usr/lib/x86_64-linux-gnu"
RPATH = ":".join(("$ORIGIN", *(f"$ORIGIN/../../nvidia/{one}/lib" for one in FOLDERS)))


def device_code(text: str) -> bytes:
    """Return a fat binary of ``sm_80 sm_90 compute_90``."""
    kinds = {"sm": SASS, "compute": PTX}
    pairs = (name.split("_") for name in text.split())
    return fat_binary(*((kinds[kind], int(number), 0) for kind, number in pairs))


def torch_files(
    *,
    new_abi: bool = True,
    archs: str = "sm_80 sm_90",
    defines: Iterable[str] = (),
    nccl: Iterable[str] = (),
    needs: Iterable[str] = (),
    python: str = "311",
) -> dict[str, bytes]:
    """Return torch as five libraries; ``nccl`` are the functions it wants of NCCL."""
    sections = {".nv_fatbin": device_code(archs)} if archs else {}
    wants = tuple(nccl)
    needed = ("libc10.so", *(("libnccl.so.2",) if wants else ()), *needs)
    error = NEW_ERROR if new_abi else OLD_ERROR
    own = {
        "libc10.so": make_elf(soname="libc10.so", defines=(error,)),
        "libtorch_cpu.so": make_elf(
            soname="libtorch_cpu.so",
            needed=("libc10.so",),
            rpath=RPATH,
            wants=(error,),
            defines=tuple(defines),
        ),
        "libtorch_cuda.so": make_elf(
            soname="libtorch_cuda.so", needed=needed, rpath=RPATH, wants=wants, sections=sections
        ),
        "libtorch_python.so": make_elf(
            soname="libtorch_python.so", needed=("libtorch_cpu.so", "libtorch_cuda.so"), rpath=RPATH
        ),
    }
    if not archs:
        own["libtorch_cuda.so"] = make_elf(soname="libtorch_cuda.so")
    module = f"torch/_C.cpython-{python}-x86_64-linux-gnu.so"
    core = make_elf(needed=("libtorch_python.so",), rpath="$ORIGIN/lib", defines=("PyInit__C",))
    return {**{f"torch/lib/{name}": data for name, data in own.items()}, module: core}


def library(soname: str, *defines: str, **parts: object) -> bytes:
    """Return a library that defines functions."""
    return make_elf(soname=soname, defines=defines, **parts)  # type: ignore[arg-type]


def torch_env(
    where: Path | MadeEnv,
    version: str,
    *,
    metadata: str | None = None,
    cuda: str | None = "",
    requires: Iterable[str] = (),
    python: str = "3.11",
    more: Mapping[str, bytes] | None = None,
    **parts: object,
) -> MadeEnv:
    """Make a venv with a torch, or put one into an environment; ``parts`` as in `torch_files`.

    ``more`` are further files of it.
    """
    env = where if isinstance(where, MadeEnv) else EnvMaker(where).venv(python=python)
    digits = python.replace(".", "")
    files = {**torch_files(python=digits, **parts), **(more or {})}  # type: ignore[arg-type]
    tag = f"cp{digits}-cp{digits}-manylinux_2_28_x86_64"
    return env.torch(version, metadata=metadata, cuda=cuda, requires=requires, files=files, tag=tag)


def extension(
    path: str, *wants: str, needed: Iterable[str] = (), archs: str = ""
) -> dict[str, bytes]:
    """Return a compiled module that asks torch for functions."""
    name = path.rpartition("/")[2].partition(".")[0]
    up = "/".join(("$ORIGIN", *[".."] * path.count("/"), "torch", "lib"))
    data = make_elf(
        needed=("libc10.so", "libtorch_cpu.so", "libtorch_cuda.so", *needed),
        rpath=up,
        wants=wants,
        defines=(f"PyInit_{name}",),
        sections={".nv_fatbin": device_code(archs)} if archs else {},
    )
    return {path: data}


def image(folder: Path, *, glibc: int = 31) -> EnvMaker:
    """Make an image with a C library 2.N and nothing else; environments are made in it."""
    names = (f"f{number}@@GLIBC_2.{number}" for number in range(2, glibc + 1))
    put(folder, f"{SYSTEM}/libc.so.6", library("libc.so.6", *names))
    (folder / "lib").symlink_to("usr/lib")
    return EnvMaker(folder, image=True)


def put(folder: Path, path: str, data: bytes) -> None:
    """Write a file of an image or of a machine."""
    goal = folder / path
    goal.parent.mkdir(parents=True, exist_ok=True)
    goal.write_bytes(data)


def card(name: str, capability: str) -> Gpu:
    """Return a GPU of a machine."""
    return Gpu(name=name, capability=ComputeCapability.parse(capability))


def told(host: Host, **variables: str) -> Host:
    """Return a machine with variables of its environment."""
    return replace(host, environment=tuple(variables.items()))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What doctor printed, and its exit code."""

    code: int
    out: str

    @property
    def first(self) -> str:
        """The first line, which is the root cause."""
        return self.out.partition("\n")[0]

    @property
    def effects(self) -> str:
        """What stands before the repair."""
        return _REPAIR.split(self.out)[0]

    @property
    def repair(self) -> str:
        """The commands of the repair, and what is left to a person."""
        return _REPAIR.split(f"{self.out}\nrepair:\n")[1].partition("\n\n")[0]


@dataclass(frozen=True, kw_only=True)
class Doctor:
    """Runs `envbuild doctor` in this process, on files and a machine that is a value."""

    capsys: pytest.CaptureFixture[str]

    def __call__(self, where: MadeEnv | Path | str, *words: object, host: Host = PLAIN) -> Answer:
        """Examine an environment, or the folder of a project."""
        path = getattr(where, "prefix", where)

        def examine(options: DoctorOptions, where: Where) -> DoctorReport:
            examiner = OnMachine(where, os.environ, host)
            return doctor(options, examiner=examiner, facts=Catalog.load(), rules=all_rules())

        real = real_world()
        world = DoctorWorld(examine=examine, rules=real.rules, runner=real.runner)
        arguments = ["doctor", "--quiet", str(path), *map(str, words)]
        code = main(arguments, doctor_world=world)
        answer = Answer(code=code, out=self.capsys.readouterr().out)
        assert code in (0, 1), answer
        return answer


class OnMachine(DiskExaminer):
    """Reads an environment from disk, and says that it lies on another machine."""

    def __init__(self, where: Where, environ: Mapping[str, str], host: Host) -> None:
        super().__init__(where, environ)
        self._host = host

    def host(self, installed: Installed) -> Host:
        """Return the machine of the test."""
        assert installed.prefix
        return self._host
