"""Reproducible training environments for PyTorch and CUDA."""

__version__ = "0.1.0"
