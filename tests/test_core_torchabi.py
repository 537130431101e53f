"""Which torch an extension was built for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from envbuild.core.link.torchusers import abi_of, has_old_string, is_stable
from envbuild.core.torchabi import torch_minors, torch_range

STRING = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
OLD_ERROR = "_ZN3c105ErrorC2ENS_14SourceLocationESs"
NEW_ERROR = f"_ZN3c105ErrorC2ENS_14SourceLocationE{STRING}"
CHECK = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_"


def test_the_minors_that_are_known() -> None:
    minors = torch_minors()
    assert minors[0] == "2.4"
    assert minors[-1] == "2.15"
    assert len(minors) == 12


@pytest.mark.parametrize(
    ("symbols", "first", "last"),
    [
        ([OLD_ERROR], "2.4", "2.6"),
        ([f"{CHECK}ib"], "2.4", "2.9"),
        ([f"{CHECK}jb"], "2.10", "2.13"),
        ([f"{CHECK}jbPNS0_19CUDAErrorLogCaptureE"], "2.14", "2.15"),
        (["_ZN3c104cuda9SetDeviceEa"], "2.4", "2.7"),
        (["_ZN3c104cuda9SetDeviceEab"], "2.8", "2.15"),
        (["_ZN3c104cuda9SetDeviceEab", f"{CHECK}ib"], "2.8", "2.9"),
    ],
)
def test_names_that_changed_once(symbols: list[str], first: str, last: str) -> None:
    minors = torch_minors()
    expected = minors[minors.index(first) : minors.index(last) + 1]
    assert torch_range(symbols) == expected


def test_names_that_no_release_has_together() -> None:
    assert torch_range(["_ZN3c104cuda9SetDeviceEa", "_ZN3c104cuda9SetDeviceEab"]) == ()
    assert torch_range([OLD_ERROR, NEW_ERROR]) == ("2.6",)


def test_the_new_string_abi_does_not_rule_out_the_wheels_of_2_6_that_have_it() -> None:
    found = torch_range([NEW_ERROR])
    assert found is not None
    assert found[0] == "2.6"
    assert found[-1] == "2.15"


def test_what_is_not_of_torch_or_not_known_is_not_judged() -> None:
    assert torch_range([]) is None
    assert torch_range(["printf", "_ZNSt6vectorIiE", "cudaMalloc"]) is None
    assert torch_range(["_ZN3c1021this_is_not_in_any_torchEv"]) is None
    assert torch_range([OLD_ERROR, "_ZN3c1021this_is_not_in_any_torchEv"]) == ("2.4", "2.5", "2.6")


def test_the_table_is_read_only_when_something_is_judged() -> None:
    code = (
        "import sys; from envbuild.core import torchabi as t; t.torch_range(['printf']);"
        "assert t._table.cache_info().currsize == 0"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("name", "old"),
    [
        (OLD_ERROR, True),
        ("_ZN3c1013MessageLoggerC1EPKciRKSs", True),
        ("_ZN5torch7LibraryC1ENS0_4KindESsSt8optionalIN3c1011DispatchKeyEEPKcj", True),
        (NEW_ERROR, False),
        ("_ZN2at12ProcessStateEv", False),
        ("_ZN2at10ClassState4SsrtEv", False),
        ("_ZN2at6TensorILj4EE4SsNaEv", False),
        ("_ZNK2at10TensorBase8data_ptrIN3c104HalfEEEPT_v", False),
        ("_Z", False),
        ("_Z99999999999999999999Ss", False),
    ],
)
def test_the_old_string_is_seen_only_as_a_type(name: str, *, old: bool) -> None:
    assert has_old_string(name) is old


def test_the_abi_of_some_names() -> None:
    assert abi_of([NEW_ERROR, "_ZN2at4fooEv"]) == "new"
    assert abi_of([OLD_ERROR, "_ZN2at4fooEv"]) == "old"
    assert abi_of(["_ZN2at4fooEv", "aoti_torch_empty"]) is None


def test_the_stable_interface_is_c_alone() -> None:
    assert is_stable(["aoti_torch_empty_strided", "torch_call_dispatcher"])
    assert not is_stable(["aoti_torch_empty_strided", "_ZN2at4fooEv"])
    assert not is_stable(["THPVariable_Wrap"])
