"""Families of library and symbol names: who is meant to bring them."""

from __future__ import annotations

import re

_DRIVER = re.compile(
    r"lib(?:cuda|nvidia-[\w-]+|nvcuvid|nvoptix|cudadebugger|EGL_nvidia|GLX_nvidia)\.so"
)
_DRIVER_SYMBOL = re.compile(rb"(?:cu[A-Z]|nvml[A-Z]|cuvid|NvEncod|__nvjitlink_driver)")
_FROM_WHEEL = re.compile(
    r"lib(?:torch\w*|c10\w*|shm|cudart|cublas|cublasLt|cudnn\w*|cufft|cufftw|curand|cusolver"
    r"|cusolverMg|cusparse|cusparseLt|nccl|nvshmem_host|nvJitLink|nvrtc|nvrtc-builtins"
    r"|nvToolsExt|nvtx3interop|cupti|cufile|nvblas)\.so|.*-[0-9a-f]{8}(?:\.\d+)*\.so"
)
_ALWAYS = re.compile(
    r"(?:lib(?:c|m|dl|rt|pthread|util|gcc_s|stdc\+\+)\.so|ld-linux-[\w-]+\.so|libpython3)"
)
_TORCH = re.compile(r"lib(?:(?:torch|c10)(?:_\w+)?|shm)\.so")
_TORCH_SYMBOL = re.compile(
    rb"_Z.*?(?<![0-9])(?:3c10|2at|5torch|4c10d|6caffe2)(?=[0-9]|[a-z]{2}E)"
    rb"|THP[A-Z]|aoti_torch_|torch_[a-z]"
)
_OWNERS = tuple(
    (re.compile(pattern), library)
    for pattern, library in (
        (rb"p?nccl[A-Z]", "libnccl.so"),
        (rb"cudnn[A-Z]", "libcudnn"),
        (rb"cublasLt", "libcublasLt.so"),
        (rb"cublas", "libcublas.so"),
        (rb"cusparseLt", "libcusparseLt"),
        (rb"cusparse", "libcusparse.so"),
        (rb"cusolver", "libcusolver"),
        (rb"cufft", "libcufft"),
        (rb"curand", "libcurand"),
        (rb"cuFile", "libcufile"),
        (rb"nvrtc", "libnvrtc"),
        (rb"(?:cuda[A-Z]|__cuda[A-Z])", "libcudart"),
        (rb"nvshmem", "libnvshmem_host.so"),
        (rb"_*nvJitLink", "libnvJitLink.so"),
        (rb"_ZNK?3c104cuda", "libc10_cuda"),
        (rb"_ZNK?3c10[^d]", "libc10.so"),
        (rb"(?:_ZN?K?S?t?(?:T[VISC])?N?K?(?:3c10|2at|5torch|4c10d|6caffe2))", "libtorch_cpu"),
        (rb"(?:aoti_torch_|torch_[a-z])", "libtorch_cpu"),
        (rb"THP", "libtorch_python"),
    )
)


def is_driver_library(name: str) -> bool:
    """Return whether the NVIDIA driver brings a library: an image may well lack it."""
    return _DRIVER.match(name) is not None


def is_driver_symbol(name: bytes) -> bool:
    """Return whether the NVIDIA driver defines a symbol."""
    return _DRIVER_SYMBOL.match(name) is not None


def is_from_wheel(library: str) -> bool:
    """Return whether a wheel is meant to bring a library, and not the system."""
    return _FROM_WHEEL.match(library) is not None


def is_indispensable(library: str) -> bool:
    """Return whether its absence is a failure and not a variant that is not used."""
    return is_from_wheel(library) or _ALWAYS.match(library) is not None


def is_torch_library(name: str) -> bool:
    """Return whether a library is one of torch's own."""
    return _TORCH.match(name) is not None


def is_torch_symbol(name: bytes) -> bool:
    """Return whether a symbol speaks of torch (``c10``, ``at``, ``torch`` ...)."""
    return _TORCH_SYMBOL.match(name) is not None


def owner_of(symbol: bytes) -> str | None:
    """Return how the name of the library begins that owns a symbol, None where no name tells."""
    return next((library for pattern, library in _OWNERS if pattern.match(symbol)), None)


def is_python_symbol(name: bytes) -> bool:
    """Return whether the interpreter defines a symbol."""
    return name.startswith((b"Py", b"_Py"))
