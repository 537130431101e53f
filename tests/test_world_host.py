"""What is read of a host; an image stands for the machine wherever that makes no difference."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from envmaker import EnvMaker

from envbuild.model.cuda import CudaVersion
from envbuild.model.host import Compiler, Host, Toolkit
from envbuild.world.host import read_host
from envbuild.world.limits import memory_limit, usable_cores
from envbuild.world.nvidiadriver import driver_of_libraries, gpu_models, read_driver
from envbuild.world.rootfs import Root

if TYPE_CHECKING:
    from pathlib import Path

LIB = "usr/lib/x86_64-linux-gnu"
LIBC = b"\x7fELF\0GNU C Library (Debian GLIBC 2.36-9+deb12u10) stable release version 2.36.\n\0"


def put(root: Path, path: str, content: bytes | str = b"") -> None:
    goal = root / path
    goal.parent.mkdir(parents=True, exist_ok=True)
    goal.write_bytes(content.encode() if isinstance(content, str) else content)


def link(root: Path, path: str, target: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).symlink_to(target)


def image(root: Path, **environ: str) -> Host:
    installed = EnvMaker(root, image=True).venv().read()
    return read_host(root=str(root), environ=environ, installed=installed)


def test_an_empty_image(tmp_path: Path) -> None:
    assert image(tmp_path) == Host(is_image=True)


def test_the_machine_itself() -> None:
    host = read_host(environ={"MAX_JOBS": "2", "SECRET": "x"})
    assert not host.is_image
    assert host.cores
    assert host.memory_bytes
    assert host.environment == (("MAX_JOBS", "2"),)


class TestLibraries:
    def test_glibc_by_its_banner(self, tmp_path: Path) -> None:
        put(tmp_path, f"{LIB}/libc.so.6", bytes(1000) + LIBC)
        assert image(tmp_path).glibc == "2.36"

    def test_glibc_by_its_name(self, tmp_path: Path) -> None:
        put(tmp_path, "lib64/libc-2.17.so")
        link(tmp_path, "lib64/libc.so.6", "libc-2.17.so")
        assert image(tmp_path).glibc == "2.17"

    def test_musl(self, tmp_path: Path) -> None:
        put(tmp_path, "lib/libc.musl-x86_64.so.1", b"musl")
        assert image(tmp_path).glibc is None

    def test_newest_glibcxx(self, tmp_path: Path) -> None:
        names = b"".join(b"GLIBCXX_3.4.%d\0" % number for number in (9, 30, 4))
        put(tmp_path, f"{LIB}/libstdc++.so.6.0.30", b"x" * ((1 << 20) - 9) + names)
        link(tmp_path, f"{LIB}/libstdc++.so.6", "libstdc++.so.6.0.30")
        assert image(tmp_path).libstdcxx == ((f"/{LIB}/libstdc++.so.6", "3.4.30"),)

    def test_glibcxx_by_the_name_of_the_file(self, tmp_path: Path) -> None:
        put(tmp_path, "usr/lib64/libstdc++.so.6.0.29")
        link(tmp_path, "usr/lib64/libstdc++.so.6", "libstdc++.so.6.0.29")
        assert image(tmp_path).libstdcxx == (("/usr/lib64/libstdc++.so.6", "3.4.29"),)

    def test_the_one_of_conda_comes_first(self, tmp_path: Path) -> None:
        for path, number in ((f"{LIB}/libstdc++.so.6", 30), ("conda/lib/libstdc++.so.6", 29)):
            put(tmp_path, path, b"GLIBCXX_3.4.%d\0" % number)
        installed = EnvMaker(tmp_path, image=True).conda().read()
        host = read_host(root=str(tmp_path), environ={}, installed=installed)
        assert [newest for _, newest in host.libstdcxx] == ["3.4.29", "3.4.30"]

    def test_driver_in_file_names(self, tmp_path: Path) -> None:
        for name in ("libcuda.so.1", "libcuda.so.570.86.10", "libnvidia-ml.so.570.86.10"):
            put(tmp_path, f"{LIB}/{name}")
        assert driver_of_libraries("x86_64", root=Root(str(tmp_path))) == "570.86.10"
        assert image(tmp_path).driver is None


class TestCompilers:
    def test_debian(self, tmp_path: Path) -> None:
        put(tmp_path, "usr/bin/x86_64-linux-gnu-g++-12")
        link(tmp_path, "usr/bin/g++-12", "x86_64-linux-gnu-g++-12")
        link(tmp_path, "usr/bin/g++", "g++-12")
        link(tmp_path, "bin", "usr/bin")
        put(tmp_path, "usr/bin/gcc-ar-12")
        assert image(tmp_path).compilers == (
            Compiler(path="/usr/bin/g++", version="12"),
            Compiler(path="/usr/bin/g++-12", version="12"),
            Compiler(path="/usr/bin/x86_64-linux-gnu-g++-12", version="12"),
        )

    def test_fedora(self, tmp_path: Path) -> None:
        put(tmp_path, "usr/bin/g++")
        put(tmp_path, "usr/lib/gcc/x86_64-redhat-linux/11/crtbegin.o")
        assert image(tmp_path).compilers == (Compiler(path="/usr/bin/g++", version="11"),)

    def test_the_image_of_gcc(self, tmp_path: Path) -> None:
        put(tmp_path, "usr/local/bin/g++")
        put(tmp_path, "usr/local/lib/gcc/x86_64-linux-gnu/13.2.0/crtbegin.o")
        put(tmp_path, "usr/local/libexec/gcc/x86_64-linux-gnu/13.2.0/cc1plus")
        put(tmp_path, "usr/local/lib/gcc/x86_64-linux-gnu/14/leftover")
        assert image(tmp_path).compilers == (Compiler(path="/usr/local/bin/g++", version="13.2.0"),)

    def test_clang(self, tmp_path: Path) -> None:
        put(tmp_path, "usr/lib/llvm-14/bin/clang")
        link(tmp_path, "usr/bin/clang++", "../lib/llvm-14/bin/clang")
        assert image(tmp_path).compilers == (Compiler(path="/usr/bin/clang++", version="14"),)

    def test_a_toolset_on_path(self, tmp_path: Path) -> None:
        put(tmp_path, "opt/rh/gcc-toolset-12/root/usr/bin/g++")
        put(tmp_path, "opt/rh/gcc-toolset-12/root/usr/lib/gcc/x86_64-redhat-linux/12/x")
        put(tmp_path, "usr/bin/g++")
        host = image(tmp_path, PATH="/opt/rh/gcc-toolset-12/root/usr/bin:/usr/bin")
        assert [one.version for one in host.compilers] == ["12", None]

    def test_variables_come_first(self, tmp_path: Path) -> None:
        for path in ("usr/bin/g++", "usr/bin/g++-13", "opt/bin/gcc-11"):
            put(tmp_path, path)
        host = image(tmp_path, CXX="ccache g++-13", CC="/opt/bin/gcc-11", CUDAHOSTCXX="gone-g++")
        paths = [one.path for one in host.compilers]
        assert paths == ["/usr/bin/g++-13", "/opt/bin/gcc-11", "/usr/bin/g++"]


def version_json(version: str) -> str:
    return json.dumps({"cuda": {"version": version}, "cuda_nvcc": {"version": version}})


class TestToolkits:
    def toolkit(self, root: Path, path: str, version: str) -> None:
        put(root, f"{path}/bin/nvcc")
        put(root, f"{path}/version.json", version_json(version))

    def test_default_and_its_link(self, tmp_path: Path) -> None:
        self.toolkit(tmp_path, "usr/local/cuda-12.8", "12.8.93")
        link(tmp_path, "usr/local/cuda", "/etc/alternatives/cuda")
        link(tmp_path, "etc/alternatives/cuda", "/usr/local/cuda-12.8")
        assert image(tmp_path).toolkits == (
            Toolkit(
                path="/usr/local/cuda",
                version=CudaVersion(major=12, minor=8),
                how="default",
                nvcc="/usr/local/cuda/bin/nvcc",
            ),
        )

    def test_the_order_is_the_one_of_torch(self, tmp_path: Path) -> None:
        for number in ("11.8", "12.4", "12.8"):
            self.toolkit(tmp_path, f"usr/local/cuda-{number}", f"{number}.1")
        host = image(
            tmp_path,
            PATH="/usr/local/cuda-12.4/bin:/usr/bin",
            CUDA_PATH="/usr/local/cuda-12.8/",
            CUDA_HOME="/opt/gone",
        )
        assert [(one.how, str(one.version), one.exists) for one in host.toolkits] == [
            ("CUDA_HOME", "None", False),
            ("CUDA_PATH", "12.8", True),
            ("PATH", "12.4", True),
            ("default", "11.8", True),
        ]

    def test_a_runtime_without_nvcc(self, tmp_path: Path) -> None:
        put(tmp_path, "usr/local/cuda-12.8/version.json", version_json("12.8.1"))
        (toolkit,) = image(tmp_path).toolkits
        assert (str(toolkit.version), toolkit.nvcc) == ("12.8", None)

    def test_debian(self, tmp_path: Path) -> None:
        put(tmp_path, "usr/bin/nvcc", '#!/bin/sh\nexec /usr/lib/nvidia-cuda-toolkit/bin/nvcc "$@"')
        put(tmp_path, "usr/lib/nvidia-cuda-toolkit/bin/nvcc")
        put(tmp_path, "usr/include/cuda.h", "/* */\n#define CUDA_VERSION 11080\n")
        (toolkit,) = image(tmp_path).toolkits
        assert (toolkit.path, str(toolkit.version), toolkit.how) == ("/usr", "11.8", "PATH")

    def test_a_script_that_leads_to_a_toolkit(self, tmp_path: Path) -> None:
        self.toolkit(tmp_path, "opt/nvidia", "13.0.88")
        put(tmp_path, "usr/local/bin/nvcc", "#!/bin/sh\nexec /opt/nvidia/bin/nvcc $*\n")
        (toolkit,) = image(tmp_path).toolkits
        assert (toolkit.path, str(toolkit.version)) == ("/usr/local", "13.0")

    def test_an_old_one(self, tmp_path: Path) -> None:
        put(tmp_path, "usr/local/cuda/version.txt", "CUDA Version 10.1.243\n")
        assert [str(one.version) for one in image(tmp_path).toolkits] == ["10.1"]

    def test_conda(self, tmp_path: Path) -> None:
        env = EnvMaker(tmp_path, image=True).conda().conda_package("cuda-nvcc", "12.4.131")
        put(tmp_path, "conda/bin/nvcc")
        host = read_host(root=str(tmp_path), environ={}, installed=env.read())
        assert [(one.how, str(one.version)) for one in host.toolkits] == [("conda", "12.4")]

    def test_wheel(self, tmp_path: Path) -> None:
        env = EnvMaker(tmp_path, image=True).venv()
        env.install("nvidia-cuda-nvcc", "13.0.88", files={"nvidia/cu13/bin/nvcc": b"x"})
        host = read_host(root=str(tmp_path), environ={}, installed=env.read())
        (toolkit,) = host.toolkits
        assert (toolkit.path, toolkit.how) == (f"{env.inside(env.site)}/nvidia/cu13", "wheel")
        assert str(toolkit.version) == "13.0"

    def test_compat(self, tmp_path: Path) -> None:
        self.toolkit(tmp_path, "usr/local/cuda-12.8", "12.8.1")
        put(tmp_path, "usr/local/cuda-12.8/compat/libcuda.so.570.86.10")
        assert image(tmp_path).compat_driver == "570.86.10"


class TestLimits:
    def test_the_second_version(self, tmp_path: Path) -> None:
        put(tmp_path, "proc/self/cgroup", "0::/a/b\n")
        put(tmp_path, "sys/fs/cgroup/a/b/memory.max", "max\n")
        put(tmp_path, "sys/fs/cgroup/a/memory.max", "4096\n")
        put(tmp_path, "sys/fs/cgroup/memory.max", "8192\n")
        put(tmp_path, "sys/fs/cgroup/a/cpu.max", "150000 100000\n")
        root = Root(str(tmp_path))
        assert memory_limit(root=root) == 4096
        assert usable_cores(root=root) == 1

    def test_the_first_version_within_a_container(self, tmp_path: Path) -> None:
        put(tmp_path, "proc/self/cgroup", "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n")
        put(tmp_path, "sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n")
        put(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n")
        put(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
        root = Root(str(tmp_path))
        assert memory_limit(root=root) == 1 << 30
        assert usable_cores(root=root) == 1

    @pytest.mark.parametrize("text", ["9223372036854771712", "max", "", "-1", "²"])
    def test_no_limit(self, tmp_path: Path, text: str) -> None:
        put(tmp_path, "sys/fs/cgroup/memory/memory.limit_in_bytes", text)
        put(tmp_path, "sys/fs/cgroup/memory.max", text)
        put(tmp_path, "sys/fs/cgroup/cpu.max", text)
        assert memory_limit(root=Root(str(tmp_path))) is None
        assert usable_cores(root=Root(str(tmp_path))) == usable_cores(
            root=Root(str(tmp_path / "proc" / ".."))
        )


def test_variables_without_credentials(tmp_path: Path) -> None:
    host = image(
        tmp_path,
        PIP_EXTRA_INDEX_URL="https://me:word@a.org/simple https://b.org",
        LD_LIBRARY_PATH="/usr/local/cuda/lib64:",
        HOME="/root",
    )
    assert host.variable("PIP_EXTRA_INDEX_URL") == "https://a.org/simple https://b.org"
    assert host.variable("LD_LIBRARY_PATH") == "/usr/local/cuda/lib64:"
    assert host.variable("HOME") is None


def test_nvidia_smi_that_somebody_had_at_hand(tmp_path: Path) -> None:
    text = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\nGPU 1: NVIDIA Unheard 9 (UUID: GPU-2)\n"
    host = read_host(root=str(tmp_path), environ={}, nvidia_smi=text)
    assert [str(gpu.capability) for gpu in host.gpus] == ["9.0"]
    assert host.unknown_gpus == ("NVIDIA Unheard 9",)


def test_jetson(tmp_path: Path) -> None:
    put(tmp_path, "etc/nv_tegra_release", "# R36 (release), REVISION: 4.3, GCID: 3, BOARD: generic")
    assert image(tmp_path).tegra == "36.4.3"


def test_what_the_kernel_module_says(tmp_path: Path) -> None:
    for number, name in enumerate(("NVIDIA B200", "NVIDIA H100 80GB HBM3")):
        put(tmp_path, f"proc/driver/nvidia/gpus/0000:0{number}:00.0/information", f"Model: {name}")
    put(tmp_path, "sys/module/nvidia/version", "580.65.06\n")
    put(tmp_path, f"{LIB}/libcuda.so.570.86.10")
    root = Root(str(tmp_path))
    assert gpu_models(root=root) == ("NVIDIA B200", "NVIDIA H100 80GB HBM3")
    assert read_driver("x86_64", root=root) == "580.65.06"


def test_the_board_of_a_jetson(tmp_path: Path) -> None:
    put(tmp_path, "proc/device-tree/model", "NVIDIA Jetson AGX Orin Developer Kit\0")
    root = Root(str(tmp_path))
    assert gpu_models(root=root) == ("NVIDIA Jetson AGX Orin Developer Kit",)
