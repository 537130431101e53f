"""GPUs by name: what people and `nvidia-smi` write, and the compute capability it means."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

from envbuild.core.packagefile import package_text
from envbuild.model.cuda import ComputeCapability
from envbuild.model.target import Gpu

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# What tells two cards of one model apart and says nothing of the capability: memory, form factor,
# partitions, editions. Names of the data lose it as well.
_NOISE = re.compile(
    r"""\b(?:
        mig\b.* | \d+\s?g(?:i?b)?\b | sxm\d* | pcie? | nvl\d* | oam | hbm\d?e? | dgxs? | hgx
        | nvidia | gpus? | graphics | card | laptop | mobile | notebook | (?:with\s)?max\sq | design
        | server | workstation | edition | generation | founders | superchip | tensor\score
        | developer | kit | module | active
    )\b""",
    re.VERBOSE,
)
_SEPARATORS = re.compile(r"[^a-z0-9.]+")
_VENDOR = frozenset({"geforce", "quadro", "tesla"})
# Words of a name that may be left out as long as what is left means one capability.
_OPTIONAL = _VENDOR | {"rtx", "gtx", "gt", "pro", "jetson", "agx", "ada", "blackwell", "pascal"}
_CAPABILITY = re.compile(r"\d{1,2}\.\d[af]?|(?:sm|compute)_\d{2,3}[af]?", re.IGNORECASE)


class UnknownGpuError(ValueError):
    """A name that means no GPU, with the ``choices`` spelled alike, or one that means several."""

    def __init__(self, message: str, *, choices: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.choices = choices


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownGpu:
    """One GPU of the data.

    ``source`` says where the capability is published. ``arm`` is True where the GPU only exists
    together with an Arm processor.
    """

    name: str
    capability: ComputeCapability
    source: str
    arm: bool = False


def find_gpu(name: str) -> Gpu:
    """Return the GPU that a name means; raise UnknownGpuError, a ValueError, otherwise.

    Case, separators, vendor words, memory sizes and form factors make no difference, and a
    short form will do (``4090``, ``A6000``) while it means one capability.
    """
    return Gpu(name=name.strip(), capability=known_gpu(name).capability)


def parse_gpu(text: str) -> Gpu:
    """Return the GPU that a name or a compute capability (``12.0``, ``sm_120``) means."""
    text = text.strip()
    if not _CAPABILITY.fullmatch(text):
        return find_gpu(text)
    capability = ComputeCapability.parse(text)
    known = [str(one) for one in known_capabilities()]
    if capability in known_capabilities():
        return Gpu(name=text, capability=capability)
    from difflib import get_close_matches  # noqa: PLC0415 - once something is wrong

    plain = f"{capability.major}.{capability.minor}"
    close = [plain] if plain in known else get_close_matches(plain, known, n=3)
    wanted = "wanted the compute capability of a GPU"
    raise UnknownGpuError(f"found `{text}`, {wanted}", choices=tuple(close))


def known_gpu(name: str) -> KnownGpu:
    """Return the entry of the data that a name means; raise UnknownGpuError otherwise."""
    for glued in (_glued(name), _glued(_plain(name))):
        if glued in _glued_names():
            return _glued_names()[glued]
    words = _words(name)
    without_vendor = tuple(word for word in words if word not in _VENDOR)
    for query in (words, without_vendor):
        matches = _matches(query)
        if not matches:
            continue
        if len({gpu.capability for gpu in matches}) == 1:
            return matches[0]
        choices = ", ".join(f"`{gpu.name}` ({gpu.capability})" for gpu in matches)
        raise UnknownGpuError(f"found `{name}`, wanted the full name: it can mean {choices}")
    wanted = "wanted the name of an NVIDIA GPU or a compute capability like `12.0`"
    raise UnknownGpuError(f"found `{name}`, {wanted}", choices=_suggestions(without_vendor))


@cache
def known_gpus() -> tuple[KnownGpu, ...]:
    """Return every GPU of the data, newest first."""
    return tuple(
        KnownGpu(
            name=name,
            capability=ComputeCapability.parse(group["capability"]),
            source=_data()["sources"][group["source"]],
            arm=group.get("arm", False),
        )
        for group in _data()["gpus"]
        for name in group["names"]
    )


@cache
def known_capabilities() -> tuple[ComputeCapability, ...]:
    """Return every compute capability that a target may name, oldest first."""
    return tuple(ComputeCapability.parse(text) for text in _data()["capabilities"])


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(package_text("envbuild.core", "gpus.toml"))


def _glued(name: str) -> str:
    return re.sub("[^a-z0-9]|nvidia", "", name.casefold())


@cache
def _glued_names() -> dict[str, KnownGpu]:
    return {_glued(gpu.name): gpu for gpu in known_gpus()}


def _plain(name: str) -> str:
    spaced = _SEPARATORS.sub(" ", re.sub("[®™]", " ", name.casefold()))
    return " ".join(_NOISE.sub(" ", spaced).split())


def _words(name: str) -> tuple[str, ...]:
    """Split a name into words and numbers, whether or not it was written with spaces."""
    return tuple(_word_pattern().findall(_plain(name)))


@cache
def _word_pattern() -> re.Pattern[str]:
    """Match the words of the data first, so that ``rtxpro2000`` falls apart as it should."""
    words = {word for gpu in known_gpus() for word in re.findall("[a-z]{2,}", _plain(gpu.name))}
    longest_first = sorted(words | _OPTIONAL, key=lambda word: (-len(word), word))
    return re.compile("|".join([*longest_first, "[a-z]+", r"\d+"]))


@cache
def _index() -> tuple[tuple[tuple[str, ...], KnownGpu], ...]:
    return tuple((_words(gpu.name), gpu) for gpu in known_gpus())


def _matches(query: tuple[str, ...]) -> tuple[KnownGpu, ...]:
    """Return the GPUs of exactly these words, else those that only add words one may leave out."""
    if not query:
        return ()
    exact = tuple(gpu for words, gpu in _index() if words == query)
    return exact or tuple(gpu for words, gpu in _index() if _is_short_for(query, words))


def _is_short_for(query: tuple[str, ...], words: tuple[str, ...]) -> bool:
    rest = iter(query)
    wanted = next(rest, None)
    for word in words:
        if word == wanted:
            wanted = next(rest, None)
        elif word not in _OPTIONAL:
            return False
    return wanted is None


def _suggestions(query: tuple[str, ...]) -> tuple[str, ...]:
    """Return up to three names that are spelled alike."""
    from difflib import get_close_matches  # noqa: PLC0415

    names: dict[str, str] = {}
    for words, gpu in _index():
        names.setdefault("".join(word for word in words if word not in _VENDOR), gpu.name)
    return tuple(names[key] for key in get_close_matches("".join(query), names, n=3))
