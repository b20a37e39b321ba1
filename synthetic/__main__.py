# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The demo: `python -m synthetic --output DIR` renders a bag, plays it, and prints the scores."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from tqdm.contrib.logging import logging_redirect_tqdm

from uncertainty_depth.blas import wait_passively
from uncertainty_depth.errors import UncertaintyDepthError


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
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    from synthetic.demo import run  # and torch, which reads how to wait when it is imported

    try:
        with logging_redirect_tqdm():
            for line in run(output):
                print(line, flush=True)
    except UncertaintyDepthError as error:
        print(f"demo: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:  # a folder that is a file, a full disk, a path without permission
        print(f"demo: {error.filename}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
