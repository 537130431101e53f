"""FFmpeg, which torchcodec and torchaudio open and no wheel brings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envbuild.checks.owners import shortened
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Manual

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.checks.owners import Owners
    from envbuild.model.links import Links

_LIBRARY = re.compile(r"libav(?:util|codec|format|device|filter)\.so\.\d+")
# One file per FFmpeg release; the package opens the first that loads.
_VARIANT = {
    "torchcodec": re.compile(r"torchcodec/libtorchcodec_core\d+\.so"),
    "torchaudio": re.compile(r"(?:torio|torchaudio)/lib/libtor(?:io|chaudio)_ffmpeg\d*\.so"),
}
_FOR_IMAGES = "torchcodec/libtorchcodec_image.so"


def without_ffmpeg(owners: Owners, links: Links) -> Iterator[Finding]:
    """Find the packages none of whose FFmpeg variants can be loaded.

    torchcodec before 0.16 opens one as it is imported. A newer one, which has a library for
    images, and torchaudio do without, but for some formats.
    """
    lacking = {one.path for one in links.libraries if _LIBRARY.fullmatch(one.library)}
    for name, pattern in _VARIANT.items():
        one = owners.installed.find(name) if lacking else None
        record = one.record if one else None
        if one is None or record is None:
            continue
        variants = {f"{one.site}/{e.path}" for e in record if pattern.fullmatch(e.path)}
        if variants and variants <= lacking:
            fatal = name == "torchcodec" and not any(e.path == _FOR_IMAGES for e in record)
            what = f"without which `import {name}` fails" if fatal else "which some formats need"
            yield Finding(
                code="EB304",
                severity=Severity.WARNING if fatal else Severity.NOTE,
                subject=one.label,
                message=f"{one.label}: no FFmpeg was found, {what}",
                evidence=shortened(sorted(variants), most=2),
                fixes=(Manual(text="apt-get install -y ffmpeg"),),
            )
