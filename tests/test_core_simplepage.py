"""Index pages of every layout that is met in the wild, whole and broken."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.simplepage import parse_page, parse_sdist
from envbuild.errors import WorldError
from envbuild.model.wheel import IndexPage, PageKind, WheelFile

if TYPE_CHECKING:
    from envbuild.model.lock import Artifact

PAGE = IndexPage(
    kind=PageKind.PYTORCH, key="cu128", name="pytorch-cu128", url="https://h.org/whl/cu128"
)
BASE = "https://h.org/whl/cu128/torch/"
JSON = "application/vnd.pypi.simple.v1+json"
A, B = "a" * 64, "b" * 64
LINUX = "torch-2.7.0+cu128-cp311-cp311-manylinux_2_28_x86_64.whl"


def html(*links: str, base_url: str = BASE, project: str | None = "torch") -> tuple[WheelFile, ...]:
    body = "<!DOCTYPE html>\n<html>\n  <body>\n" + "<br/>\n".join(links) + "\n</body>\n</html>\n"
    return read(body + "<!--TIMESTAMP 1738000000-->", base_url=base_url, project=project)


def read(
    body: str | bytes,
    *,
    content_type: str = "text/html; charset=utf-8",
    base_url: str = BASE,
    page: IndexPage = PAGE,
    project: str | None = "torch",
) -> tuple[WheelFile, ...]:
    raw = body.encode() if isinstance(body, str) else body
    return parse_page(raw, content_type=content_type, base_url=base_url, page=page, project=project)


def pep691(*files: object, **more: object) -> str:
    return json.dumps({"meta": {"api-version": "1.3"}, "name": "torch", "files": files, **more})


def test_pytorch_page() -> None:
    (wheel,) = html(
        f'<a href="/whl/cu128/torch-2.7.0%2Bcu128-cp311-cp311-manylinux_2_28_x86_64.whl#sha256={A}"'
        f' data-dist-info-metadata="sha256={B}" data-core-metadata="sha256={B}">{LINUX}</a>'
    )
    assert wheel == WheelFile(
        project="torch",
        version="2.7.0+cu128",
        filename=LINUX,
        url="https://h.org/whl/cu128/torch-2.7.0%2Bcu128-cp311-cp311-manylinux_2_28_x86_64.whl",
        page=PAGE,
        sha256=A,
        metadata_sha256=B,
        origin="index page https://h.org/whl/cu128/torch/",
    )


@pytest.mark.parametrize(
    ("href", "base", "url"),
    [
        ("torch-1-py3-none-any.whl", BASE, BASE + "torch-1-py3-none-any.whl"),
        ("../torch-1-py3-none-any.whl", BASE, "https://h.org/whl/cu128/torch-1-py3-none-any.whl"),
        ("/torch-1-py3-none-any.whl", BASE, "https://h.org/torch-1-py3-none-any.whl"),
        ("//r2.org/torch-1-py3-none-any.whl", BASE, "https://r2.org/torch-1-py3-none-any.whl"),
        (
            "https://r2.org/torch-1-py3-none-any.whl",
            BASE,
            "https://r2.org/torch-1-py3-none-any.whl",
        ),
        (" torch-1-py3-none-any.whl?v=1#x ", BASE, BASE + "torch-1-py3-none-any.whl?v=1"),
        (
            "torch-1-py3-none-any.whl",
            "https://me:pw@h.org/a/",
            "https://h.org/a/torch-1-py3-none-any.whl",
        ),
        (
            "https://me:pw@h.org/torch-1-py3-none-any.whl",
            BASE,
            "https://h.org/torch-1-py3-none-any.whl",
        ),
        ("torch-1-py3-none-any.whl", "file:///i/torch.html", "file:///i/torch-1-py3-none-any.whl"),
    ],
)
def test_links(href: str, base: str, url: str) -> None:
    (wheel,) = html(f'<a href="{href}">x</a>', base_url=base)
    assert (wheel.url, wheel.filename) == (url, "torch-1-py3-none-any.whl")
    assert "pw" not in wheel.origin


@pytest.mark.parametrize(
    "href",
    [
        "torch-2.7.0.tar.gz",
        "torch-2.7.0.zip",
        "torch-2.7.0-cp311-linux_x86_64.whl",
        "torch-not_a_version-cp311-cp311-linux_x86_64.whl",
        "torch.whl",
        ".whl",
        "torch-1-py3-none-any.whl.metadata",
        "torchvision-1-py3-none-any.whl",
        "file:///etc/torch-1-py3-none-any.whl",
        "javascript:torch-1-py3-none-any.whl",
        "https://[bad/torch-1-py3-none-any.whl",
        "../",
        "",
    ],
)
def test_what_is_no_wheel_is_passed_over(href: str) -> None:
    good = '<a href="torch-2-py3-none-any.whl">good</a>'
    assert [w.version for w in html(f'<a href="{href}">x</a>', "<a>no href</a>", good)] == ["2"]


def test_base_href() -> None:
    body = (
        '<html><head><base href="/mirror/"><base href="/other/"></head>'
        '<body><a href="torch-1-py3-none-any.whl">x</a></body></html>'
    )
    assert read(body)[0].url == "https://h.org/mirror/torch-1-py3-none-any.whl"


def test_attributes() -> None:
    found = html(
        '<a href="torch-1-py3-none-any.whl" data-requires-python="&gt;=3.9,&lt;4">x</a>',
        '<a href="torch-2-py3-none-any.whl" data-yanked="broken" data-core-metadata="true">x</a>',
        '<a href="torch-3-py3-none-any.whl" data-yanked data-core-metadata="false">x</a>',
        '<a href="torch-4-1-py3-none-any.whl" data-requires-python=" ">x</a>',
        f'<a href="torch-5-py3-none-any.whl#sha256={A.upper()}&x=1" href="y">x</a>',
        '<a href="torch-6-py3-none-any.whl#sha256=short">x</a>',
        f'<a href="torch-7-py3-none-any.whl#md5={A[:32]}">x</a>',
        '<!-- <a href="torch-8-py3-none-any.whl">x</a> -->',
    )
    assert [
        (w.version, w.requires_python, w.metadata_sha256, w.yanked, w.sha256) for w in found
    ] == [
        ("1", ">=3.9,<4", None, False, None),
        ("2", None, "", True, None),
        ("3", None, None, True, None),
        ("4", None, None, False, None),
        ("5", None, None, False, A),
        ("6", None, None, False, None),
        ("7", None, None, False, None),
    ]


def test_pyg_alias_page() -> None:
    name = "torch_scatter-2.1.2%2Bpt27cu128-cp311-cp311-linux_x86_64.whl"
    (wheel,) = html(
        f'<a href="torch-2.7.0%2Bcu128/{name}">x</a>',
        '<a href="torch-2.7.0%2Bcu128/torch_sparse-0.6.18-cp311-cp311-linux_x86_64.whl">x</a>',
        base_url="https://d.org/whl/torch-2.7.1+cu128.html",
        project="torch-scatter",
    )
    assert wheel.url == f"https://d.org/whl/torch-2.7.0%2Bcu128/{name}"
    assert (wheel.project, wheel.version) == ("torch-scatter", "2.1.2+pt27cu128")


def test_flat_mirror_lists_every_project() -> None:
    links = (
        '<a href="../">../</a>',
        '<a href="torch-2.7.0%2Bcu128-cp311-cp311-manylinux_2_28_x86_64.whl">x</a>  12-Nov 900M',
        '<a href="torchvision-0.22.0%2Bcu128-cp311-cp311-manylinux_2_28_x86_64.whl">x</a>',
    )
    base = "https://m.org/pytorch-wheels/cu128/"
    assert [w.project for w in html(*links, base_url=base)] == ["torch"]
    assert [w.project for w in html(*links, base_url=base, project=None)] == [
        "torch",
        "torchvision",
    ]
    assert [w.project for w in html(*links, base_url=base, project="TorchVision")] == [
        "torchvision"
    ]


def test_github_release_shows_its_hashes() -> None:
    name = "flash_attn-2.8.3+cu12torch2.7cxx11abiTRUE-cp311-cp311-linux_x86_64.whl"
    body = "".join(
        f'<li><a href="/o/r/releases/download/v2.8.3/{file}" rel="nofollow"><span>{file}</span></a>'
        f'<span class="Truncate-text">{shown}</span><span>256 MB</span></li>'
        for file, shown in [
            (name, f"sha256:{A}"),
            (name.replace("TRUE", "FALSE"), "no hash"),
        ]
    )
    found = read(
        body + f"<p>sha256:{B}</p>",
        base_url="https://github.com/o/r/releases/expanded_assets/v2.8.3",
        project="flash-attn",
    )
    assert [(w.version, w.sha256) for w in found] == [
        ("2.8.3+cu12torch2.7cxx11abitrue", A),
        ("2.8.3+cu12torch2.7cxx11abifalse", None),
    ]
    assert found[0].filename == name
    assert found[0].url == f"https://github.com/o/r/releases/download/v2.8.3/{name}"


def test_one_file_twice() -> None:
    def twice(first: str, second: str) -> WheelFile:
        (wheel,) = html(
            f'<a href="/1/torch-1-py3-none-any.whl{first}">x</a>',
            f'<a href="/2/torch-1-py3-none-any.whl{second}">x</a>',
        )
        assert wheel.url == "https://h.org/1/torch-1-py3-none-any.whl"
        return wheel

    assert twice(f"#sha256={A}", f"#sha256={A}").sha256 == A
    assert twice("", f"#sha256={A}").sha256 == A
    assert twice(f"#sha256={A}", "").sha256 == A
    disputed = twice(f"#sha256={A}", f"#sha256={B}")
    assert disputed.sha256 is None
    assert "several hashes for this file name" in disputed.origin


def test_json_page() -> None:
    found = read(
        pep691(
            {
                "filename": "torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl",
                "url": "https://files.org/a/torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl",
                "hashes": {"sha256": A},
                "requires-python": ">=3.9",
                "size": 888_000_000,
                "yanked": False,
                "core-metadata": {"sha256": B},
                "upload-time": "2025-08-06T00:00:00Z",
            },
            {"filename": "torch-2.8.0.tar.gz", "url": "torch-2.8.0.tar.gz", "hashes": {}},
            {"filename": "torch-3-py3-none-any.whl", "url": "../x", "yanked": "why", "size": True},
            {
                "filename": "torch-4-py3-none-any.whl",
                "url": "x",
                "core-metadata": True,
                "hashes": 1,
            },
            {"filename": "torch-5-py3-none-any.whl", "url": "x", "core-metadata": False},
            {
                "filename": "torch-6-py3-none-any.whl",
                "url": "x",
                "data-dist-info-metadata": {"sha256": B},
            },
        ),
        content_type=JSON,
    )
    assert [(w.version, w.sha256, w.size, w.yanked, w.metadata_sha256) for w in found] == [
        ("2.8.0", A, 888_000_000, False, B),
        ("3", None, None, True, None),
        ("4", None, None, False, ""),
        ("5", None, None, False, None),
        ("6", None, None, False, B),
    ]
    assert found[0].requires_python == ">=3.9"
    assert found[1].url == "https://h.org/whl/cu128/x"


@pytest.mark.parametrize(
    ("body", "content_type", "message"),
    [
        ("<html></html>", JSON, "holds HTML, wanted the JSON it promises"),
        (pep691({"filename": "a", "url": "b"})[:-9], JSON, "holds no whole JSON"),
        ("", JSON, "holds no whole JSON"),
        ("[" * 100_000, JSON, "holds no whole JSON"),
        ("[]", JSON, "wanted a page of PEP 691"),
        ("{}", JSON, "wanted a page of PEP 691"),
        ('{"meta": {"api-version": "2.0"}, "files": []}', JSON, "wanted a page of PEP 691"),
        (pep691("x"), JSON, "something that is no file"),
        (pep691({"filename": "a"}), JSON, "without `url` or `filename`"),
        (pep691(), "text/html", "holds JSON, wanted the HTML it promises"),
        ("<html><body><a href='torch-1-py3-none-any.whl'>x</a>", "text/html", "is cut off"),
        ("<li><a href='torch-1-py3-none-any.whl'>x</a><a hre", "text/html", "is cut off"),
        ("<li><!-- not ended", "text/html", "is cut off"),
        ("<a href='&#" + "9" * 5000 + ";'>x</a>", "text/html", "cannot be read"),
        ("<html><form><input type=Password></form></html>", "text/html", "is a sign-in page"),
        (
            "torch",
            "application/octet-stream",
            "of type `application/octet-stream`, wanted an index",
        ),
    ],
)
def test_broken_pages(body: str, content_type: str, message: str) -> None:
    with pytest.raises(WorldError) as caught:
        read(body, content_type=content_type, base_url="https://me:pw@h.org/whl/torch/")
    assert message in caught.value.message
    assert "`https://h.org/whl/torch/`" in caught.value.message
    assert caught.value.hint


def test_malformed_declarations() -> None:
    """Older parsers of the standard library assert here, newer ones read a comment."""
    with suppress(WorldError):
        assert read("<![bad[>") == ()


def test_a_page_without_links_is_whole() -> None:
    assert html() == ()
    assert read("") == ()
    assert read("<html><body></body>") == ()
    assert read(pep691(), content_type=JSON) == ()


TYPES = st.sampled_from(["text/html", JSON, "", "text/plain"])
TOKENS = """<a href= " torch-1-py3-none-any.whl #sha256= <![ <!-- &# 99999999999 <base href= :// [ {
"files": ] } < > %2 ? ="""
PIECES = st.lists(st.sampled_from([*TOKENS.split(), A, " ", "\0"]), max_size=20).map("".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["url", "filename", "hashes", "sha256", "size", "yanked", "core-metadata"]
            ),
            inner,
        )
    ),
    max_leaves=12,
)


@given(st.binary() | PIECES.map(str.encode), TYPES, st.sampled_from([None, "torch"]))
def test_any_bytes(body: bytes, content_type: str, project: str | None) -> None:
    with suppress(WorldError):
        for wheel in read(body, content_type=content_type, project=project):
            assert wheel.url.startswith(("https://", "http://"))


@given(st.lists(VALUES, max_size=4))
def test_any_json(files: list[Any]) -> None:
    with suppress(WorldError):
        read(pep691(*files), content_type=JSON)


@given(st.integers(0, 400))
def test_no_prefix_of_a_page_reads_as_a_shorter_page(cut: int) -> None:
    whole = "<html><body>" + "".join(
        f'<a href="torch-{n}-py3-none-any.whl">x</a>\n' for n in range(9)
    )
    assert len(read(whole + "</body></html>")) == 9
    with suppress(WorldError):
        assert read(whole[:cut]) == ()


@given(st.integers(1, 200))
def test_no_prefix_of_json_reads(cut: int) -> None:
    whole = pep691({"filename": "torch-1-py3-none-any.whl", "url": "x", "pad": "x" * 200})
    with pytest.raises(WorldError):
        read(whole[:-cut], content_type=JSON)


def sdist(*links: str, version: str = "2.8.3") -> Artifact | None:
    return parse_sdist(
        "".join(links).encode(),
        content_type="text/html",
        base_url="https://u:p@h.org/simple/flash-attn/",
        project="flash-attn",
        version=version,
    )


@pytest.mark.parametrize(
    ("version", "links", "filename", "sha256"),
    [
        ("2.8.3", [f'<a href="flash_attn-2.8.3.tar.gz#sha256={A}">x</a>'], None, A),
        ("2.8.3.0", [f'<a href="flash-attn-2.8.3.tar.gz#sha256={A}">x</a>'], None, A),
        ("2.8.3", ['<a href="Flash_Attn-2.8.3.zip">x</a>'], None, None),
        (
            "2.8.3",
            [
                '<a href="flash_attn-2.8.3.zip">x</a>',
                f'<a href="flash_attn-2.8.3.tar.gz#sha256={A}">x</a>',
            ],
            "flash_attn-2.8.3.tar.gz",
            A,
        ),
        (
            "2.8.3",
            [
                f'<a href="flash_attn-2.8.3.tar.gz#sha256={A}">x</a>',
                f'<a href="flash_attn-2.8.3.tar.gz#sha256={B}">x</a>',
            ],
            None,
            None,
        ),
    ],
)
def test_an_sdist(version: str, links: list[str], filename: str | None, sha256: str | None) -> None:
    found = sdist(*links, version=version)
    assert found is not None
    assert found.sha256 == sha256
    assert found.url == f"https://h.org/simple/flash-attn/{found.filename}"
    assert filename in {None, found.filename}


@pytest.mark.parametrize(
    "href",
    [
        "flash_attn-2.8.4.tar.gz",
        "flash-2.8.3.tar.gz",
        "flash_attn-2.8.3-py3-none-any.whl",
        "flash_attn-2.8.3.tar.bz2",
        "flash_attn-x.tar.gz",
        "file:///etc/flash_attn-2.8.3.tar.gz",
        f"flash_attn-2.8.3{'0' * 300}.tar.gz",
    ],
)
def test_what_is_not_the_sdist_is_passed_over(href: str) -> None:
    assert sdist(f'<a href="{href}">x</a>') is None
