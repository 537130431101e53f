"""Stands for a training script: it uses what was installed as far as that goes without a GPU."""

from __future__ import annotations

import os
import sys

import spconv
import torch
import torchvision

boxes = torch.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9]])
kept = torchvision.ops.nms(boxes, torch.tensor([0.5, 0.6]), 0.5)
sys.stdout.write(
    f"user {os.getuid()}, {sys.prefix}, torch {torch.__version__}, spconv {spconv.__version__},"
    f" kept {kept.tolist()}\n"
)
