"""Dockerfiles: stages, layers that are kept, and what a committed one was made from."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import pytest
from packaging.version import Version
from test_core_plan import LOCK, POINTOPS, pinned, plan

from envbuild.cli.main import main
from envbuild.core.script.dockerfile import (
    DockerSource,
    render_dockerfile,
    render_ignore,
    toolkit_image,
)
from envbuild.core.script.generated import is_untouched, parse_header
from envbuild.core.script.plan import OLDEST_UV
from envbuild.world.uv import OLDEST

if TYPE_CHECKING:
    from envbuild.model.lock import TargetLock

EXAMPLE = Path(__file__).parent.parent / "examples" / "pointcept-blackwell"
HADOLINT = which("hadolint")
BUILT = replace(LOCK, builds=(POINTOPS,))


def source(lock: TargetLock = LOCK, **changes: object) -> DockerSource:
    made = DockerSource(
        plan=plan(lock),
        lock=lock,
        script="scripts/install-cu128.sh",
        envbuild="envbuild==1",
        files=("lockfiles/pylock.cu128.toml", "pyproject.toml"),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def stages(text: str) -> list[str]:
    return re.findall(r"^FROM \S+ AS (\w+)$", text, re.MULTILINE)


def test_only_the_stage_that_compiles_has_the_toolkit() -> None:
    text = render_dockerfile(source(BUILT, folders=("libs/pointops",)))
    assert stages(text) == ["uv", "build", "runtime"]
    assert "ARG BUILD_IMAGE=${REGISTRY}nvidia/cuda:12.8.1-devel-ubuntu24.04" in text
    assert "ARG BASE_IMAGE=${REGISTRY}ubuntu:24.04" in text
    assert "nvidia/cuda" not in render_dockerfile(source())


def test_the_toolkit_is_the_first_that_knows_the_gpus() -> None:
    assert "cuda:12.9.1-devel" in toolkit_image(LOCK, "12.9")
    assert "cuda:12.8.1-devel" in toolkit_image(LOCK, "12.8")
    assert "cuda:12.1.1-devel-ubuntu22.04" in toolkit_image(replace(LOCK, cuda="12.1"))


def test_the_uv_of_an_image_is_pinned_and_no_older_than_its_script_takes() -> None:
    found = re.search(
        r"^ARG UV_IMAGE=ghcr.io/astral-sh/uv:(\S+)$", render_dockerfile(source()), re.MULTILINE
    )
    assert found is not None
    assert Version(found[1]) >= Version(OLDEST_UV)


def test_script_and_package_take_the_same_uv() -> None:
    assert Version(OLDEST_UV).release == OLDEST
    asked = (Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8")
    assert f'"uv>={OLDEST_UV.removesuffix(".0")}"' in asked


def test_what_the_install_reads_is_copied_before_the_source() -> None:
    text = render_dockerfile(source(BUILT, folders=("libs/it's one",)))
    lock = text.index('COPY ["lockfiles/pylock.cu128.toml", "./lockfiles/"]')
    folder = text.index('COPY ["libs/it\'s one", "./libs/it\'s one/"]')
    install = text.index("sh scripts/install-cu128.sh")
    assert lock < folder < install < text.index("COPY --chown=app:app . .")


def test_nothing_of_apt_asks() -> None:
    text = render_dockerfile(
        source(replace(BUILT, packages=(*LOCK.packages, pinned("triton", "3.3.0"))))
    )
    calls = re.findall(r"RUN apt-get update.*?lists/\*", text, re.DOTALL)
    assert len(calls) == 2
    for call in calls:
        assert "DEBIAN_FRONTEND=noninteractive" in call
        assert "install -y" in call
        assert "--no-install-recommends" in call
    assert "ENV DEBIAN_FRONTEND" not in text


def test_the_result_runs_as_a_user_and_ends_with_the_doctor() -> None:
    text = render_dockerfile(source())
    assert text.index("USER 10001") < text.index("envbuild doctor /opt/venv")
    assert text.rstrip().endswith("--fail-on error")
    assert f'envbuild.lock.sha256="{plan().lock_sha256}"' in text


def test_a_base_of_the_users_is_taken_as_it_is() -> None:
    base = "registry.example.org/os@sha256:" + "0" * 64
    text = render_dockerfile(source(base=base))
    assert f"ARG BASE_IMAGE={base}\n" in text


def test_a_base_that_is_kept_brings_its_python_and_its_toolkit() -> None:
    text = render_dockerfile(source(replace(BUILT, base="nvcr.io/nvidia/pytorch:25.05-py3")))
    assert "ARG BASE_IMAGE=nvcr.io/nvidia/pytorch:25.05-py3\n" in text
    assert "ARG BUILD_IMAGE=${BASE_IMAGE}\n" in text
    assert "/opt/python" not in text


def test_the_project_itself_comes_after_its_source() -> None:
    text = render_dockerfile(source(needs_project=True))
    first, second = (m.start() for m in re.finditer("sh scripts/install-cu128.sh", text))
    assert text.index("--no-install-project") < text.index("COPY . .") < second
    assert first < text.index("COPY . .")


def test_what_is_needed_is_never_left_out() -> None:
    lines = render_ignore(source(folders=("libs/venv",))).splitlines()
    assert lines.index("**/venv") < lines.index("!libs/venv")


def test_an_edit_is_seen() -> None:
    text = render_dockerfile(source(options=("--ptx",)))
    header = parse_header(text)
    assert header is not None
    assert header.options == ("--ptx",)
    assert is_untouched(text)
    assert not is_untouched(text.replace("USER 10001", "USER root"))
    assert parse_header("FROM ubuntu\n") is None


@pytest.mark.parametrize("image", ["", "a b", "a\nRUN id", "a'b"])
def test_what_is_no_image_is_refused(image: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dockerfile", str(EXAMPLE), "--dry-run", "--base", image]) == 2
    assert "wanted the reference of an image" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["script", "dockerfile"])
def test_the_files_of_the_example_are_those_of_its_lock(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([command, str(EXAMPLE), "--check", "--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    assert (code, answer["outcome"], answer["changes"]) == (0, "fresh", [])
    assert answer["builds"] == ["pointgroup-ops", "pointops", "sharedarray"]
    assert len(answer["incomplete"]) == 4


def test_the_script_of_the_example_builds_both_extensions_and_says_what_is_incomplete() -> None:
    text = (EXAMPLE / "scripts/install-cu128.sh").read_text(encoding="utf-8")
    for name in ("pointops", "pointgroup_ops"):
        assert f"path libs/{name}" in text
    assert "default TORCH_CUDA_ARCH_LIST '10.0;12.0'" in text
    assert "UNHASHED='flash-attn, torch-cluster, torch-scatter, torch-sparse'" in text
    assert "torch-scatter @ https://data.pyg.org/whl/" in text


@pytest.mark.skipif(HADOLINT is None, reason="needs hadolint")
@pytest.mark.parametrize("lock", [LOCK, BUILT], ids=["wheels", "compiled"])
def test_hadolint_finds_nothing(lock: TargetLock, tmp_path: Path) -> None:
    path = tmp_path / "Dockerfile"
    path.write_text(render_dockerfile(source(lock)))
    found = subprocess.run([str(HADOLINT), path], capture_output=True, text=True, check=False)
    assert found.stdout == ""
