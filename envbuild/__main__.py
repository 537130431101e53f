"""Run the command line as ``python -m envbuild``."""

from __future__ import annotations

import sys

from envbuild.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
