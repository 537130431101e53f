"""Squares on the CPU and on the GPU."""
