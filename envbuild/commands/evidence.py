"""The facts that rules ask for, read when first needed and never twice."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from envbuild.core.project.doctor import DoctorTable, parse_doctor_table
from envbuild.errors import EnvbuildError
from envbuild.model.builds import Builds
from envbuild.model.host import Host
from envbuild.model.installed import Installed, Ownership
from envbuild.model.layers import Aim, Layers
from envbuild.model.links import DeviceCodes, Links
from envbuild.ports import Facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from envbuild.model.target import Gpu
    from envbuild.ports import Examiner

    Kind = TypeVar("Kind")

_NO_GPU = "no GPU was named and none was found: `--gpu NAME`"
_NO_PROJECT = "no project is around the environment: `--project DIR`"
# What reading takes longest stands last.
_READS = {
    Installed: "packages",
    Layers: "locks",
    Host: "host",
    Ownership: "files",
    Links: "symbols",
    DeviceCodes: "GPU code",
}
_PLACES = {kind: place for place, kind in enumerate(_READS, start=1)}


class Evidence:
    """Facts by their type, with the reason for each that is absent and the time each took."""

    def __init__(
        self,
        examiner: Examiner,
        facts: Facts,
        *,
        gpus: tuple[Gpu, ...] = (),
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._examiner = examiner
        self._gpus = gpus
        self._clock = clock
        self._found: dict[type, object] = {Facts: facts}
        self._absent: dict[type, str] = {}
        self._timings: dict[str, float] = {}
        started = clock()
        self.installed = examiner.installed()
        self._timings[_READS[Installed]] = clock() - started
        self._found[Installed] = self.installed
        where = examiner.manifest(self.installed)
        self.project, manifest = where or ("", "")
        self.table = parse_doctor_table(manifest) if manifest else DoctorTable()

    @property
    def timings(self) -> tuple[tuple[str, float], ...]:
        """What was done, with the seconds that it took."""
        return tuple(self._timings.items())

    def timed(self, what: str, do: Callable[[], Kind]) -> Kind:
        """Do something and note how long it took."""
        started = self._clock()
        try:
            return do()
        finally:
            self._timings[what] = self._timings.get(what, 0.0) + self._clock() - started

    def first_absent(self, kinds: Iterable[type]) -> type | None:
        """Return a type of fact that cannot be had, before those are read that take longer."""
        longest_last = sorted(kinds, key=lambda kind: _PLACES.get(kind, 0))
        return next((kind for kind in longest_last if self._get(kind) is None), None)

    def gather(self, kinds: Iterable[type]) -> dict[type, object]:
        """Return the facts of some types, without those that cannot be had."""
        found = {kind: self._get(kind) for kind in dict.fromkeys(kinds)}
        return {kind: value for kind, value in found.items() if value is not None}

    def get(self, kind: type[Kind]) -> Kind | None:
        """Return the fact of one type, None where it cannot be had."""
        value = self._get(kind)
        return value if isinstance(value, kind) else None

    def why_absent(self, kind: type) -> str:
        """Return why a fact cannot be had."""
        return self._absent.get(kind, f"nothing reads {kind.__name__}")

    def _get(self, kind: type) -> object | None:
        if kind not in self._found and kind not in self._absent:
            try:
                value = self._read(kind)
            except EnvbuildError as error:
                self._absent[kind] = error.message
            else:
                if value is not None:
                    self._found[kind] = value
                    return value
                self._absent.setdefault(kind, self.why_absent(kind))
        return self._found.get(kind)

    def _read(self, kind: type) -> object | None:
        if kind is Aim:
            return self._aim()
        if kind is Builds:  # rules that ask for it are chosen only where something is built
            return Builds(packages=self.table.builds, source="[tool.envbuild.build]")
        readers: dict[type, Callable[[Installed], object | None]] = {
            Ownership: self._examiner.ownership,
            Links: self._examiner.links,
            DeviceCodes: self._examiner.device_codes,
            Layers: self._examiner.layers,
            Host: self._examiner.host,
        }
        reader = readers.get(kind)
        if reader is None:
            return None
        found = self.timed(_READS[kind], lambda: reader(self.installed))
        if found is None:
            self._absent[kind] = _NO_PROJECT
        return found

    def _aim(self) -> Aim | None:
        """Return the GPUs that the user names, else the project, else those of the machine."""
        host = None if self._gpus or self._target()[1] else self.get(Host)
        gpus, source, unknown = self._gpus, "--gpu", ""
        if not gpus:
            target, gpus = self._target()
            unknown = self._unknown(target)
            source = f"target `{target}` of pyproject.toml{unknown}"
        if not gpus and host is not None:
            gpus, source = host.gpus, "this machine"
        if not gpus:
            self._absent[Aim] = f"{_NO_GPU}{unknown}"
            return None
        capabilities = dict.fromkeys(gpu.capability for gpu in gpus)
        return Aim(capabilities=tuple(capabilities), source=source)

    def _unknown(self, target: str) -> str:
        """Say which GPUs of a target are judged by nothing, since their names are not known."""
        names = dict(self.table.unknown).get(target, ())
        words = ", ".join(f"`{name}`" for name in names)
        return f"; no GPU is known by the name {words}" if words else ""

    def _target(self) -> tuple[str, tuple[Gpu, ...]]:
        """Return the target that the environment was installed for, if that can be told."""
        targets = self.table.gpus
        if len(targets) == 1:
            return targets[0]
        if not targets:
            return ("", ())
        from envbuild.core.repair.bylock import chosen_lock  # noqa: PLC0415 - rarely needed

        layers = self.get(Layers)
        lock = chosen_lock(layers, self.installed)
        own = layers.default_target if layers and lock is layers.uv_lock else ""
        name = (lock.target or own) if lock else ""
        return next((one for one in targets if one[0] == name), ("", ()))
