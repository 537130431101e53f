"""Stands for a training script: it imports what the base has and what was added to it."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version

import einops
import torch

added = f"einops {einops.__version__}, torchmetrics {version('torchmetrics')}"
sys.stdout.write(f"user {os.getuid()}, torch {torch.__version__} of {torch.__file__}, {added}\n")
