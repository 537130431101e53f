"""Find the compilers and CUDA toolkits of a host by their files; none of them is run."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from envbuild.core.toolkittext import (
    compiler_of_names,
    is_compiler,
    llvm_of_path,
    newest_of,
    parse_cuda_header,
    parse_version_json,
    parse_version_txt,
    toolkit_of_name,
    toolkit_of_release,
    wrapped_nvcc,
)
from envbuild.model.host import Compiler, Toolkit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from envbuild.model.cuda import CudaVersion
    from envbuild.model.installed import Installed
    from envbuild.world.rootfs import Root

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_DEFAULT = "/usr/local/cuda"
_HEADERS = ("include/cuda.h", "targets/x86_64-linux/include/cuda.h", "include/cuda_runtime_api.h")
_WRAPPER_SIZE = 4096
_HEADER_SIZE = 1 << 18
_NVCC = "bin/nvcc"
_MOST_COMPILERS = 200


def read_compilers(*, root: Root, environ: Mapping[str, str]) -> tuple[Compiler, ...]:
    """Return the compilers that CC, CXX and CUDAHOSTCXX name, then those on PATH."""
    found: dict[tuple[str, str], Compiler] = {}
    for path in (*_named(root=root, environ=environ), *_on_path(root=root, environ=environ)):
        try:
            key = (root.real(posixpath.dirname(path)), posixpath.basename(path))
        except OSError:
            continue
        if key not in found and root.is_file(path) and len(found) < _MOST_COMPILERS:
            found[key] = Compiler(path=path, version=_compiler_version(path, root=root))
    return tuple(found.values())


def _folders(environ: Mapping[str, str]) -> tuple[str, ...]:
    folders = (environ.get("PATH") or _PATH).split(":")
    return tuple(folder.rstrip("/") for folder in folders if folder.startswith("/"))


def _named(*, root: Root, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the compilers that variables name; a launcher may stand before (``ccache g++``)."""
    for variable in ("CUDAHOSTCXX", "CXX", "CC"):
        for word in environ.get(variable, "").split():
            if not is_compiler(posixpath.basename(word)):
                continue
            if word.startswith("/"):
                yield word
            else:
                paths = (f"{folder}/{word}" for folder in _folders(environ))
                yield from [path for path in paths if root.is_file(path)][:1]


def _on_path(*, root: Root, environ: Mapping[str, str]) -> Iterator[str]:
    for folder in _folders(environ):
        yield from (f"{folder}/{name}" for name in root.names(folder) if is_compiler(name))


def _compiler_version(path: str, *, root: Root) -> str | None:
    """Return the version in the names along the links, else of the library folder beside."""
    real = root.real(path)
    name = posixpath.basename(real)
    said = compiler_of_names((name, posixpath.basename(path))) or llvm_of_path(real)
    prefix = posixpath.dirname(posixpath.dirname(real)) or "/"
    prefix = "/usr" if prefix == "/" else prefix
    folders = _library_folders(prefix, is_clang="clang" in name, root=root)
    if said is None:
        return newest_of(folders)
    return newest_of(one for one in folders if one.split(".")[0] == said) or said


def _library_folders(prefix: str, *, is_clang: bool, root: Root) -> tuple[str, ...]:
    """Return the version folders of gcc (`lib/gcc/x86_64-linux-gnu/12`) or of clang."""
    if is_clang:
        return root.names(f"{prefix}/lib/clang")
    tops = [f"{prefix}/{lib}/gcc" for lib in ("lib", "lib64", "libexec")]
    folders = [f"{top}/{triple}" for top in tops for triple in root.names(top)]
    versions = [(f"{folder}/{name}", name) for folder in folders for name in root.names(folder)]
    whole = [name for path, name in versions if root.is_file(f"{path}/cc1plus")]
    return tuple(whole or [name for _, name in versions])


def read_toolkits(
    *, root: Root, environ: Mapping[str, str], installed: Installed | None = None
) -> tuple[Toolkit, ...]:
    """Return the toolkits, the one that torch's builds take first: each folder once."""
    found: dict[str, Toolkit] = {}
    for how, path in _candidates(root=root, environ=environ, installed=installed):
        try:
            real = root.real(path)
        except OSError:
            real = path
        if real not in found:
            found[real] = _toolkit(how, path, root=root)
    wheels = _of_wheels(installed) if installed is not None else ()
    return (*found.values(), *wheels)


def _candidates(
    *, root: Root, environ: Mapping[str, str], installed: Installed | None
) -> Iterator[tuple[str, str]]:
    """Yield folders in the order in which torch looks for CUDA_HOME, then all others."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if environ.get(variable, "").startswith("/"):
            yield variable, posixpath.normpath(environ[variable])
    nvcc = (f"{folder}/nvcc" for folder in _folders(environ))
    for path in [path for path in nvcc if root.is_file(path)][:1]:
        yield "PATH", posixpath.dirname(posixpath.dirname(path)) or "/"
    names = [name for name in root.names("/usr/local") if toolkit_of_name(name) is not None]
    for path in (_DEFAULT, *(f"/usr/local/{name}" for name in names), "/opt/cuda"):
        if root.is_folder(path):
            yield "default", path
    for prefix in conda_prefixes(environ, installed):
        if root.is_file(f"{prefix}/{_NVCC}"):
            yield "conda", prefix


def conda_prefixes(environ: Mapping[str, str], installed: Installed | None) -> tuple[str, ...]:
    """Return the prefix of the environment and the active conda prefix."""
    prefixes = (installed.prefix if installed else "", environ.get("CONDA_PREFIX", ""))
    return tuple(dict.fromkeys(one for one in prefixes if one.startswith("/")))


def _toolkit(how: str, path: str, *, root: Root) -> Toolkit:
    nvcc = f"{path.rstrip('/')}/{_NVCC}"
    has_nvcc = root.is_file(nvcc)
    homes = [path.rstrip("/"), *(_homes_behind(nvcc, root=root) if has_nvcc else ())]
    versions = (version for home in homes for version in _versions(home, root=root))
    return Toolkit(
        path=path,
        version=next((version for version in versions if version is not None), None),
        how=how,
        nvcc=nvcc if has_nvcc else None,
        exists=root.is_folder(path),
    )


def _homes_behind(nvcc: str, *, root: Root) -> tuple[str, ...]:
    """Return the toolkits that a link or a wrapper script of the name leads to."""
    try:
        script = root.head(nvcc, _WRAPPER_SIZE).decode("utf-8", errors="replace")
        wrapped = wrapped_nvcc(script)
        reals = [root.real(one) for one in (nvcc, wrapped) if one and root.is_file(one)]
    except OSError:
        return ()
    return tuple(posixpath.dirname(posixpath.dirname(real)) for real in reals)


def _versions(home: str, *, root: Root) -> Iterator[CudaVersion | None]:
    """Yield what each file of a toolkit says, the surest first."""
    yield parse_version_json(root.text(f"{home}/version.json") or "")
    yield parse_version_txt(root.text(f"{home}/version.txt") or "")
    for name in root.names(f"{home}/conda-meta"):
        if name.startswith("cuda-nvcc-"):
            yield toolkit_of_release(name.rsplit("-", 2)[-2])
    if home == "/usr":
        yield parse_version_txt(root.text("/usr/lib/cuda/version.txt") or "")
    for header in _HEADERS:
        try:
            data = root.head(f"{home}/{header}", _HEADER_SIZE)
        except OSError:
            continue
        yield parse_cuda_header(data.decode("utf-8", errors="replace"))
    try:
        yield toolkit_of_name(posixpath.basename(root.real(home)))
    except OSError:
        yield None


def _of_wheels(installed: Installed) -> Iterable[Toolkit]:
    """Yield the nvcc that a wheel brings, wherever in the site folder it lies."""
    for one in installed.distributions:
        if not one.name.startswith("nvidia-cuda-nvcc"):
            continue
        paths = [entry.path for entry in one.record or () if entry.path.endswith(_NVCC)]
        for path in paths[:1]:
            nvcc = f"{one.site}/{path}"
            home = posixpath.dirname(posixpath.dirname(nvcc))
            version = toolkit_of_release(one.version)
            yield Toolkit(path=home, version=version, how="wheel", nvcc=nvcc)
