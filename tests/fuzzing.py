"""How much the readers of binary files are fuzzed, and how valid files are broken."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

# ENVBUILD_FUZZ_EXAMPLES=1000000 for a long run; else what the profile says.
FUZZ = settings(
    max_examples=int(os.environ.get("ENVBUILD_FUZZ_EXAMPLES", settings().max_examples)),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
_WORDS = (0, 1, 7, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)


@st.composite
def mutated(draw: st.DrawFn, valid: bytes) -> bytes:
    """Give a valid file with a few bytes or words replaced, and perhaps cut short."""
    data = bytearray(valid)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data) - 1))
        change = draw(st.one_of(st.binary(min_size=1, max_size=8), st.sampled_from(_WORDS)))
        piece = change if isinstance(change, bytes) else change.to_bytes(4, "little")
        data[at : at + len(piece)] = piece
    if draw(st.booleans()):
        del data[draw(st.integers(0, len(data))) :]
    return bytes(data)
