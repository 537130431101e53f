"""``requirements.<target>.txt``: the locked set for `pip install --require-hashes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from envbuild.model.lock import Pinned, TargetLock

PYPI_URL = "https://pypi.org/simple"


def render_requirements(lock: TargetLock, *, default_index: str = PYPI_URL) -> str:
    """Render the strict pins with their hashes and the pages that serve them.

    Pages other than the default index stand as ``--find-links``: pip and uv then look there for
    these files only, and no package of the default index can be shadowed by an old copy.
    """
    accelerator = f"CUDA {lock.cuda}" if lock.cuda else "CPU"
    file = f"requirements.{lock.target}.txt"
    lines = [
        f"# envbuild lock: target {lock.target}",
        f"# Python {lock.python}, {lock.platform}, {accelerator}",
        f"# uv pip sync {file}   or   pip install --no-deps -r {file}",
        f"--index-url {default_index}",
    ]
    pages = {_page(package) for package in lock.packages if _elsewhere(package, default_index)}
    lines += [f"--find-links {page}" for page in sorted(pages)]
    for package in lock.packages:
        lines += _entry(package)
    return "\n".join(lines) + "\n"


def _elsewhere(package: Pinned, default_index: str) -> bool:
    return not package.direct and package.index not in ("", default_index)


def _page(package: Pinned) -> str:
    return package.index if package.flat else f"{package.index.rstrip('/')}/{package.name}/"


def _entry(package: Pinned) -> list[str]:
    pin = f"{package.name}=={package.version}"
    if package.direct:
        pin = f"{package.name} @ {package.artifacts[0].url}"
    if package.marker is not None:
        pin += f" ; {package.marker}"
    if not package.hashed:
        return [f"{pin}  # unhashed: the lock is incomplete"]
    hashes = sorted({f"    --hash=sha256:{artifact.sha256}" for artifact in package.artifacts})
    return [" \\\n".join([pin, *hashes])]


def parse_requirements(text: str) -> dict[str, str]:
    """Return the pinned version (or address) of each requirement that the file holds."""
    pins: dict[str, str] = {}
    for line in text.replace("\\\n", " ").splitlines():
        entry = line.partition(" --hash=")[0].partition("  #")[0].strip()
        if entry and not entry.startswith(("#", "-")):
            try:
                requirement = Requirement(entry)
            except InvalidRequirement:
                continue
            pin = requirement.url or str(requirement.specifier).removeprefix("==")
            pins[canonicalize_name(requirement.name)] = pin
    return pins
