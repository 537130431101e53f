"""One repair plan of all fixes: what is removed, what comes back, and through which command."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from diagnoses import (
    BROKEN,
    CU12,
    CU13,
    INCIDENT,
    OWNERSHIP,
    PREFIX,
    PYTHON,
    SHARED_PATH,
    SYMBOLS,
    VISION,
    distribution,
    environment,
    finding,
    lock_file,
    shared,
)
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.cause import findings_to_mend, sort_findings
from envbuild.core.repair.plan import Ground, repair_plan
from envbuild.core.repair.wish import requirement_name, wish_of
from envbuild.model.fix import Export, Install, Manual, Reinstall, Relock, Remove, Unset
from envbuild.model.installed import EnvironmentKind, Ownership
from envbuild.model.layers import Layers

if TYPE_CHECKING:
    from envbuild.model.finding import Finding
    from envbuild.model.fix import Fix
    from envbuild.model.installed import Installed

PIP = f"uv pip install --python {PYTHON}"
SYNC = f"uv sync --directory /app --python {PYTHON}"
LOCKED = ("torch 2.11.0", f"{CU13} 2.28.9", "numpy 2.3.0", "torchvision 0.26.0")


def commands(
    *findings: Finding,
    installed: Installed = BROKEN,
    ownership: Ownership | None = OWNERSHIP,
    layers: Layers | None = None,
) -> list[str]:
    ground = Ground(installed=installed, ownership=ownership, layers=layers)
    return [
        " ".join(step.command) if step.command else f"$ {step.text}"
        for step in repair_plan(findings, ground)
    ]


def again(*names: str) -> str:
    return " ".join(f"--reinstall-package {name}" for name in names)


def asking(*fixes: Fix) -> Finding:
    return finding("EB999", fixes=fixes)


def project(*labels: str, **changes: object) -> Layers:
    base = Layers(directory="/app", uv_lock=lock_file("uv.lock", *labels), has_pyproject=True)
    return replace(base, **changes)  # type: ignore[arg-type]


def pip_project(*labels: str, **changes: object) -> Layers:
    pylock = lock_file("lockfiles/pylock.cu130.toml", *labels, target="cu130")
    base = Layers(directory="/app", managed=False, pylocks=(pylock,), uses_envbuild=True)
    return replace(base, **changes)  # type: ignore[arg-type]


def test_the_incident_without_a_project() -> None:
    assert commands(*findings_to_mend(sort_findings(INCIDENT).problems)) == [
        f"uv pip uninstall --python {PYTHON} {CU12}",
        (
            f"uv pip install --python {PYTHON} --reinstall-package torchaudio "
            "--reinstall-package torchvision torchaudio==2.11.0 torchvision==0.26.0"
        ),
        f"uv pip install --python {PYTHON} --reinstall-package {CU13} --no-deps {CU13}==2.28.9",
    ]


def test_a_removal_alone_brings_every_owner_back() -> None:
    installed = environment("a 1", "b 2", "c 3", "d 4")
    ownership = Ownership(
        shared=(shared("x/lib.so", "a 1", "b 2", "c 3"), shared("y/lib.so", "c 3", "d 4"))
    )
    found = commands(asking(Remove(names=("A",))), installed=installed, ownership=ownership)
    assert found == [
        f"uv pip uninstall --python {PYTHON} a",
        (
            f"uv pip install --python {PYTHON} --reinstall-package b --reinstall-package c "
            "--no-deps b==2 c==3"
        ),
    ]


def test_the_root_cause_decides_about_a_package() -> None:
    """A newer NCCL is the remedy of the symptom alone, and would break torch's own pin."""
    assert commands(SHARED_PATH, SYMBOLS) == commands(SHARED_PATH)
    (alone,) = commands(SYMBOLS)
    assert alone.endswith(f"{CU13}>=2.28.3")


def test_one_finding_may_remove_two_and_install_one_anew() -> None:
    installed = environment("onnxruntime 1.23.2", "onnxruntime-gpu 1.23.2")
    ownership = Ownership(
        shared=(shared("onnxruntime/x.py", "onnxruntime 1.23.2", "onnxruntime-gpu 1.23.2"),)
    )
    found = commands(
        asking(
            Remove(names=("onnxruntime", "onnxruntime-gpu")),
            Install(requirements=("onnxruntime-gpu==1.23.2",)),
        ),
        installed=installed,
        ownership=ownership,
    )
    assert found == [
        f"uv pip uninstall --python {PYTHON} onnxruntime onnxruntime-gpu",
        (
            f"uv pip install --python {PYTHON} --reinstall-package onnxruntime-gpu "
            "onnxruntime-gpu==1.23.2"
        ),
    ]


def test_of_two_twins_one_stays_where_findings_disagree() -> None:
    keeps_13 = asking(Remove(names=(CU12,)), Reinstall(names=(CU13,)))
    keeps_12 = asking(Remove(names=(CU13,)), Reinstall(names=(CU12,)))
    assert commands(keeps_13, keeps_12) == commands(keeps_13)


def test_builds_come_back_from_where_they_came() -> None:
    installed = environment(
        "torch 2.7.0+cu128",
        "torch-scatter 2.1.2+pt27cu128",
        "numpy 2.3.0",
        distribution("flash-attn 2.8.3", origin="https://host.example/flash_attn.whl"),
        distribution("pointops 1.0", origin="file:///src/pointops", editable=True),
    )
    names = ("torch", "torch-scatter", "numpy", "flash-attn", "pointops")
    plain, scatter, torch = commands(asking(Reinstall(names=names)), installed=installed)
    wanted = "flash-attn @ https://host.example/flash_attn.whl numpy==2.3.0 -e /src/pointops"
    assert plain == f"{PIP} {again('flash-attn', 'numpy', 'pointops')} --no-deps {wanted}"
    assert scatter.endswith("--find-links https://data.pyg.org/whl/torch-2.7.0%2Bcu128.html")
    assert torch.endswith("torch==2.7.0+cu128 --index https://download.pytorch.org/whl/cu128")


def test_installs_keep_to_their_index() -> None:
    url = "https://download.pytorch.org/whl/cu128"
    found = commands(
        asking(Install(requirements=("torchvision==0.22.0+cu128",), index=url)),
        asking(Install(requirements=("numpy<2",))),
        asking(Install(requirements=("torch-scatter",), find_links="https://data.pyg.org/x.html")),
    )
    assert [line.partition("/bin/python ")[2] for line in found] == [
        "--reinstall-package numpy numpy<2",
        "torch-scatter --find-links https://data.pyg.org/x.html",
        f"--reinstall-package torchvision torchvision==0.22.0+cu128 --index {url}",
    ]


def test_what_requires_the_removed_package_is_named() -> None:
    installed = environment(*BROKEN.distributions, distribution("xgboost 3.2.0", requires=(CU12,)))
    first, _ = repair_plan([SHARED_PATH], Ground(installed=installed, ownership=OWNERSHIP))
    assert first.reason.endswith("(EB201); xgboost 3.2.0 will ask for it again")


def test_a_good_lock_repairs_in_one_step() -> None:
    installed = environment(
        "torch 2.11.0", f"{CU12} 2.26.2", f"{CU13} 2.28.9", "numpy 2.3.0", "pip 26.1"
    )
    assert commands(SHARED_PATH, installed=installed, layers=project(*LOCKED)) == [
        f"{SYNC} --reinstall-package {CU13}"
    ]


def test_the_lock_has_the_companion_that_fits() -> None:
    installed = environment("torch 2.11.0", "torchvision 0.22.0", f"{CU13} 2.28.9")
    assert commands(VISION, installed=installed, layers=project(*LOCKED)) == [
        f"{SYNC} --reinstall-package torchvision"
    ]


def test_what_no_finding_is_about_survives_the_sync() -> None:
    """An exact sync would take the extension away that took an hour to build."""
    installed = environment("torch 2.11.0", f"{CU12} 2.26.2", f"{CU13} 2.28.9", "pointops 1.0")
    steps = repair_plan(
        [SHARED_PATH],
        Ground(installed=installed, ownership=OWNERSHIP, layers=project(*LOCKED)),
    )
    assert [" ".join(step.command) for step in steps] == [
        f"uv pip uninstall --python {PYTHON} {CU12}",
        f"{SYNC} --inexact --reinstall-package {CU13}",
    ]
    assert "`pointops` are not in it and stay" in steps[1].reason


def test_the_extras_that_were_synced_are_synced_again() -> None:
    optional = tuple(
        (flag, one)
        for flag, label in (
            ("--extra cu130", f"{CU13} 2.28.9"),
            ("--extra cpu", "torch 2.11.0+cpu"),
            ("--group dev", "pytest 9.0"),
        )
        for one in lock_file("", label).packages
    )
    lock = replace(lock_file("uv.lock", "torch 2.11.0"), optional=optional)
    installed = environment("torch 2.11.0", f"{CU12} 2.26.2", f"{CU13} 2.28.9", "pytest 9.0")
    assert commands(SHARED_PATH, installed=installed, layers=project(uv_lock=lock)) == [
        (f"{SYNC} --extra cu130 --group dev --reinstall-package {CU13}"),
    ]


def test_the_incident_in_a_project_whose_lock_is_right() -> None:
    """The companions were put beside the lock: the sync takes them away again."""
    ordered = findings_to_mend(sort_findings(INCIDENT).problems)
    layers = project("torch 2.11.0", f"{CU13} 2.28.9", "numpy 2.3.0")
    assert commands(*ordered, layers=layers) == [f"{SYNC} {again(CU13)}"]
    more = environment(*BROKEN.distributions, "pointops 1.0")
    assert commands(*ordered, installed=more, layers=layers) == [
        f"uv pip uninstall --python {PYTHON} {CU12}",
        f"{SYNC} --inexact {again(CU13)}",
        f"{PIP} {again('torchaudio', 'torchvision')} torchaudio==2.11.0 torchvision==0.26.0",
    ]


def test_what_is_taken_away_with_the_sync_gives_its_paths_back() -> None:
    installed = environment("torch 2.11.0", "a 1", "numpy 2.3.0")
    ownership = Ownership(shared=(shared("x.so", "a 1", "torch 2.11.0"),))
    layers = project("torch 2.11.0", "numpy 2.3.0")
    found = asking(Install(requirements=("a==2",)))
    assert commands(found, installed=installed, ownership=ownership, layers=layers) == [
        f"{SYNC} {again('torch')}"
    ]


def test_an_owner_outside_of_the_lock_comes_back_too() -> None:
    installed = environment("torch 2.11.0", "a 1", "b 2")
    ownership = Ownership(shared=(shared("x.so", "a 1", "b 2"),))
    layers = project("torch 2.11.0")
    assert commands(
        asking(Remove(names=("a",))), installed=installed, ownership=ownership, layers=layers
    ) == [
        f"uv pip uninstall --python {PYTHON} a",
        f"{SYNC} --inexact",
        f"uv pip install --python {PYTHON} --reinstall-package b --no-deps b==2",
    ]


def test_a_wrong_lock_is_made_anew_first() -> None:
    installed = environment("torch 2.11.0", "torchvision 0.22.0")
    layers = project("torch 2.11.0", "torchvision 0.22.0")
    assert commands(VISION, installed=installed, layers=layers) == [
        "uv lock --directory /app --upgrade-package torchvision==0.26.0",
        f"{SYNC} --reinstall-package torchvision",
    ]
    own = replace(layers, uses_envbuild=True)
    assert commands(VISION, installed=installed, layers=own)[0] == "envbuild lock /app"


def test_a_twin_in_uv_lock_has_to_be_kept_out_by_hand() -> None:
    installed = environment(*BROKEN.distributions, distribution("xgboost 3.2.0", requires=(CU12,)))
    layers = project(*LOCKED, f"{CU12} 2.26.2", "xgboost 3.2.0", "torchaudio 2.7.0")
    by_hand, lock, sync = commands(SHARED_PATH, installed=installed, layers=layers)
    assert by_hand.startswith("$ # ")
    assert f"override-dependencies = [\"{CU12}; sys_platform == 'never'\"]" in by_hand
    assert lock == "uv lock --directory /app"
    assert sync == f"{SYNC} --reinstall-package {CU13}"


def test_a_relock_alone_is_followed_by_a_sync() -> None:
    assert commands(asking(Relock(reason="it holds twins")), layers=project(*LOCKED))[
        -1
    ].startswith(f"{SYNC}")
    assert commands(asking(Relock(reason="it holds twins"))) == [
        "$ # make the lock anew, then install from it"
    ]


def test_a_lock_that_is_not_installed_here_is_made_anew_all_the_same() -> None:
    layers = project("a 1", "b 1", uses_envbuild=True)
    elsewhere = replace(BROKEN, prefix="/venvs/a")
    assert commands(
        asking(Relock(reason="it is cut short")), installed=elsewhere, layers=layers
    ) == ["envbuild lock /app"]


def test_what_the_project_does_not_ask_for_is_added() -> None:
    found = commands(
        asking(Install(requirements=("setuptools<82",))),
        installed=environment("torch 2.11.0"),
        layers=project("torch 2.11.0"),
    )
    assert found == [
        "uv add --directory /app --no-sync setuptools<82",
        f"{SYNC} --reinstall-package setuptools",
    ]


def test_another_environment_of_the_project_is_named_to_uv() -> None:
    installed = environment("torch 2.11.0", f"{CU12} 2.26.2", f"{CU13} 2.28.9", prefix="/venvs/a")
    (found,) = commands(
        SHARED_PATH, installed=installed, layers=project("torch 2.11.0", f"{CU13} 2.28.9")
    )
    assert found == f"env UV_PROJECT_ENVIRONMENT=/venvs/a {SYNC} {again(CU13)}"
    stranger = environment("numpy 1", f"{CU12} 2.26.2", f"{CU13} 2.28.9", prefix="/venvs/a")
    first = commands(SHARED_PATH, installed=stranger, layers=project("torch 2.11.0", "a 1", "b 1"))[
        0
    ]
    assert first == f"uv pip uninstall --python {PYTHON} {CU12}"


def test_a_pylock_is_synced_for_its_interpreter() -> None:
    installed = environment("torch 2.11.0", f"{CU12} 2.26.2", f"{CU13} 2.28.9")
    layers = pip_project("torch 2.11.0", f"{CU13} 2.28.9")
    path = "/app/lockfiles/pylock.cu130.toml"
    assert commands(SHARED_PATH, installed=installed, layers=layers) == [
        f"uv pip sync {path} --python {PYTHON} --reinstall-package {CU13}"
    ]
    more = environment(*installed.distributions, "pointops 1.0")
    assert commands(SHARED_PATH, installed=more, layers=layers) == [
        f"uv pip uninstall --python {PYTHON} {CU12}",
        f"uv pip install --python {PYTHON} --reinstall-package {CU13} -r {path}",
    ]


def test_the_pylock_that_is_installed_is_taken() -> None:
    installed = environment("torch 2.11.0", f"{CU12} 2.26.2", f"{CU13} 2.28.9")
    other = lock_file("lockfiles/pylock.cpu.toml", "torch 2.11.0+cpu", "numpy 2.3.0")
    right = lock_file("lockfiles/pylock.cu130.toml", "torch 2.11.0", f"{CU13} 2.28.9")
    layers = pip_project(pylocks=(other, right))
    assert "pylock.cu130.toml" in commands(SHARED_PATH, installed=installed, layers=layers)[0]


def test_conda_repairs_what_conda_installed() -> None:
    installed = environment(
        distribution("numpy 2.3.0", installer="conda"),
        distribution("blas 1.0", site=f"{PREFIX}/conda-meta"),
        "torch 2.11.0",
        kind=EnvironmentKind.CONDA,
    )
    found = commands(
        asking(Remove(names=("blas",)), Reinstall(names=("numpy", "torch"))), installed=installed
    )
    assert found == [
        f"$ conda remove --prefix {PREFIX} --force blas",
        f"uv pip install --python {PYTHON} --reinstall-package torch --no-deps torch==2.11.0",
        f"$ conda install --prefix {PREFIX} --force-reinstall numpy=2.3.0",
    ]


def test_what_lies_outside_of_the_environment_is_left_to_a_person() -> None:
    user = "/home/ann/.local/lib/python3.11/site-packages"
    installed = environment(
        distribution("torch 2.9.0", site=user), distribution("numpy 1.26.0", site=user), "pip 26.1"
    )
    fixes = (Remove(names=("torch",)), Reinstall(names=("numpy", "pip")))
    assert commands(asking(*fixes), installed=installed, ownership=None) == [
        f"{PIP} {again('pip')} --no-deps pip==26.1",
        f"$ uv pip uninstall --target {user} torch",
        f"$ uv pip install --target {user} {again('numpy')} --no-deps numpy==1.26.0",
    ]


@pytest.mark.parametrize(
    "changes", [{"installer": "debian"}, {"site": "/usr/lib/python3/dist-packages"}]
)
def test_what_the_system_installed_is_not_touched(changes: dict[str, str]) -> None:
    installed = environment(distribution("pyyaml 6.0", **changes), own_sites=())
    assert commands(asking(Reinstall(names=("pyyaml",))), installed=installed) == [
        "$ # do this with the system's package manager"
    ]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"root": "/images/a"}, f"--python {PYTHON}"),
        ({"executable": ""}, "--target /app/.venv/lib"),
    ],
)
def test_nothing_is_bound_where_no_interpreter_can_be_started(
    changes: dict[str, str], place: str
) -> None:
    installed = replace(BROKEN, **changes)  # type: ignore[arg-type]
    steps = repair_plan([SHARED_PATH], Ground(installed=installed, ownership=OWNERSHIP))
    assert all(step.command == () for step in steps)
    assert all(place in step.text for step in steps)


def test_variables_and_what_is_left_to_a_person_come_last() -> None:
    fixes = (
        Manual(text="ask the administrator"),
        Export(variable="CUDA_HOME", value="/opt/cuda 13"),
        Unset(variable="LD_LIBRARY_PATH"),
        Reinstall(names=("numpy",)),
    )
    _, *rest = commands(asking(*fixes), asking(*fixes))
    assert rest == [
        "$ export CUDA_HOME='/opt/cuda 13'",
        "$ unset LD_LIBRARY_PATH",
        "$ # ask the administrator",
    ]


def test_no_fix_is_no_plan() -> None:
    assert commands(finding("EB301"), layers=project(*LOCKED)) == []
    assert commands(asking(Remove(names=("absent",)))) == []


def test_names_of_requirements() -> None:
    assert requirement_name("Torch_Vision[x]>=1; python_version > '3'") == "torch-vision"
    assert requirement_name("not a requirement") == "not a requirement"


NAMES = ("a", "b", "c", "d", "e")
SOME = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True).map(tuple)
FIXES = st.one_of(
    st.builds(Remove, names=SOME),
    st.builds(Reinstall, names=SOME),
    st.builds(Install, requirements=SOME.map(lambda names: tuple(f"{n}==9" for n in names))),
    st.builds(Relock, reason=st.just("it is wrong")),
    st.just(Unset(variable="LD_PRELOAD")),
)
FINDINGS = st.lists(
    st.lists(FIXES, max_size=3).map(lambda fixes: finding("EB999", fixes=tuple(fixes))), max_size=4
)
OWNERSHIPS = st.lists(SOME, max_size=4).map(
    lambda groups: Ownership(
        shared=tuple(shared(f"p{n}", *(f"{one} 1" for one in g)) for n, g in enumerate(groups))
    )
)
LAYERS = st.one_of(
    st.none(),
    st.builds(
        project, st.just("a 1"), st.sampled_from(["b 1", "b 9"]), uses_envbuild=st.booleans()
    ),
    st.builds(pip_project, st.just("a 1"), st.just("b 1"), st.just("c 9")),
)
INSTALLED = environment(*(f"{name} 1" for name in NAMES))


@given(findings=FINDINGS, ownership=OWNERSHIPS)
def test_every_remaining_owner_comes_back(findings: list[Finding], ownership: Ownership) -> None:
    wish = wish_of(findings, installed=INSTALLED, ownership=ownership)
    back = set(wish.reinstalls) | {one.name for one in wish.installs}
    assert not set(wish.reinstalls) & set(wish.removals)
    assert not set(wish.reinstalls) & {one.name for one in wish.installs}
    for one in ownership.shared:
        owners = {label.partition(" ")[0] for label, _ in one.owners}
        if owners & set(wish.removals):
            assert owners - set(wish.removals) <= back


@given(findings=FINDINGS, ownership=OWNERSHIPS, layers=LAYERS)
def test_a_plan_removes_first_and_brings_back_after(
    findings: list[Finding], ownership: Ownership, layers: Layers | None
) -> None:
    ground = Ground(installed=INSTALLED, ownership=ownership, layers=layers)
    plan = [step.command for step in repair_plan(findings, ground) if step.command]
    wish = wish_of(findings, installed=INSTALLED, ownership=ownership)
    removing = [n for n, words in enumerate(plan) if words[:3] == ("uv", "pip", "uninstall")]
    bringing = [n for n, words in enumerate(plan) if "--reinstall-package" in words]
    assert len(removing) <= 1
    assert all(n > removing[0] for n in bringing) if removing else True
    again = [
        words[n + 1]
        for words in plan
        for n, word in enumerate(words)
        if word == "--reinstall-package"
    ]
    assert len(again) == len(set(again))
    taken_away = {one.name for one in wish.installs} - set(again)
    assert {*wish.reinstalls, *(one.name for one in wish.installs)} - taken_away <= set(again)
    if layers is None:
        assert not taken_away


@given(findings=FINDINGS, ownership=OWNERSHIPS, layers=LAYERS)
def test_saying_it_twice_changes_nothing(
    findings: list[Finding], ownership: Ownership, layers: Layers | None
) -> None:
    ground = Ground(installed=INSTALLED, ownership=ownership, layers=layers)
    assert repair_plan([*findings, *findings], ground) == repair_plan(findings, ground)
