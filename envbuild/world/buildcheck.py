"""Read what one package brought into an environment, to judge its build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.core.buildcheck import BuiltPackage
from envbuild.errors import WorldError
from envbuild.world.binaries import read_device_codes, read_links
from envbuild.world.sharedobjects import is_shared_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.model.installed import Distribution, Installed
    from envbuild.world.rootfs import Root


def read_built(
    installed: Installed, project: str, *, root: Root, environment: Mapping[str, str]
) -> BuiltPackage:
    """Read an installed package; raise WorldError where it is not there."""
    one = installed.find(project)
    if one is None:
        raise WorldError(f"`{project}` was built and installed, and is not in {installed.prefix}")
    objects = _objects(one)
    # An extension finds torch's libraries because `import torch` loaded them before.
    torch = _objects(found) if (found := installed.find("torch")) is not None else ()
    return BuiltPackage(
        name=one.name,
        version=one.version,
        objects=objects,
        links=read_links(installed, root=root, environment=environment, paths=(*torch, *objects)),
        codes=read_device_codes(installed, root=root, paths=objects),
        pure=bool(one.tags) and all(tag.endswith("-none-any") for tag in one.tags),
    )


def _objects(one: Distribution) -> tuple[str, ...]:
    paths = (entry.path for entry in one.record or ())
    return tuple(sorted(f"{one.site}/{path}" for path in paths if is_shared_object(path)))
