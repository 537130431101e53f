"""The script that reads what each nvcc accepts and compiles for."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from index import LocalIndex, local_wheel
from scriptfiles import script

from envbuild.core.toolkits import toolkits
from envbuild.model.cuda import CudaVersion
from envbuild.world.http import HttpClient

if TYPE_CHECKING:
    from pathlib import Path

READ: Any = script("read_toolkits")
HEADER = """\
#if (__GRCO_CLANG_COMPILER__ == 1) && ((__clang_major__ < 16) || (__clang_major__ > 20))
#if defined(__GNUC__)
#if __GNUC__ > 14
#error -- unsupported GNU version!
#if (__clang_major__ >= 21) || (__clang_major__ < 3)
"""
PTXAS = b"""#!/bin/sh
# compute_80 compute_90 compute_90a compute_1000b \0compute_120\0
echo "ptxas $4, line 1; fatal   : Unsupported .version 99.9; current version is '8.7'" >&2
exit 255
"""
TAG = "py3-none-manylinux2014_x86_64"


def test_what_a_header_refuses() -> None:
    assert READ.host_limits(HEADER) == (14, 20)
    assert READ.host_limits("") == (None, None)


def test_what_an_assembler_names() -> None:
    assert READ.architectures(PTXAS) == ("8.0", "9.0", "9.0a", "12.0")


def test_an_assembler_that_says_something_else_ends_the_script(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="wanted the version"):
        READ.newest_ptx(b"#!/bin/sh\necho 1 >&2\n", tmp_path)


def test_the_last_release_of_each_minor_is_read(tmp_path: Path) -> None:
    folder = "nvidia/cuda_nvcc"
    with LocalIndex() as index:
        for project, versions in (
            ("nvidia-cuda-nvcc-cu11", ("11.8.89",)),
            ("nvidia-cuda-nvcc-cu12", ("12.8.9", "12.8.93")),
            ("nvidia-cuda-nvcc", ("0.0.0a0", "13.0.48")),
            ("nvidia-cuda-crt", ("13.0.48",)),
        ):
            for version in versions:
                files = {
                    f"{folder}/bin/ptxas": PTXAS,
                    f"{folder}/include/crt/host_config.h": HEADER.encode(),
                }
                index.add_pypi(local_wheel(project, version, TAG, files=files))
        out = tmp_path / "toolkits.toml"
        assert READ.main(["--index", f"{index.base}/pypi/simple", "--out", str(out)]) == 0
    text = out.read_text()
    assert text.count("[toolkits.") == 3
    assert text.endswith(
        '[toolkits."13.0"]\nrelease = "nvidia-cuda-nvcc 13.0.48"\ngcc = 14\nclang = 20\n'
        'isa = "8.7"\narchs = ["8.0", "9.0", "9.0a", "12.0"]\n'
    )
    assert "12.8.93" in text
    assert '12.8.9"' not in text


@pytest.mark.online
def test_a_release_read_again_is_as_the_table_says() -> None:
    with closing(HttpClient()) as client:
        wheels = READ.releases(client, "nvidia-cuda-nvcc-cu12")
        wheel = READ.last_of_each_minor(wheels)["12.9"]
        header = READ.member_of(client, wheel, "/crt/host_config.h").decode()
        ptxas = READ.member_of(client, wheel, "/bin/ptxas")
    table = toolkits()[CudaVersion.parse("12.9")]
    assert READ.host_limits(header) == (table["gcc"], table["clang"])
    assert READ.architectures(ptxas) == tuple(table["archs"])
