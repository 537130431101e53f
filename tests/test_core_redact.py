"""Credentials leave no trace in what is shown or stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.redact import (
    credentials_of,
    lend_credentials,
    redact_text,
    redact_url,
    without_credentials,
)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://h.org/whl/a%2Bb#sha256=1", "https://h.org/whl/a%2Bb#sha256=1"),
        ("https://me:pw@h.org/whl", "https://h.org/whl"),
        ("https://token@h.org:8443/whl", "https://h.org:8443/whl"),
        ("https://a@b:c@h.org/", "https://h.org/"),
        ("https://h.org/a@b//c@d", "https://h.org/a@b//c@d"),
        ("https://h.org:80/a@b", "https://h.org:80/a@b"),
        ("https://me:p#w@h.org/", "https://h.org/"),
        ("https://me:p/w@h.org/whl", "https://h.org/whl"),
        ("https://h.org/x?X-Amz-Signature=abc&v=1", "https://h.org/x?X-Amz-Signature=***&v=1"),
        ("https://h.org/x?v=1&access_token=abc", "https://h.org/x?v=1&access_token=***"),
        ("not a url", "not a url"),
        ("", ""),
    ],
)
def test_redact_url(url: str, shown: str) -> None:
    assert redact_url(url) == shown
    assert redact_url(shown) == shown


def test_redact_text() -> None:
    text = "cannot reach `https://me:pw@h.org/a` (via http://u:p@proxy:1), then <ftp://x:y@z>"
    assert redact_text(text) == (
        "cannot reach `https://h.org/a` (via http://proxy:1), then <ftp://z>"
    )


def test_credentials_are_decoded() -> None:
    assert credentials_of("https://me%40x:p%3Aw@h.org/") == ("me@x", "p:w")
    assert credentials_of("https://token@h.org/") == ("token", "")
    assert credentials_of("https://h.org/a@b") is None


@pytest.mark.parametrize(
    ("url", "lent"),
    [
        ("https://h.org/x.whl?v=1", "https://me:p%3Aw@h.org/x.whl?v=1"),
        ("https://h.org:443/x.whl", "https://me:p%3Aw@h.org:443/x.whl"),
        ("https://H.ORG/x.whl", "https://me:p%3Aw@H.ORG/x.whl"),
        ("http://h.org/x.whl", "http://h.org/x.whl"),
        ("https://h.org:444/x.whl", "https://h.org:444/x.whl"),
        ("https://h.org.evil/x.whl", "https://h.org.evil/x.whl"),
        ("https://you@h.org/x.whl", "https://you@h.org/x.whl"),
        ("https://[bad/x.whl", "https://[bad/x.whl"),
    ],
)
def test_credentials_are_lent_to_the_same_origin_only(url: str, lent: str) -> None:
    assert lend_credentials(url, source="https://me:p%3Aw@h.org/whl") == lent


@given(
    user=st.text("abcXYZ019%-._~!$&'()*+,;=:@", min_size=1),
    rest=st.text("abc/?#=&@", max_size=20),
)
def test_no_userinfo_survives(user: str, rest: str) -> None:
    url = f"https://{user}@host.example/{rest}"
    assert without_credentials(url) == f"https://host.example/{rest}"
    assert redact_url(url).startswith("https://host.example/")
