"""Stands for a training script: it imports what was installed, without a GPU."""

from __future__ import annotations

import os
import sys
from importlib.metadata import distributions

count = len(list(distributions()))
sys.stdout.write(f"user {os.getuid()}, {sys.prefix}, {count} distributions\n")
