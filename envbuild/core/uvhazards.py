"""Settings of uv in a project that let a package come from somewhere else than was meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from envbuild.core.redact import redact_url, without_credentials
from envbuild.core.userconstraints import constraints_in, is_bound, is_pin
from envbuild.model.project import IndexUrls

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LISTS = ("extra-index-url", "find-links")
_UNSAFE = {
    "unsafe-best-match": "the highest version of all indexes wins, whatever CUDA it is built for",
    "unsafe-first-match": "a name may come from any index that holds it",
}
_PYTORCH_NAME = re.compile(r"pytorch-(cpu|cu\d+)")
_INDEX_ONLY = "envbuild routes the coupled packages by [tool.uv.sources]"


def hazards_of(document: Mapping[str, Any], indexes: IndexUrls) -> tuple[str, ...]:
    """Return one sentence for each setting of ``[tool.uv]`` that weakens what a lock binds."""
    uv = document.get("tool", {}).get("uv", {})
    if not isinstance(uv, dict):
        return ()
    return (
        *_strategy(uv),
        *_lists(uv, indexes),
        *_open_indexes(uv, indexes),
        *_default(uv, indexes),
        *_backend(uv),
        *_cutoff(document),
        *_pins(document, uv),
    )


def uv_cutoff(document: Mapping[str, Any]) -> str | None:
    """Return the cutoff in uv's own settings, which holds for what uv locks in any case."""
    uv = document.get("tool", {}).get("uv", {})
    value = uv.get("exclude-newer") if isinstance(uv, dict) else None
    return value if isinstance(value, str) else None


def _cutoff(document: Mapping[str, Any]) -> Iterator[str]:
    envbuild, cutoff = document["tool"].get("envbuild"), uv_cutoff(document)
    if cutoff is not None and isinstance(envbuild, dict) and "exclude-newer" not in envbuild:
        yield (
            f'[tool.uv] has `exclude-newer = "{cutoff}"` and [tool.envbuild] has none: it holds'
            " for the lock; remove it there too if it is not meant"
        )


def _pins(document: Mapping[str, Any], uv: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(document["tool"].get("envbuild"), dict) or is_bound(uv):
        return
    for constraint in constraints_in(uv):
        if is_pin(constraint) and canonicalize_name(constraint.name) == "torch":
            version = str(constraint.specifier).removeprefix("==")
            yield (
                f"the constraint `{constraint}` of [tool.uv] holds for this lock, and gives way to"
                f' the build that is locked; `torch = "{version}"` in the target is what stays'
            )


def opens_pytorch(table: Mapping[str, Any], indexes: IndexUrls) -> bool:
    """Whether an index of the project lets any package come from PyTorch's index.

    That index carries old copies of ordinary packages (requests, filelock, numpy ...), and uv
    looks no further than the first index that knows a name.
    """
    url, opened = table.get("url"), not table.get("explicit") and not table.get("default")
    return opened and isinstance(url, str) and is_pytorch(url, indexes)


def is_pytorch(url: str, indexes: IndexUrls) -> bool:
    """Whether an address lies on PyTorch's index, or on the mirror in its place."""
    bases = [base for base in (IndexUrls().pytorch, indexes.pytorch) if base is not None]
    return any(
        f"{without_credentials(url)}/".startswith(f"{without_credentials(base).rstrip('/')}/")
        for base in bases
    )


def _strategy(uv: Mapping[str, Any]) -> Iterator[str]:
    strategy = uv.get("index-strategy")
    if isinstance(strategy, str) and strategy in _UNSAFE:
        yield (
            f'[tool.uv] has `index-strategy = "{strategy}"`: {_UNSAFE[strategy]};'
            f" remove it, {_INDEX_ONLY}"
        )


def _lists(uv: Mapping[str, Any], indexes: IndexUrls) -> Iterator[str]:
    for key in _LISTS:
        for url in uv.get(key, ()):
            if isinstance(url, str) and is_pytorch(url, indexes):
                yield (
                    f"[tool.uv] names `{redact_url(url)}` in `{key}`: any package may come from"
                    f" there, also its old copies of ordinary ones; remove it, {_INDEX_ONLY}"
                )


def _default(uv: Mapping[str, Any], indexes: IndexUrls) -> Iterator[str]:
    urls = [table.get("url") for table in _tables(uv) if table.get("default")]
    for url in (uv.get("index-url"), *urls):
        if isinstance(url, str) and is_pytorch(url, indexes):
            yield (
                f"the default index of [tool.uv] is PyTorch's, `{redact_url(url)}`: ordinary"
                f" packages come from its old copies; remove it, {_INDEX_ONLY}"
            )


def replaced_indexes(document: Mapping[str, Any], indexes: IndexUrls) -> Iterator[str]:
    """Say where an index of the user has a name and an address that a lock replaces."""
    uv = document.get("tool", {}).get("uv", {})
    for table in _tables(uv) if isinstance(uv, dict) else ():
        name, url = str(table.get("name", "")), table.get("url")
        if not isinstance(url, str) or _PYTORCH_NAME.fullmatch(name) is None:
            continue
        if not is_pytorch(url, indexes):
            yield (
                f"the index `{name}` of [tool.uv] has a name that envbuild writes: its address"
                f" `{redact_url(url)}` gives way; a mirror belongs in"
                ' `[tool.envbuild.indexes] pytorch = "..."`'
            )


def _tables(uv: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    tables = uv.get("index", ())
    return tuple(t for t in tables if isinstance(t, dict)) if isinstance(tables, list) else ()


def _open_indexes(uv: Mapping[str, Any], indexes: IndexUrls) -> Iterator[str]:
    for table in _tables(uv):
        if opens_pytorch(table, indexes):
            yield (
                f"the index `{table.get('name', redact_url(table['url']))}` of [tool.uv] is"
                " PyTorch's and becomes explicit, as it holds old copies of ordinary packages;"
                " what else shall come from it needs its own line in [tool.uv.sources]"
            )


def _backend(uv: Mapping[str, Any]) -> Iterator[str]:
    if "torch-backend" in uv:
        yield (
            f'[tool.uv] has `torch-backend = "{uv["torch-backend"]}"`, which only `uv pip` obeys:'
            " `uv lock`, `uv sync` and `uv run` take what the lock holds"
        )
