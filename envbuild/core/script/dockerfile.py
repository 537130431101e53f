"""A Dockerfile: the same install script, in layers that are built anew only where they must."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import cache
from posixpath import normpath
from typing import TYPE_CHECKING, Any

from envbuild.core.packagefile import package_text
from envbuild.core.script.generated import header_lines, identified
from envbuild.core.script.shell import comment, quote
from envbuild.model.plan import Compile

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.model.lock import TargetLock
    from envbuild.model.plan import InstallPlan

VENV = "/opt/venv"
PYTHONS = "/opt/python"
_USER = 10001
_UV = "ghcr.io/astral-sh/uv"


@dataclass(frozen=True, kw_only=True, slots=True)
class DockerSource:
    """What a Dockerfile is made from; paths are relative to the project, the build's context.

    ``script`` is the install script; ``files`` and ``folders`` are what it reads besides.
    ``base`` is the image that the result stands on, None for a plain Ubuntu. ``needs_project``
    says whether the project itself is installed. ``envbuild`` is the requirement of the doctor.
    """

    plan: InstallPlan
    lock: TargetLock
    script: str
    envbuild: str
    files: tuple[str, ...]
    folders: tuple[str, ...] = ()
    base: str | None = None
    needs_project: bool = False
    options: tuple[str, ...] = ()


@cache
def _images() -> dict[str, Any]:
    text = package_text("envbuild.core", "images.toml")
    return tomllib.loads(text)


def base_image(lock: TargetLock) -> str:
    """Return the slim image that the wheels run on: they bring CUDA, the host the driver."""
    return f"ubuntu:{_ubuntu(lock.cuda or '')}"


def toolkit_image(lock: TargetLock, oldest_nvcc: str | None = None) -> str:
    """Return the image that has nvcc: of torch's CUDA, or the first that knows the GPUs."""
    cuda = lock.cuda or ""
    if oldest_nvcc is not None and _number(oldest_nvcc) > _number(cuda):
        cuda = oldest_nvcc
    patch = _images()["cuda"].get(cuda, f"{cuda}.0")
    return f"nvidia/cuda:{patch}-devel-ubuntu{_ubuntu(lock.cuda or '')}"


def _ubuntu(cuda: str) -> str:
    table: dict[str, str] = _images()["ubuntu"]
    return table.get(cuda, table["default"])


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def render_dockerfile(source: DockerSource) -> str:
    """Render the Dockerfile; the same source gives the same bytes."""
    header = header_lines(source.plan, command="dockerfile", options=source.options)
    lines = ["# syntax=docker/dockerfile:1", *header]
    lines += [
        "#",
        comment(f"docker build -f scripts/Dockerfile.{source.plan.target} -t NAME ."),
        "# Build arguments: REGISTRY (a mirror of Docker Hub, with a slash at its end), UV_IMAGE,",
        "# BASE_IMAGE, BUILD_IMAGE, BUILD_PACKAGES (of apt, for what is compiled), ENVBUILD (the",
        "# requirement that brings the doctor), UV_PYTHON_PREFERENCE=only-system where both images",
        "# have the Python of the lock, UV_PYTHON_INSTALL_MIRROR, ENVBUILD_ALLOW_UNHASHED=1 where",
        "# the lock lacks hashes and that is accepted.",
    ]
    for stage in (_arguments, _build, _runtime):
        lines += ["", *stage(source)]
    return identified("\n".join(lines) + "\n")


def _compiles(source: DockerSource) -> bool:
    return any(isinstance(step, Compile) for step in source.plan.steps)


def _arguments(source: DockerSource) -> Iterator[str]:
    plan = source.plan
    named = source.base or plan.base
    base, registry = (named, "") if named else (base_image(source.lock), "${REGISTRY}")
    yield "ARG REGISTRY="
    yield f"ARG UV_IMAGE={_UV}:{_images()['uv']}"
    yield f"ARG BASE_IMAGE={registry}{base}"
    if _compiles(source) and source.lock.cuda is not None and plan.base is None:
        yield "# Only this stage has the toolkit; nothing of it but what was compiled is kept."
        image = toolkit_image(source.lock, plan.needs.oldest_nvcc)
        yield f"ARG BUILD_IMAGE=${{REGISTRY}}{image}"
    else:
        yield "ARG BUILD_IMAGE=${BASE_IMAGE}"
    yield ""
    yield "FROM ${UV_IMAGE} AS uv"


def _build(source: DockerSource) -> Iterator[str]:
    plan = source.plan
    yield "FROM ${BUILD_IMAGE} AS build"
    packages = "ca-certificates"
    if plan.needs.compiler:
        packages += " g++"
    if plan.needs.git:
        packages += " git"
    yield "ARG BUILD_PACKAGES="
    made = f"mkdir -p {PYTHONS}" if plan.base is None else ""
    yield from _packages(f"{packages} $BUILD_PACKAGES", also=made)
    yield "COPY --from=uv /uv /usr/local/bin/uv"
    if plan.base is None:
        yield "# Python comes from uv too: the same build of it on every base image."
        yield "ARG UV_PYTHON_PREFERENCE=only-managed"
        yield "ARG UV_PYTHON_INSTALL_MIRROR"
        yield f"ENV UV_PYTHON_INSTALL_DIR={PYTHONS} UV_LINK_MODE=copy"
    else:
        yield "ENV UV_LINK_MODE=copy"
    yield "WORKDIR /app"
    yield "# What the install reads and nothing else: a change of the source builds nothing anew."
    for path in (*source.files, source.script):
        yield _copy(path, path.rpartition("/")[0])
    for path in source.folders:
        yield _copy(path, path)
    yield "ARG ENVBUILD_ALLOW_UNHASHED="
    yield from _install(source, "--no-install-project" if source.needs_project else "")
    if source.needs_project:
        yield "COPY . ."
        yield from _install(source, "")


def _copy(path: str, folder: str) -> str:
    goal = f"./{folder}".rstrip("/") + "/"
    return f"COPY {json.dumps([path, goal], ensure_ascii=False)}"


def _install(source: DockerSource, option: str) -> Iterator[str]:
    yield "RUN --mount=type=cache,target=/root/.cache/uv \\"
    yield "    --mount=type=cache,target=/root/.cache/envbuild \\"
    words = f"sh {quote(source.script)} --project /app --venv {VENV} {option}".rstrip()
    yield f'    ENVBUILD_ALLOW_UNHASHED="$ENVBUILD_ALLOW_UNHASHED" {words}'


def _packages(names: str, *, also: str = "") -> Iterator[str]:
    yield "# In the versions that the archive has by now; it keeps no older ones."
    yield "# hadolint ignore=DL3008"
    yield "RUN apt-get update \\"
    yield "    && DEBIAN_FRONTEND=noninteractive TZ=Etc/UTC apt-get install -y \\"
    yield f"        --no-install-recommends {names} \\"
    yield "    && rm -rf /var/lib/apt/lists/*" + (f" && {also}" if also else "")


def _runtime(source: DockerSource) -> Iterator[str]:
    plan = source.plan
    yield "FROM ${BASE_IMAGE} AS runtime"
    yield f"LABEL org.opencontainers.image.title={json.dumps(plan.target)} \\"
    yield f"    envbuild.target={json.dumps(plan.target)} \\"
    yield f"    envbuild.lock={json.dumps(plan.lock)} \\"
    yield f'    envbuild.lock.sha256="{plan.lock_sha256}"'
    if any(package.name == "triton" for package in source.lock.packages):
        yield "# triton compiles its launchers with the host's compiler when a model runs."
        yield from _packages("ca-certificates gcc libc6-dev")
    yield f"RUN useradd --create-home --uid {_USER} app"
    if plan.base is None:
        yield f"COPY --from=build {PYTHONS} {PYTHONS}"
    yield f"COPY --from=build {VENV} {VENV}"
    yield f"ENV VIRTUAL_ENV={VENV} PATH={VENV}/bin:$PATH \\"
    yield "    NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility"
    yield "WORKDIR /app"
    yield "COPY --chown=app:app . ."
    yield "# A number, so that who runs the image can tell that it is not root."
    yield f"USER {_USER}"
    yield f"ARG ENVBUILD={json.dumps(source.envbuild)}"
    yield "# The doctor looks at what was built, and leaves nothing behind."
    yield "RUN --mount=from=uv,source=/uv,target=/usr/local/bin/uv \\"
    yield f"    --mount=type=cache,target=/tmp/uv-cache,uid={_USER} \\"
    yield "    UV_CACHE_DIR=/tmp/uv-cache UV_TOOL_DIR=/tmp/uv-cache/tools \\"
    yield '    uv tool run --no-config --from "$ENVBUILD" \\'
    yield f"        envbuild doctor {VENV} --project /app --fail-on error"


def render_ignore(source: DockerSource) -> str:
    """Render what is kept out of the build's context; Docker reads it beside the Dockerfile."""
    header = header_lines(source.plan, command="dockerfile", options=source.options)
    kept_out = (
        ".git",
        "**/.venv",
        "**/venv",
        "**/__pycache__",
        "**/*.egg-info",
        "**/.*_cache",
        "**/.env",
        "**/.netrc",
    )
    wanted = [normpath(path) for path in (*source.files, *source.folders, source.script)]
    return identified("\n".join([*header, *kept_out, *(f"!{path}" for path in wanted)]) + "\n")
