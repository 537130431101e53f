"""Measure doctor beside what else one would type: `python benchmarks/doctor.py [--venv DIR]`.

The environment is the one named, or a venv with torch 2.11.0 that is made here, which downloads
some 3 GB. Commands are timed alternately, as whole processes with warm caches. Of an environment
with a torch for CUDA 13 a broken twin is made of hard links, whose NCCL is cut short. How doctor
grows is measured on made-up environments, whose shared objects have hardly any symbols.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import uv

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from elfmaker import make_elf  # noqa: E402 - the makers of the tests lie beside them
from envmaker import EnvMaker  # noqa: E402

UV = uv.find_uv_bin()
DOCTOR = [sys.executable, "-m", "envbuild", "doctor"]
GPU = "H100"
SIZES = ((10, 10), (100, 200), (1000, 2000))
ALONE = ((1000, 10), (10, 2000))


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One process: its wall and processor seconds, and its most memory in MiB."""

    wall: float
    cpu: float
    memory: float


def main() -> int:
    """Run every measurement and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--venv", type=Path, help="an environment with torch")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, {arguments.rounds} rounds, medians\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv = _torch_venv(folder) if arguments.venv is None else arguments.venv.absolute()
        _measure("a healthy environment", _commands(venv), arguments.rounds)
        _measure_twin(venv, arguments.rounds)
    with tempfile.TemporaryDirectory() as name:
        _measure_growth(Path(name), arguments.rounds)
    return 0


def _measure_twin(venv: Path, rounds: int) -> None:
    # Hard links need the same disk: the twin lies beside the environment.
    with tempfile.TemporaryDirectory(dir=venv.parent, prefix="doctor-twin-") as name:
        commands = _commands(_broken_twin(venv, Path(name)))
        del commands["import torch"]  # it fails, sooner or later
        whole = {"import torch of the healthy one": _commands(venv)["import torch"]}
        _measure("the twin, whose NCCL is cut short", whole | commands, rounds)


def _torch_venv(folder: Path) -> Path:
    venv = folder / "torch"
    for command in (
        [UV, "venv", str(venv)],
        [UV, "pip", "install", "--python", str(venv), "torch==2.11.0", "pip"],
    ):
        subprocess.run(command, check=True)
    return venv


def _commands(venv: Path) -> dict[str, list[str]]:
    python = str(venv / "bin" / "python")
    pip = {"pip check": [sys.executable, "-m", "pip", "--python", python, "check"]}
    return {
        "import torch": [python, "-c", "import torch"],
        "envbuild doctor": [*DOCTOR, str(venv)],
        f"envbuild doctor --gpu {GPU} --build": [*DOCTOR, str(venv), "--gpu", GPU, "--build"],
        "uv pip check": [UV, "pip", "check", "--python", python],
        **(pip if find_spec("pip") else {}),
    }


def _broken_twin(venv: Path, folder: Path) -> Path:
    twin = folder / "twin"
    shutil.copytree(venv, twin, symlinks=True, copy_function=os.link)
    for library in twin.glob("lib/python3.*/site-packages/nvidia/nccl/lib/libnccl.so.2"):
        whole = library.rename(library.with_name("whole"))  # the link is shared: write anew
        shutil.copyfile(whole, library)  # not through memory, which would count for the children
        os.truncate(library, whole.stat().st_size // 2)
        whole.unlink()
    return twin


def _measure_growth(folder: Path, rounds: int) -> None:
    commands = {}
    for distributions, objects in (*SIZES, *ALONE):
        name = f"{distributions:,} distributions, {objects:,} shared objects"
        venv = _made_up(folder / f"{distributions}-{objects}", distributions, objects)
        commands[name] = [*DOCTOR, str(venv)]
    _measure("growth", commands, rounds)


def _made_up(folder: Path, distributions: int, objects: int) -> Path:
    env = EnvMaker(folder).venv()
    env.torch("2.11.0+cu130")
    library = make_elf(needed=("libc.so.6",), defines=("PyInit_x",), wants=("malloc",))
    for number in range(distributions):
        name = f"package-{number}"
        own = range(number, objects, distributions)
        files = {f"p{number}/m{one}.cpython-311-x86_64-linux-gnu.so": library for one in own}
        files |= {f"p{number}/part{one}.py": b"pass\n" for one in range(20)}
        env.install(name, "1.0", files=files, requires=[f"package-{number // 2}>=1"])
    return Path(env.prefix)


def _measure(title: str, commands: dict[str, list[str]], rounds: int) -> None:
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            run = _run(command)
            if number > 0:  # the first round only warms the caches
                runs[name].append(run)
    first = runs[next(iter(runs))]
    print(f"{title}\n\n| command | wall | beside the first | processor | beside | most memory |")
    print("|---|---|---|---|---|---|")
    for name, found in runs.items():
        # Pair by pair: a machine that has other work slows both of a pair.
        pairs = list(zip(found, first, strict=True))
        beside = statistics.median(a.wall / b.wall for a, b in pairs)
        of_cpu = statistics.median(a.cpu / b.cpu for a, b in pairs)
        wall = statistics.median(run.wall for run in found)
        cpu = statistics.median(run.cpu for run in found)
        memory = max(run.memory for run in found)
        times = f"{wall:.2f} s | {beside:.2f}x | {cpu:.2f} s | {of_cpu:.2f}x"
        print(f"| {name} | {times} | {memory:.0f} MiB |", flush=True)
    print()


def _run(command: list[str]) -> Run:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("UV_IND")}
    begin = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - begin
    if process.returncode not in {0, 1}:  # 1: something was found
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Run(wall=wall, cpu=usage.ru_utime + usage.ru_stime, memory=usage.ru_maxrss / 1024)


if __name__ == "__main__":
    sys.exit(main())
