"""A wrong NCCL is one problem, whatever follows from it: symbols, versions, and GPU code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from checkvalues import FACTS, aim, host
from elfmaker import SASS, fat_binary, make_elf
from envmaker import EnvMaker
from incident import ANY_LINUX, CP311, HEADER, LIBRARY, NEW, OLD, torch_files

from envbuild.checks.registry import all_rules
from envbuild.checks.rule import Broken, Judged, judge
from envbuild.core.cause import sort_findings
from envbuild.model.host import Host
from envbuild.model.installed import Installed, Ownership
from envbuild.model.layers import Aim, Layers
from envbuild.model.links import DeviceCodes, Links
from envbuild.ports import Facts
from envbuild.world.binaries import read_device_codes, read_links
from envbuild.world.rootfs import Root

if TYPE_CHECKING:
    from pathlib import Path

    from envmaker import MadeEnv

WHOLE = (*OLD, *NEW)
HOPPER, BLACKWELL = (50, 60, 70, 80, 90), (75, 80, 90, 100, 120)


def with_nccl(env: MadeEnv, label: str, names: tuple[str, ...], archs: tuple[int, ...]) -> None:
    name, _, version = label.partition(" ")
    code = fat_binary(*((SASS, arch, 0) for arch in archs))
    weak = tuple(f"?{one}" for one in names)
    library = make_elf(soname="libnccl.so.2", defines=weak, sections={".nv_fatbin": code})
    files = {LIBRARY: library, HEADER: label.encode()}
    env.install(name, version, files=files, tag=ANY_LINUX)


def tree(env: MadeEnv) -> dict[str, list[str]]:
    """Return the code of each cause, with the codes of what it explains."""
    installed = env.read()
    root = Root(installed.root)
    given: dict[type, object] = {
        Installed: installed,
        Ownership: env.ownership(),
        Links: read_links(installed, root=root, environment={}),
        DeviceCodes: read_device_codes(installed, root=root),
        Facts: FACTS,
        Aim: aim("12.0"),
        Host: host(),
        Layers: Layers(directory="", owned=False),
    }
    outcomes = judge((one for one in all_rules() if one.code[:3] != "EB6"), given)
    assert not [one for one in outcomes if isinstance(one, Broken)]
    found = sort_findings(f for one in outcomes if isinstance(one, Judged) for f in one.findings)
    return {one.cause.code: [under.code for under in one.explains] for one in found.problems}


@pytest.fixture(name="env")
def an_environment(tmp_path: Path) -> MadeEnv:
    made = EnvMaker(tmp_path).venv()
    pin = ["nvidia-nccl-cu13==2.28.9; platform_system == 'Linux'"]
    made.torch("2.11.0+cu130", metadata="2.11.0", requires=pin, files=torch_files())
    return made


def test_the_right_one_is_silent(env: MadeEnv) -> None:
    with_nccl(env, "nvidia-nccl-cu13 2.28.9", WHOLE, BLACKWELL)
    assert tree(env) == {}


@pytest.mark.parametrize("names", [OLD, WHOLE])
def test_the_intruder_of_another_cuda(env: MadeEnv, names: tuple[str, ...]) -> None:
    with_nccl(env, "nvidia-nccl-cu13 2.28.9", WHOLE, BLACKWELL)
    with_nccl(env, "nvidia-nccl-cu12 2.26.2", names, HOPPER)
    symbols = ["EB301"] if names == OLD else []
    assert tree(env) == {"EB101": ["EB201", *symbols, "EB401"]}


def test_the_incident_with_old_companions(env: MadeEnv) -> None:
    with_nccl(env, "nvidia-nccl-cu13 2.28.9", WHOLE, BLACKWELL)
    with_nccl(env, "nvidia-nccl-cu12 2.26.2", OLD, HOPPER)
    files = {"torchvision/__init__.py": b"", "torchvision/_C.so": make_elf(soname="_C.so")}
    env.install("torchvision", "0.22.0", files=files, requires=["torch==2.7.0"], tag=CP311)
    assert tree(env) == {"EB101": ["EB201", "EB301", "EB401"], "EB103": ["EB106"]}
    assert next(iter(tree(env))) == "EB101"


def test_after_the_intruder_was_removed(env: MadeEnv) -> None:
    with_nccl(env, "nvidia-nccl-cu13 2.28.9", WHOLE, BLACKWELL)
    with_nccl(env, "nvidia-nccl-cu12 2.26.2", OLD, HOPPER)
    env.uninstall("nvidia-nccl-cu12", "2.26.2")
    assert tree(env) == {"EB202": ["EB304"]}


def test_an_older_one_of_the_same_name(env: MadeEnv) -> None:
    with_nccl(env, "nvidia-nccl-cu13 2.26.2", OLD, HOPPER)
    assert tree(env) == {"EB301": ["EB106", "EB401"]}


def test_another_one_that_lacks_the_gpus_code_alone(env: MadeEnv) -> None:
    with_nccl(env, "nvidia-nccl-cu13 2.28.3", WHOLE, HOPPER)
    assert tree(env) == {"EB106": ["EB401"]}


def test_another_cudas_in_the_place_of_the_pinned_one(env: MadeEnv) -> None:
    with_nccl(env, "nvidia-nccl-cu12 2.26.2", OLD, HOPPER)
    assert tree(env) == {"EB106": ["EB301", "EB401"]}


def test_the_pinned_one_that_lacks_the_code_is_a_problem_of_its_own(env: MadeEnv) -> None:
    with_nccl(env, "nvidia-nccl-cu13 2.28.9", WHOLE, HOPPER)
    assert tree(env) == {"EB401": []}
