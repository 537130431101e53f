"""What a project asks for on one target."""

from __future__ import annotations

from dataclasses import replace

from fakes import project, target
from packaging.markers import default_environment
from packaging.requirements import Requirement

from envbuild.core.wanted import (
    accepts,
    accepts_release,
    asked,
    environment_for,
    optional_for,
    wanted_for,
)
from envbuild.model.project import DeclaredRequirement, Layer
from envbuild.model.target import Platform


def test_the_environment_sets_every_variable_of_pep_508() -> None:
    assert environment_for(target()).keys() == {*default_environment(), "extra"}


def test_markers_are_judged_for_the_target() -> None:
    where = target(python="3.10", platform=Platform.LINUX_AARCH64)
    found = wanted_for(
        project(
            where,
            "Torch_Scatter==2.1.2; platform_machine == 'aarch64'",
            "spconv; python_version >= '3.11'",
            "xformers; sys_platform == 'win32'",
        ),
        where,
        [Requirement("torch-scatter>2"), Requirement("vllm; extra == 'gpu'")],
    )
    assert [str(r) for r in found["torch-scatter"]] == [
        'Torch_Scatter==2.1.2; platform_machine == "aarch64"',
        "torch-scatter>2",
    ]
    assert found.keys() == {"torch-scatter"}


def test_only_the_targets_extras_and_groups_count() -> None:
    plain = target()
    declared = [
        DeclaredRequirement(requirement=Requirement(name), where="x", group=group)
        for name, group in (("a", ""), ("b", "extra:gpu"), ("c", "group:dev"), ("d", "extra:docs"))
    ]
    whole = replace(project(plain), requirements=tuple(declared))
    assert wanted_for(whole, plain).keys() == {"a"}
    chosen = replace(plain, extras=("gpu",), groups=("dev",))
    assert wanted_for(whole, chosen).keys() == {"a", "b", "c"}


def test_local_versions_satisfy_a_public_pin_and_only_their_own_local_pin() -> None:
    where = target()
    loose = wanted_for(project(where, "torch-scatter==2.1.2"), where)
    strict = wanted_for(project(where, "torch-scatter==2.1.2+pt27cu128"), where)
    assert accepts(loose, "torch-scatter", "2.1.2+pt27cu128")
    assert accepts(strict, "torch-scatter", "2.1.2+pt27cu128")
    assert not accepts(strict, "torch-scatter", "2.1.2+pt27cu126")
    assert accepts(loose, "something-else", "1")
    assert accepts_release(strict, "torch-scatter", "2.1.2")
    assert not accepts_release(strict, "torch-scatter", "2.1.1")
    assert not accepts_release(loose, "torch-scatter", "2.1.3")
    assert (asked(loose, "torch-scatter"), asked(loose, "torch")) == (
        "torch-scatter==2.1.2",
        "torch",
    )


def test_the_default_groups_of_uv_count_too() -> None:
    plain = target()
    declared = [
        DeclaredRequirement(requirement=Requirement(name), where="x", group=group)
        for name, group in (("a", ""), ("b", "group:dev"), ("c", "group:my-docs"))
    ]
    groups = "[dependency-groups]\ndev = []\nMy_Docs = []\n[tool.uv]\n"
    whole = replace(project(plain), requirements=tuple(declared))
    for settings, names in (
        ("", {"a", "b"}),
        ('default-groups = ["my_docs"]', {"a", "c"}),
        ('default-groups = "all"', {"a", "b", "c"}),
        ("default-groups = []", {"a"}),
    ):
        found = wanted_for(replace(whole, text=groups + settings), plain)
        assert found.keys() == names


def test_uv_lock_also_holds_what_the_default_target_leaves_out() -> None:
    plain = target()
    declared = [
        DeclaredRequirement(requirement=Requirement(name), where="x", group=group)
        for name, group in (("a", ""), ("b", "extra:gpu"), ("c", "group:docs"))
    ]
    whole = replace(project(plain), requirements=tuple(declared))
    chosen = replace(plain, groups=("docs",))
    assert optional_for(whole, plain).keys() == {"b", "c"}
    assert optional_for(whole, chosen).keys() == {"b"}
    assert optional_for(whole, replace(plain, name="other")) == {}
    assert optional_for(replace(whole, layer=Layer.PIP), plain) == {}
