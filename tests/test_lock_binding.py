"""What the user wrote for uv itself binds the lock, and the answer says how to install it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from artefacts import pylocked, versions
from lockworld import pyproject

from envbuild.errors import InputError, RefusedError
from envbuild.model.project import Layer
from envbuild.render.nextstep import install_command

if TYPE_CHECKING:
    from lockworld import World

    from envbuild.model.report import LockReport

ANY = pyproject("torch", "six", torch=">=2")


def torch_of(world: World) -> str:
    return versions(pylocked(world.read("lockfiles/pylock.cu128.toml")))["torch"]


def with_uv(lines: str, text: str = ANY) -> str:
    return text.replace("package = false", f"package = false\n{lines}")


def lock_twice(world: World) -> LockReport:
    report = world.lock()
    before = world.files()
    world.lock()
    assert world.files() == before
    world.uv("lock", "--check")
    return report


def test_a_constraint_of_the_user_binds_and_stays(world: World) -> None:
    world.write(with_uv('constraint-dependencies = ["torch<2.8"]'))
    lock_twice(world)
    assert torch_of(world) == "2.7.0+cu128"
    assert '"torch<2.8"' in world.read("pyproject.toml")


def test_an_exact_constraint_binds_the_first_lock_and_is_said_to_go(world: World) -> None:
    world.write(with_uv('constraint-dependencies = ["torch==2.7.0"]'))
    lock_twice(world)
    assert torch_of(world) == "2.7.0+cu128"
    [note] = world.notes
    assert '`torch = "2.7.0"` in the target is what stays' in note


def test_a_constraint_that_nothing_fits_is_named(world: World) -> None:
    world.write(with_uv('constraint-dependencies = ["torch<1"]'))
    with pytest.raises(RefusedError, match=r"within .* and `torch<1`"):
        world.lock()


def test_the_address_of_a_wheel_of_torch_names_its_version(world: World) -> None:
    page = "https://download.pytorch.org/whl/cu128"
    wheel = f"{page}/torch-2.7.0%2Bcu128-cp311-cp311-manylinux_2_28_x86_64.whl"
    world.write(pyproject(f"torch @ {wheel}", torch=">=2"))
    world.lock()
    assert torch_of(world) == "2.7.0+cu128"


def test_extras_and_groups_are_part_of_what_to_type_next(world: World) -> None:
    more = (
        'extras = ["Train"]\ngroups = ["test", "dev"]\n'
        '[project.optional-dependencies]\ntrain = ["torch"]\n'
        '[dependency-groups]\ntest = ["six"]\ndev = ["six"]\n'
    )
    world.write(pyproject("six", more=more))
    command = install_command(lock_twice(world))
    assert command == "uv sync --extra train --group test"
    dry = world.uv(*command.split()[1:], "--locked", "--dry-run").stderr
    assert " + torch==2.7.0+cu128" in dry


def test_a_set_without_torch_says_so(world: World) -> None:
    world.write(pyproject("six", "torch ; python_version < '3.9'"))
    notes = lock_twice(world).targets[0].notes
    assert notes[-1] == "nothing asks for torch on this target: it is bound, but not in the set"


def test_extras_that_exclude_each_other_are_to_be_declared(world: World) -> None:
    extras = '[project.optional-dependencies]\none = ["numpy<2"]\ntwo = ["numpy>=2"]\n'
    world.write(pyproject("torch", more=extras).replace('"p"', '"own"'))
    with pytest.raises(RefusedError) as caught:
        world.lock()
    assert "`conflicts` of [tool.uv]" in (caught.value.hint or "")


def test_a_project_that_is_called_torch(world: World) -> None:
    text = pyproject("torch")
    name = text.partition('name = "')[2].partition('"')[0]
    world.write(text.replace(f'name = "{name}"', 'name = "Torch"'))
    with pytest.raises(InputError, match="the name of a package that is locked for it"):
        world.lock()


@pytest.mark.parametrize("members", ['["*"]', '["./proj*/"]', '["**/project"]'])
def test_a_member_of_a_workspace_is_refused(world: World, members: str) -> None:
    above = world.root.parent / "pyproject.toml"
    above.write_text(f'[tool.uv.workspace]\nmembers = {members}\nexclude = ["other"]\n')
    world.write(ANY)
    with pytest.raises(InputError, match="is a member of the workspace in") as caught:
        world.lock()
    assert f'exclude = ["{world.root.name}"]' in (caught.value.hint or "")


OUTSIDE = (
    'members = ["*"]\nexclude = ["*"]',
    'members = ["libs/*"]',
    "members = 3",
    "nonsense",
)


@pytest.mark.parametrize("workspace", OUTSIDE)
def test_a_project_beside_a_workspace_is_locked(world: World, workspace: str) -> None:
    above = world.root.parent / "pyproject.toml"
    above.write_text(f"[tool.uv.workspace]\n{workspace}\n")
    world.write(pyproject("six"))
    assert world.lock(dry_run=True).layer is Layer.PROJECT
