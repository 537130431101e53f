"""The readable part of mangled names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.elf.mangled import readable


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("_ZNK3c107SymBool10guard_boolEPKcl", "c10::SymBool::guard_bool"),
        ("_ZN3c104cuda9SetDeviceEa", "c10::cuda::SetDevice"),
        ("_ZN3c105ErrorC2ENS_14SourceLocationESs", "c10::Error::Error"),
        ("_ZN3c104impl12PyObjectSlotD1Ev", "c10::impl::PyObjectSlot::~PyObjectSlot"),
        ("_ZTVN5torch8autograd4NodeE", "torch::autograd::Node"),
        ("_ZN3c10dvERKNS_6SymIntEi", "c10"),
        ("_Z3foov", "foo"),
        ("ncclMemFree", None),
        ("_ZN99shortE", None),
        ("_ZN", None),
        ("_ZNSt6vectorIiE", None),
    ],
)
def test_plain_words_are_read(symbol: str, expected: str | None) -> None:
    assert readable(symbol) == expected


@given(st.text(alphabet="_ZNK0123456789abcCDES", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    found = readable(text)
    assert found is None or (found and text.startswith("_Z"))


@given(st.lists(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), min_size=1, max_size=4))
def test_what_is_put_together_comes_apart(words: list[str]) -> None:
    symbol = "_ZN" + "".join(f"{len(word)}{word}" for word in words) + "Ev"
    assert readable(symbol) == "::".join(words)
