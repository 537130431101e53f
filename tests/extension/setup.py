"""A small extension of torch: one C++ file, and one CUDA kernel."""

from __future__ import annotations

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="squares",
    version="1.0",
    packages=["squares"],
    ext_modules=[
        CUDAExtension("squares._C", ["src/squares.cpp", "src/squares_kernel.cu"]),
    ],
    cmdclass={"build_ext": BuildExtension},
)
