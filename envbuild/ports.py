"""What the pure parts ask of the world, as small Protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from envbuild.model.cuda import CudaVersion
    from envbuild.model.facts import DeviceCode, Pairing, SymbolSpan, TorchBuild
    from envbuild.model.host import Host
    from envbuild.model.installed import Installed, Ownership
    from envbuild.model.layers import Layers
    from envbuild.model.links import DeviceCodes, Links
    from envbuild.model.lock import Artifact
    from envbuild.model.plan import Compile, InstallLock, Variable
    from envbuild.model.resolution import Resolution, ResolveRequest, Unavailable, Unsatisfiable
    from envbuild.model.target import Platform
    from envbuild.model.wheel import IndexPage, PageKind, WheelFile


class WheelSource(Protocol):
    """Index pages, from the live hosts or from the embedded catalog."""

    def wheels(self, page: IndexPage, project: str) -> tuple[WheelFile, ...]:
        """Return the wheels of a project on a page; empty when the page or project is absent.

        Raises WorldError when the page exists and could not be read.
        """
        ...

    def requires_dist(self, wheel: WheelFile) -> tuple[str, ...] | None:
        """Return the wheel's requirements (PEP 508), or None when they cannot be known."""
        ...

    def sha256(self, wheel: WheelFile) -> str | None:
        """Return the wheel's hash, computing it from the bytes if need be; None if unreachable."""
        ...

    def sdist(self, page: IndexPage, project: str, version: str) -> Artifact | None:
        """Return the sdist of a release with its hash, or None where the page has none.

        Raises WorldError when the page or, where it states no hash, the file cannot be read.
        """
        ...


class Facts(Protocol):
    """What is known about builds from their bytes; always the embedded catalog's."""

    @property
    def date(self) -> str:
        """The day the facts were collected (ISO 8601)."""
        ...

    def pages(self, kind: PageKind) -> tuple[str, ...]:
        """Return the keys of the known index pages of one kind, newest first."""
        ...

    def torch_builds(self) -> tuple[TorchBuild, ...]:
        """Return every known CUDA and CPU build of torch, newest first."""
        ...

    def torch_build(self, public: str, cuda: CudaVersion | None) -> TorchBuild | None:
        """Return what is known of one build of torch."""
        ...

    def device_code(self, filename: str) -> DeviceCode | None:
        """Return the GPU code of a wheel, of this very file or of its release; None if unknown."""
        ...

    def pairing(self, project: str, version: str) -> Pairing | None:
        """Return which torch a release of torchaudio, torchcodec, xformers ... works with."""
        ...

    def pairings(self, project: str) -> tuple[Pairing, ...]:
        """Return every known pairing of a project, newest release first."""
        ...

    def torch_needs(self, public: str, library: str) -> tuple[str, ...] | None:
        """Return the symbols that a torch release imports from ``nccl``, ``cudnn`` ...

        None when the release was not examined.
        """
        ...

    def nccl_first_version(self, symbol: str, *, cuda_major: int) -> str | None:
        """Return the first NCCL version that exports a symbol, for one CUDA major."""
        ...

    def nccl_versions(self, *, cuda_major: int) -> tuple[str, ...]:
        """Return every NCCL version that was examined, oldest first."""
        ...

    def symbol_span(self, symbol: str, *, library: str) -> SymbolSpan | None:
        """Return between which releases a library (``libcudnn.so.9``) exports a symbol.

        None where it is not known, or was there all the time.
        """
        ...

    def shared_paths(self, a: str, b: str) -> tuple[str, ...]:
        """Return paths that two distributions both own with different content.

        Arguments are project names; the answer is empty when nothing is known.
        """
        ...

    def minimum_driver(self, cuda: CudaVersion, platform: Platform) -> str | None:
        """Return the oldest driver that runs a CUDA version, ``525.60.13`` say."""
        ...


class Reporter(Protocol):
    """Hears how far a command is; a method that is not overridden does nothing.

    Whoever makes a reporter also ends it: a command only speaks to it. Any method may be called
    from any thread.
    """

    def phase(self, text: str) -> None:
        """Say what begins now (``resolve cu128 with uv``)."""

    def candidate(self, label: str, number: int) -> None:
        """Say which candidate is tried, counted from 1."""

    def download(self, name: str, done_bytes: int, total_bytes: int | None) -> None:
        """Say how much of a file has come; equal numbers mean that it is complete."""

    def note(self, text: str) -> None:
        """Tell the user one line that is worth knowing and is not the answer."""


class Resolver(Protocol):
    """uv, asked for one scratch project at a time."""

    def resolve(self, request: ResolveRequest) -> Resolution | Unsatisfiable | Unavailable:
        """Resolve a scratch project.

        Raises WorldError when uv fails for another reason than the requirements.
        """
        ...


class Files(Protocol):
    """The project's folder."""

    @property
    def root(self) -> Path:
        """The folder itself."""
        ...

    def read(self, path: str) -> str | None:
        """Return the text of a file of the folder, or None where there is none."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether a file or folder of that name is there."""
        ...

    def check_writable(self) -> None:
        """Raise WorldError when the folder cannot be written to."""
        ...

    def write_all(self, texts: Mapping[str, str | None]) -> None:
        """Write all files or none; a file whose text is None is removed."""
        ...


class Examiner(Protocol):
    """Reads one environment and what is around it, and judges nothing.

    What is asked for twice is read once by whoever asks. Each method raises InputError or
    WorldError where nothing can be read.
    """

    def installed(self) -> Installed:
        """Read which distributions there are; the other methods are given the answer."""
        ...

    def ownership(self, installed: Installed) -> Ownership:
        """Read which files the distributions share, and which are gone."""
        ...

    def links(self, installed: Installed) -> Links:
        """Read what the dynamic loader would find."""
        ...

    def device_codes(self, installed: Installed) -> DeviceCodes:
        """Read the GPU code of the shared objects."""
        ...

    def layers(self, installed: Installed) -> Layers | None:
        """Read the locks of the project around the environment; None where there is none."""
        ...

    def host(self, installed: Installed) -> Host:
        """Read the machine, or the image."""
        ...

    def manifest(self, installed: Installed) -> tuple[str, str] | None:
        """Return the folder of that project and the text of its pyproject.toml, if it has one."""
        ...


class BaseReader(Protocol):
    """Reads the base that a target is locked around."""

    def installed(self, path: str | None, *, root: str | None = None) -> Installed:
        """Return what an interpreter sees, one of this machine or one inside an unpacked image.

        Without a path it is the first that the image has where images have theirs. Raises
        InputError or WorldError where nothing can be read.
        """
        ...


class RepairRunner(Protocol):
    """Carries out one command of a repair plan."""

    def run(self, command: tuple[str, ...]) -> int:
        """Return the exit status; what the command says goes to stderr as it comes.

        Raises WorldError where it cannot be started.
        """
        ...


class Installer(Protocol):
    """The environment that a lock is installed into."""

    def make_environment(self, python: str, *, base: str | None = None) -> bool:
        """Make the environment unless a fitting one is there; return whether it was made.

        With ``base``, an interpreter, it sees all that this one does.
        """
        ...

    def glibc(self) -> str | None:
        """Return the version of the machine's glibc, None under another C library."""
        ...

    def held(self, tell: Callable[[str], None]) -> AbstractContextManager[None]:
        """Keep other runs away from here on; ``tell`` is told where one is waited for.

        Raises InputError where the folder holds anything but an environment, WorldError where
        the other run does not end.
        """
        ...

    def installed(self) -> Installed:
        """Read what is in the environment."""
        ...

    def mend(self) -> tuple[str, ...]:
        """Clear away what is half there, and return the packages to be installed again.

        From here on the environment counts as unfinished, until it is no longer held.
        """
        ...

    def install_lock(self, step: InstallLock, *, reinstall: tuple[str, ...]) -> tuple[str, ...]:
        """Install exactly the lock, and return what changed as uv writes it."""
        ...

    def preview(self, step: InstallLock) -> tuple[str, ...] | None:
        """Return what that would change, None where there is no fitting environment yet."""
        ...


class Builder(Protocol):
    """Compiles the packages that no index serves."""

    def ensure(
        self, step: Compile, common: tuple[Variable, ...], *, may_build: bool, again: bool
    ) -> str:
        """Have a package installed as it would be built now; ``common`` holds for every build.

        ``again`` is True where files of it are gone, so that it is not kept as it is.
        Returns ``kept``, ``cached``, ``built``, or ``left out`` where it may not be built.
        """
        ...
