"""Objects that use torch in ways of their own: one for each torch, or linked to nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from imagemaker import SITE, machine, with_torch

from envbuild.core.link.variants import for_other_cuda, for_other_torch

if TYPE_CHECKING:
    from imagemaker import Image

ADD, GONE, LATER = "_ZN2at6Tensor3addEv", "_ZN2at4goneEv", "_ZN2at5laterEv"
STABLE = "aoti_torch_dtype_bfloat16"


def add_variant(image: Image, path: str, symbol: str) -> None:
    """Add a library that is linked to torch."""
    rpath = "$ORIGIN/../torch/lib:$ORIGIN/../../torch/lib"
    image.add(f"{SITE}/{path}", needed=("libtorch_cpu.so",), rpath=rpath, wants=(symbol,))


def names(image: Image) -> list[str]:
    """Return the symbols that are missing."""
    return [one.name for one in image.judge().symbols]


@pytest.mark.parametrize(
    "form", ["ext/libaddon_torch{}-cpu.so", "ext/torch{}-cxx11-cu128-x86_64-linux/_ops.so"]
)
def test_of_files_for_several_torches_only_the_one_that_fits_is_opened(form: str) -> None:
    """As torch-c-dlpack-ext 0.1.5 and the kernels of Hugging Face have them."""
    image = with_torch()
    for torch, symbol in (("24", GONE), ("28", ADD), ("210", LATER)):
        add_variant(image, form.format(torch), symbol)
    assert names(image) == []
    image.torch_version = "2.10.0"
    assert names(image) == [LATER]
    image.torch_version = "2.14.0"  # none is for it, and none is opened
    assert names(image) == []


def test_a_file_for_one_torch_is_opened_under_any() -> None:
    image = with_torch()
    add_variant(image, "ext/libaddon_torch24.so", GONE)
    add_variant(image, "other/libaddon_torch28.so", ADD)
    assert names(image) == [GONE]


def test_without_torch_no_file_is_for_the_right_one() -> None:
    paths = [f"/s/a/x_torch{minor}.so" for minor in (27, 28)]
    assert for_other_torch(paths, sites=("/s",), torch="") == {*paths}
    assert for_other_torch([*paths, "/s/b/pytorch28.so"], sites=("/s",), torch="2.8.0") == {
        paths[0]
    }


def test_what_is_linked_to_nothing_of_torch_makes_it_seen_by_all_beforehand() -> None:
    """As cuda-core does for `cuda.core._tensor_bridge`."""
    image = with_torch()
    image.extension("cuda/core/_tensor_bridge", imports=(ADD,))
    assert names(image) == []
    image.extension("cuda/core/_tensor_bridge", imports=(ADD, STABLE))
    assert names(image) == [STABLE]


def test_what_is_linked_to_nothing_of_torch_is_not_used_without_it() -> None:
    image = machine()
    image.extension("cuda/core/_tensor_bridge", imports=(STABLE, "own_function"))
    assert names(image) == ["own_function"]


def test_of_files_for_several_cudas_only_the_one_of_torch_is_opened() -> None:
    """As torch-memory-saver 0.0.10 has them at the top of the site, and cuda-core in folders."""
    image = with_torch()
    for form in ("saver_hook{}", "cuda/core{}/_bridge"):
        between = "_" if "hook" in form else "/"
        for tag, library in (("", 12), (f"{between}cu12", 12), (f"{between}cu13", 13)):
            image.extension(form.format(tag), needed=(f"libcudart.so.{library}",))
    assert missing(image, "12.8") == []
    assert missing(image, "13.0") == ["libcudart.so.13"] * 2
    assert missing(image, None) == []


def test_a_file_for_one_cuda_is_opened_under_any() -> None:
    image = with_torch()
    image.extension("saver_cu13", needed=("libcudart.so.13",))
    image.extension("saver", needed=("libcudart.so.13",))
    assert missing(image, "12.8") == ["libcudart.so.13"] * 2
    venv = "/work/cu128/s"
    assert for_other_cuda([f"{venv}/a.so", "/work/cu13/s/a.so"], sites=(venv,), cuda="12") == set()


def missing(image: Image, cuda: str | None) -> list[str]:
    """Return the libraries that are missing."""
    return [one.library for one in image.judge(cuda=cuda).libraries]
