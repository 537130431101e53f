"""CUDA's two numbers: the toolkit version and the compute capability of a GPU."""

from __future__ import annotations

import re
from dataclasses import dataclass

_VERSION = re.compile(r"(?:cu|cuda)?[-_ ]?(\d{1,2})\.(\d)(?:\.\d+)?|cu(\d{2})(\d)", re.IGNORECASE)
_CAPABILITY = re.compile(r"(?:(\d{1,2})\.(\d)|(?:sm|compute)_(\d{1,2})(\d))([af]?)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class CudaVersion:
    """A CUDA toolkit version, major and minor (``12.8``)."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> CudaVersion:
        """Read ``12.8``, ``12.8.1`` or ``cu128``; raise ValueError on anything else."""
        match = _VERSION.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"`{text}` is no CUDA version, wanted one like `12.8` or `cu128`")
        major, minor = match[1] or match[3], match[2] or match[4]
        return cls(major=int(major), minor=int(minor))

    @property
    def tag(self) -> str:
        """The tag used in local versions and index folders (``cu128``)."""
        return f"cu{self.major}{self.minor}"

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class ComputeCapability:
    """The compute capability of a GPU, or of code built for one (``12.0``, ``9.0a``).

    ``suffix`` is ``a`` for code that runs on that capability alone, ``f`` for code that runs
    within its family, and empty for ordinary code and for every GPU.
    """

    major: int
    minor: int
    suffix: str = ""

    @classmethod
    def parse(cls, text: str) -> ComputeCapability:
        """Read ``12.0``, ``sm_120``, ``compute_90`` or ``9.0a``; raise ValueError otherwise."""
        match = _CAPABILITY.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"`{text}` is no compute capability, wanted one like `12.0`")
        major, minor = match[1] or match[3], match[2] or match[4]
        return cls(major=int(major), minor=int(minor), suffix=match[5].lower())

    @property
    def sm(self) -> str:
        """The name of its machine code (``sm_120``)."""
        return f"sm_{self.major}{self.minor}{self.suffix}"

    @property
    def compute(self) -> str:
        """The name of its PTX (``compute_120``)."""
        return f"compute_{self.major}{self.minor}{self.suffix}"

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}{self.suffix}"
