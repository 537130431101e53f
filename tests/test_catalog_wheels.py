"""Wheels of the known pages: what is there, where it lies, and in which order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from envbuild.catalog.reader import Catalog
from envbuild.core.indexpages import PYPI, flash_attn_page, pyg_page, pytorch_page
from envbuild.model.project import IndexUrls
from envbuild.model.wheel import PageKind

if TYPE_CHECKING:
    from envbuild.model.wheel import IndexPage, WheelFile

PUBLIC = IndexUrls()
MIRROR = IndexUrls(
    pytorch="https://mirror.example/pt/whl/",
    pyg="https://mirror.example/pyg",
    flash_attn="https://mirror.example/fa/releases",
    pypi="https://mirror.example/simple",
)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog.load()


def torch_page(accelerator: str, indexes: IndexUrls = PUBLIC) -> IndexPage:
    page = pytorch_page(indexes, accelerator)
    assert page is not None
    return page


def only(wheels: tuple[WheelFile, ...], filename: str) -> WheelFile:
    found = [wheel for wheel in wheels if wheel.filename == filename]
    assert len(found) == 1, filename
    return found[0]


def every_page(catalog: Catalog) -> list[IndexPage]:
    pages = [torch_page(key) for key in catalog.pages(PageKind.PYTORCH)]
    pages += [pyg_page(PUBLIC, *key.split("+")) for key in catalog.pages(PageKind.PYG)]
    pages += [flash_attn_page(PUBLIC, key) for key in catalog.pages(PageKind.FLASH_ATTN)]
    return [*pages, PYPI]


PTV3 = (
    (
        "cu128",
        "torch-2.7.0+cu128-cp311-cp311-manylinux_2_28_x86_64.whl",
        "c4bbc0b4be60319ba1cefc90be9557b317f0b3c261eeceb96ca6e0343eec56bf",
    ),
    ("cu128", "torchvision-0.22.0+cu128-cp311-cp311-manylinux_2_28_x86_64.whl", None),
    ("cu128", "torchaudio-2.7.0+cu128-cp311-cp311-manylinux_2_28_x86_64.whl", None),
    ("cu128", "triton-3.3.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl", None),
    (
        "pypi",
        "spconv_cu126-2.3.8-cp311-cp311-manylinux_2_28_x86_64.whl",
        "bd17eacd5d24f1b52f5400692b2f5753ca646f166bc2e8b13c1f45181f3205b9",
    ),
    ("pypi", "cumm_cu126-0.7.11-cp311-cp311-manylinux_2_28_x86_64.whl", None),
)


@pytest.mark.parametrize(("index", "filename", "sha256"), PTV3)
def test_wheels_of_a_blackwell_point_cloud_project_have_hashes(
    catalog: Catalog, index: str, filename: str, sha256: str | None
) -> None:
    page = PYPI if index == "pypi" else torch_page(index)
    wheel = only(catalog.wheels(page, filename.partition("-")[0]), filename)
    assert wheel.sha256 is not None
    assert len(wheel.sha256) == 64
    assert sha256 in (None, wheel.sha256)
    assert catalog.sha256(replace(wheel, sha256=None)) == wheel.sha256


def test_every_wheel_is_what_its_file_name_says(catalog: Catalog) -> None:
    seen = 0
    for page in every_page(catalog):
        for project in catalog.projects(page):
            for wheel in catalog.wheels(page, project):
                name, version, _, tags = parse_wheel_filename(wheel.filename)
                assert wheel.project == name == canonicalize_name(project)
                assert wheel.version == str(version)
                assert not version.is_devrelease
                platforms = {tag.platform for tag in tags}
                assert all("linux" in tag or tag == "any" for tag in platforms), wheel.filename
                assert wheel.page == page
                assert wheel.origin.startswith(("observed: ", "inferred: "))
                assert wheel.origin.endswith("; 2026-11-29")
                if page.kind is PageKind.PYPI:
                    assert wheel.url == ""
                else:
                    assert unquote(wheel.url).endswith(f"/{wheel.filename}")
                    assert "+" not in wheel.url
                seen += 1
    assert seen > 5000


def test_no_page_lists_a_file_twice_or_out_of_order(catalog: Catalog) -> None:
    for page in every_page(catalog):
        for project in catalog.projects(page):
            wheels = catalog.wheels(page, project)
            names = [wheel.filename.lower() for wheel in wheels]
            assert len(set(names)) == len(names)
            releases = [Version(wheel.version.partition("+")[0]) for wheel in wheels]
            assert releases == sorted(releases, reverse=True)


def test_addresses_follow_the_public_layout(catalog: Catalog) -> None:
    torch = catalog.wheels(torch_page("cu128"), "torch")[0]
    assert torch.url.startswith("https://download.pytorch.org/whl/cu128/torch-")
    scatter = catalog.wheels(pyg_page(PUBLIC, "2.7.1", "cu128"), "torch-scatter")[0]
    assert scatter.url.startswith("https://data.pyg.org/whl/torch-2.7.0%2Bcu128/torch_scatter-2")
    flash = catalog.wheels(flash_attn_page(PUBLIC, "2.8.3"), "flash_attn")[0]
    assert flash.url.startswith(
        "https://github.com/Dao-AILab/flash-attention/releases/download/v2.8.3/flash_attn-2.8.3%2B"
    )


def test_a_mirrors_page_gives_the_mirrors_addresses(catalog: Catalog) -> None:
    pages = (
        (torch_page("cu128"), torch_page("cu128", MIRROR), "torch"),
        (torch_page("cu128"), torch_page("cu128", MIRROR), "triton"),
        (pyg_page(PUBLIC, "2.7.0", "cu128"), pyg_page(MIRROR, "2.7.0", "cu128"), "pyg-lib"),
        (flash_attn_page(PUBLIC, "2.8.3"), flash_attn_page(MIRROR, "2.8.3"), "flash-attn"),
    )
    bases = (
        ("https://download.pytorch.org/whl/", "https://mirror.example/pt/whl/"),
        ("https://download.pytorch.org/whl/", "https://mirror.example/pt/whl/"),
        ("https://data.pyg.org/whl/", "https://mirror.example/pyg/"),
        (
            "https://github.com/Dao-AILab/flash-attention/releases/",
            "https://mirror.example/fa/releases/",
        ),
    )
    for (public, mirror, project), (old, new) in zip(pages, bases, strict=True):
        expected = [w.url.replace(old, new) for w in catalog.wheels(public, project)]
        found = catalog.wheels(mirror, project)
        assert expected
        assert [wheel.url for wheel in found] == expected
        assert {wheel.page for wheel in found} == {mirror}


def test_files_at_the_root_show_on_every_accelerators_page(catalog: Catalog) -> None:
    filename = "triton-3.3.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl"
    for accelerator in ("cu128", "cu126", "cpu"):
        wheel = only(catalog.wheels(torch_page(accelerator), "triton"), filename)
        assert wheel.url == f"https://download.pytorch.org/whl/{filename}"


def test_an_alias_page_lists_the_wheels_of_the_first_patch_release(catalog: Catalog) -> None:
    original = pyg_page(PUBLIC, "2.7.0", "cu128")
    alias = replace(original, key="2.7.1+cu128", url=original.url.replace("2.7.0", "2.7.1"))
    wheels = catalog.wheels(alias, "torch-scatter")
    assert [w.url for w in wheels] == [w.url for w in catalog.wheels(original, "torch-scatter")]
    assert "torch-2.7.0%2Bcu128/" in wheels[0].url
    unknown = replace(original, key="2.8.1+cu128", url=original.url.replace("2.7.0", "2.8.1"))
    assert catalog.wheels(unknown, "torch-scatter") == ()


def test_aarch64_companions_without_local_version_stand_beside_the_others(
    catalog: Catalog,
) -> None:
    wheels = catalog.wheels(torch_page("cu128"), "torchvision")
    found = [
        (wheel.version, wheel.filename.endswith("aarch64.whl"))
        for wheel in wheels
        if wheel.version.startswith("0.22.0") and "-cp311-" in wheel.filename
    ]
    assert found == [("0.22.0+cu128", False), ("0.22.0", True)]


def test_a_later_build_of_the_same_release_comes_first(catalog: Catalog) -> None:
    names = [
        wheel.filename
        for wheel in catalog.wheels(PYPI, "torch")
        if wheel.version == "2.10.0" and wheel.filename.endswith("cp312-manylinux_2_28_x86_64.whl")
    ]
    assert names == [
        "torch-2.10.0-3-cp312-cp312-manylinux_2_28_x86_64.whl",
        "torch-2.10.0-cp312-cp312-manylinux_2_28_x86_64.whl",
    ]


def test_inferred_wheels_say_so_and_have_no_hash(catalog: Catalog) -> None:
    flash = catalog.wheels(flash_attn_page(PUBLIC, "2.8.3"), "flash-attn")
    inferred = [wheel for wheel in flash if wheel.origin.startswith("inferred: ")]
    observed = [wheel for wheel in flash if wheel.origin.startswith("observed: ")]
    assert inferred
    assert not any(wheel.sha256 for wheel in inferred)
    assert any(wheel.sha256 for wheel in observed)


def test_requirements_tell_unknown_from_none(catalog: Catalog) -> None:
    torch = only(catalog.wheels(torch_page("cu128"), "torch"), PTV3[0][1])
    assert torch.requires_dist is not None
    nccl = 'nvidia-nccl-cu12==2.26.2; platform_system == "Linux" and platform_machine == "x86_64"'
    assert nccl in torch.requires_dist
    audio = [w for w in catalog.wheels(PYPI, "torchaudio") if w.version == "2.11.0"]
    assert {wheel.requires_dist for wheel in audio} == {()}
    codec = {wheel.requires_dist for wheel in catalog.wheels(PYPI, "torchcodec")}
    assert None in codec
    newer = next(w for w in catalog.wheels(torch_page("cu130"), "torch") if "2.11.0" in w.version)
    assert any(line.startswith("cuda-toolkit[") for line in newer.requires_dist or ())


def test_requirements_of_a_live_wheel_are_completed(catalog: Catalog) -> None:
    known = only(catalog.wheels(torch_page("cu128"), "torch"), PTV3[0][1])
    live = replace(known, requires_dist=None, sha256=None)
    assert catalog.requires_dist(live) == known.requires_dist
    assert catalog.requires_dist(replace(live, requires_dist=("numpy",))) == ("numpy",)
    strange = replace(live, filename="torch-9.9.9-cp311-cp311-manylinux_2_28_x86_64.whl")
    assert catalog.requires_dist(strange) is None
    assert catalog.sha256(strange) is None


def test_what_is_not_there_is_empty(catalog: Catalog) -> None:
    assert catalog.wheels(torch_page("cu999"), "torch") == ()
    assert catalog.wheels(torch_page("cu128"), "nothing") == ()
    assert catalog.wheels(PYPI, "numpy") == ()
    assert catalog.projects(torch_page("cu999")) == ()


def test_pages_are_listed_newest_first(catalog: Catalog) -> None:
    pytorch = catalog.pages(PageKind.PYTORCH)
    assert pytorch[:4] == ("cu132", "cu130", "cu129", "cu128")
    assert pytorch[-1] == "cpu"
    pyg = catalog.pages(PageKind.PYG)
    assert pyg.index("2.10.0+cu128") < pyg.index("2.9.0+cu128")
    flash = catalog.pages(PageKind.FLASH_ATTN)
    assert flash.index("2.8.3.post1") < flash.index("2.8.3") < flash.index("2.7.4.post1")
    assert catalog.pages(PageKind.PYPI) == ("",)
    assert "spconv-cu126" in catalog.projects(PYPI)
