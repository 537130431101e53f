"""Building the catalog's data from a small set of facts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from catalog_fixture import FACTS, HOST, INDEX, X86

from envbuild.catalog.reader import Catalog
from envbuild.core.indexpages import PYPI, flash_attn_page, pyg_page, pytorch_page
from envbuild.model.cuda import CudaVersion
from envbuild.model.project import IndexUrls
from envbuild.model.wheel import PageKind

if TYPE_CHECKING:
    from envbuild.model.wheel import WheelFile

SCRIPT = Path(__file__).parents[1] / "scripts" / "build_catalog.py"


def build(facts: Path, out: Path) -> dict[str, bytes]:
    command = [sys.executable, str(SCRIPT), str(facts), "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    return {p.relative_to(out).as_posix(): p.read_bytes() for p in out.rglob("*.json")}


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("facts")
    for name, value in FACTS.items():
        (folder / name).write_text(json.dumps(value))
    return folder


@pytest.fixture(scope="module")
def out(facts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out")
    (folder / "pyg").mkdir()
    (folder / "pyg" / "1.0.0+cu90.json").write_text("{}")
    build(facts, folder)
    return folder


@pytest.fixture(scope="module")
def catalog(out: Path) -> Catalog:
    return Catalog.load(out)


def torch_wheels(catalog: Catalog, accelerator: str = "cu128") -> dict[str, WheelFile]:
    page = pytorch_page(IndexUrls(), accelerator)
    assert page is not None
    return {wheel.version: wheel for wheel in catalog.wheels(page, "torch")}


def test_the_same_facts_in_another_order_give_the_same_bytes(
    facts: Path, out: Path, tmp_path: Path
) -> None:
    other = tmp_path / "facts"
    other.mkdir()
    for name, value in FACTS.items():
        shuffled = {"wheels": INDEX[::-1]} if name == "indexes.json" else value
        (other / name).write_text(json.dumps(dict(reversed(shuffled.items()))))
    assert build(facts, tmp_path / "one") == build(other, tmp_path / "two")
    assert build(facts, out) == build(facts, tmp_path / "one")


def test_a_page_that_is_gone_is_removed(out: Path) -> None:
    assert not (out / "pyg" / "1.0.0+cu90.json").exists()
    assert (out / "pyg" / "2.7.0+cu128.json").exists()


def test_what_no_linux_release_is_stays_out(catalog: Catalog) -> None:
    assert list(torch_wheels(catalog)) == ["2.8.0+cu128", "2.7.1+cu128", "2.7.0+cu128"]
    assert catalog.pages(PageKind.PYTORCH) == ("cu128", "cpu")
    page = pytorch_page(IndexUrls(), "cu128")
    assert page is not None
    assert catalog.projects(page) == ("torch", "torchaudio", "triton")


def test_contradicting_hashes_cancel_out_unless_the_page_itself_gives_one(
    catalog: Catalog,
) -> None:
    wheels = torch_wheels(catalog)
    assert wheels["2.7.0+cu128"].sha256 == "a" * 64
    assert wheels["2.7.1+cu128"].sha256 is None
    assert "2 different hashes seen" in wheels["2.7.1+cu128"].origin
    assert wheels["2.8.0+cu128"].sha256 == "d" * 64


def test_a_link_to_another_host_means_the_canonical_address(catalog: Catalog) -> None:
    urls = [wheel.url for wheel in torch_wheels(catalog).values()]
    assert all(url.startswith(f"{HOST}/cu128/torch-2.") for url in urls)


def test_requirements_and_pypi_twins(catalog: Catalog) -> None:
    assert torch_wheels(catalog)["2.7.0+cu128"].requires_dist == ("filelock", "sympy>=1.13")
    assert torch_wheels(catalog)["2.7.1+cu128"].requires_dist is None
    (twin,) = catalog.wheels(PYPI, "torch")
    assert (twin.url, twin.sha256, twin.size) == ("", "6" * 64, 865)


def test_inferred_and_observed_are_told_apart(catalog: Catalog) -> None:
    page = pytorch_page(IndexUrls(), "cu128")
    assert page is not None
    (audio,) = catalog.wheels(page, "torchaudio")
    assert audio.origin.startswith("inferred: ")
    (sparse,) = catalog.wheels(pyg_page(IndexUrls(), "2.7.1", "cu128"), "torch-sparse")
    assert sparse.origin.startswith("observed: stored copy of https://data.pyg.org; ")
    assert sparse.requires_dist == ("scipy",)


def test_flash_attn_names_follow_the_matrix(catalog: Catalog) -> None:
    (old,) = catalog.wheels(flash_attn_page(IndexUrls(), "2.5.2"), "flash-attn")
    assert (
        old.filename == "flash_attn-2.5.2+cu118torch2.2cxx11abiFALSE-cp310-cp310-linux_x86_64.whl"
    )
    (seen,) = catalog.wheels(flash_attn_page(IndexUrls(), "2.8.3"), "flash-attn")
    assert "abiTRUE" in seen.filename
    assert seen.version == "2.8.3+cu12torch2.7cxx11abitrue"
    assert seen.sha256 == "9" * 64
    assert catalog.pages(PageKind.FLASH_ATTN) == ("2.8.3", "2.5.2")


def test_builds_of_torch(catalog: Catalog) -> None:
    cu128 = catalog.torch_build("2.7.0", CudaVersion.parse("12.8"))
    cpu = catalog.torch_build("2.7.0", None)
    assert cu128 is not None
    assert cpu is not None
    assert cpu.companions == cu128.companions
    assert (cpu.on_pypi, cpu.on_pypi_aarch64) == (False, True)
    assert cu128.code_aarch64 is not None
    assert [str(capability) for capability in cu128.code_aarch64.ptx] == ["12.0"]
    found = [(b.torch, b.cuda and b.cuda.tag) for b in catalog.torch_builds()]
    assert found == [
        ("2.8.0", "cu128"),
        ("2.7.1", "cu128"),
        ("2.7.0", "cu128"),
        ("2.7.0", "cu126"),
        ("2.7.0", None),
    ]


def test_gpu_code_is_that_of_the_wheels_own_libraries(catalog: Catalog) -> None:
    torch = catalog.device_code(f"torch-2.7.0-{X86}")
    spconv = catalog.device_code(f"spconv_cu126-2.3.8-{X86}")
    nccl = catalog.device_code("nvidia_nccl_cu12-2.26.2-py3-none-manylinux2014_x86_64.whl")
    assert torch is not None
    assert spconv is not None
    assert nccl is not None
    assert [c.sm for c in torch.sass] == ["sm_90", "sm_90a"]
    assert [c.sm for c in spconv.sass] == ["sm_90"]
    assert [c.sm for c in nccl.sass] == ["sm_90"]
    assert nccl.ptx == ()


def test_other_facts(catalog: Catalog, out: Path) -> None:
    assert catalog.torch_needs("2.7.0", "nccl") == ("ncclA",)
    assert catalog.shared_paths("nvidia-x-cu12", "nvidia-x-cu13") == ("nvidia/x/lib.so",)
    assert catalog.shared_paths("nvidia-nccl-cu12", "nvidia-nccl-cu13") == ("nvidia/nccl/a.so",)
    pairing = catalog.pairing("torchaudio", "2.11.1")
    assert pairing is not None
    assert pairing.torch == ">=2.13,<2.16"
    assert json.loads((out / "torch.json").read_text())["sources"] == {"A": "a table"}
