"""Which distribution of Linux /etc/os-release names."""

from __future__ import annotations

from fuzzing import FUZZ
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.osrelease import parse_os_release

UBUNTU = """\
PRETTY_NAME="Ubuntu 24.04.3 LTS"
VERSION_ID="24.04"
VERSION="24.04.3 LTS (Noble Numbat)"
ID=ubuntu
ID_LIKE=debian
"""
SUSE = 'ID="opensuse-leap"\nID_LIKE=\'suse opensuse\'\nVERSION_ID="15.6"\n'


def test_the_nearest_name_comes_first() -> None:
    assert parse_os_release(UBUNTU) == (("ubuntu", "debian"), "24.04")
    assert parse_os_release(SUSE) == (("opensuse-leap", "suse", "opensuse"), "15.6")


def test_a_release_without_a_version() -> None:
    assert parse_os_release("ID=debian\nVERSION_CODENAME=sid\n") == (("debian",), "")


def test_what_says_nothing() -> None:
    assert parse_os_release("") == ((), "")
    assert parse_os_release("# ID=debian\nMY_ID=debian\n") == ((), "")


@FUZZ
@given(st.text(alphabet="ID_LIKEVRSO=\"'\n debian", max_size=60))
def test_no_text_is_too_odd(text: str) -> None:
    names, _ = parse_os_release(text)
    assert all(name == name.lower() for name in names)
