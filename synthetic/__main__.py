# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The demo: `python -m synthetic --output DIR` renders a bag, plays it, and prints the scores."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from uncertainty_depth.cli.main import exit_code_of
from uncertainty_depth.core.process import wait_passively


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; user errors become one sentence and exit code 1."""
    wait_passively()
    parser = argparse.ArgumentParser("python -m synthetic", description="Run the demo.")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("demo_output"),
        metavar="DIR",
        help="folder for bag, reports and plots",
    )
    output = parser.parse_args(argv).output

    def print_scores() -> None:
        from synthetic.demo import run  # and torch, which reads how to wait when it is imported

        for line in run(output):
            print(line, flush=True)

    return exit_code_of("demo", print_scores)


if __name__ == "__main__":
    sys.exit(main())
