"""Bring a virtual environment to exactly a lock; a run that is broken off is put right later."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from envbuild.model.installed import UNFINISHED
from envbuild.world.environment import read_environment
from envbuild.world.interrupts import scratch_folder
from envbuild.world.mend import broken_names, remove_halves, remove_strays
from envbuild.world.systemlibs import running_glibc
from envbuild.world.uvcommand import UvCommand, changed_name, changes_in
from envbuild.world.venv import (
    VenvState,
    clear,
    refuse_absent,
    refuse_stranger,
    show_base,
    venv_state,
)
from envbuild.world.venvlock import held_environment, patience_of, unwritable
from envbuild.world.wheelcache import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from envbuild.errors import WorldError
    from envbuild.model.installed import Installed
    from envbuild.model.plan import InstallLock


class VenvInstaller:
    """The environment of a project; see `envbuild.ports.Installer`."""

    def __init__(
        self, *, project: Path, venv: Path, environ: Mapping[str, str], offline: bool = False
    ) -> None:
        self._venv = venv
        self._seen: Installed | None = None
        self._patience = patience_of(environ)
        self.uv = UvCommand(project=project, venv=venv, environ=environ, offline=offline)

    def make_environment(self, python: str, *, base: str | None = None) -> bool:
        """Make the environment unless there is a fitting one; see `envbuild.ports.Installer`."""
        state = venv_state(self._venv, python, sees_base=base is not None)
        if state is VenvState.FITTING:
            return False
        words = ["--allow-existing", "--no-project", "--python", base or python]
        if base is not None:
            words += ["--system-site-packages"]
            refuse_absent(base)
        if state is VenvState.UNFIT:
            self._cleared()
        self.uv.run("venv", *words, str(self._venv))
        self.forget()
        if base is not None:
            show_base(base, self._venv, python)
        return True

    def glibc(self) -> str | None:
        """Return the version of the machine's glibc; see `envbuild.ports.Installer`."""
        return running_glibc()

    @contextmanager
    def held(self, tell: Callable[[str], None]) -> Iterator[None]:
        """Keep other runs away; see `envbuild.ports.Installer`."""
        refuse_stranger(self._venv)
        with held_environment(self._venv, patience=self._patience, tell=tell) as lock:
            self.uv.passed_on = () if lock is None else (lock,)
            try:
                yield
            finally:
                self.uv.passed_on = ()
            with suppress(OSError):
                (self._venv / UNFINISHED).unlink()

    def _cleared(self) -> None:
        try:
            clear(self._venv)
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> WorldError:
        return unwritable(self._venv, error)

    def installed(self) -> Installed:
        """Read what is in the environment; asked again it is read again only after a change."""
        if self._seen is None:
            self._seen = read_environment(str(self._venv), environ={})
        return self._seen

    def forget(self) -> None:
        """Note that the environment was changed."""
        self._seen = None

    def mend(self) -> tuple[str, ...]:
        """Clear away what is half there, and return the packages to be installed again."""
        broken_off = self._begun()
        for site in self._venv.glob("lib/python*/site-packages"):
            remove_halves(site)
        self.forget()
        installed = self.installed()
        if broken_off:
            remove_strays(installed)
            self.forget()
        return broken_names(installed)

    def _begun(self) -> bool:
        """Note that something is changed from here on; return whether a run was broken off."""
        path = self._venv / UNFINISHED
        broken_off = path.exists()
        try:
            path.open("a").close()
        except OSError as error:
            raise self._unwritable(error) from None
        return broken_off

    def install_lock(self, step: InstallLock, *, reinstall: tuple[str, ...]) -> tuple[str, ...]:
        """Install exactly the lock and return what changed; built packages that fit may stay.

        uv takes away what the lock does not hold, built packages included: where that is all
        that it would do, it is not asked.
        """
        built = {one.name for one in self.installed().distributions if key_of(one.origin)}
        again = [word for name in reinstall for word in ("--reinstall-package", name)]
        with scratch_folder() as config:
            words, folder = self._words(step, config)
            if built and not reinstall:
                plan = self.uv.attempt(*words, "--dry-run", config=folder)
                changes = changes_in(plan.stderr)
                if plan.returncode == 0 and all(
                    one.startswith("- ") and changed_name(one) in built for one in changes
                ):
                    return ()
            self.forget()
            done = self.uv.run(*words, *again, config=folder)
        return changes_in(done.stderr)

    def preview(self, step: InstallLock) -> tuple[str, ...] | None:
        """Return what `install_lock` would change, None where there is no environment yet."""
        if not (self._venv / "pyvenv.cfg").is_file():
            return None
        with scratch_folder() as config:
            words, folder = self._words(step, config)
            done = self.uv.run(*words, "--dry-run", config=folder)
        return changes_in(done.stderr)

    def _words(self, step: InstallLock, config: Path) -> tuple[list[str], Path | None]:
        if step.by_project:
            python = ".".join(self.installed().python.split(".")[:2])
            return ["sync", "--locked", "--exact", "--python", python, *step.options], config
        words = ["pip", "sync", "--python", self.uv.python, "--require-hashes"]
        return [*words, "--allow-empty-requirements", step.pylock], None
