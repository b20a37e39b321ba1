# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Repeat an experiment of the papers: `python -m experiments NAME --output DIR`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from tqdm.contrib.logging import logging_redirect_tqdm

from experiments.registry import EXPERIMENTS
from uncertainty_depth.cli.arguments import at_least_one
from uncertainty_depth.errors import UncertaintyDepthError


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    lines = [f"  {name:20}{experiment.description}" for name, experiment in EXPERIMENTS.items()]
    result = argparse.ArgumentParser(
        "python -m experiments",
        description="Repeat an experiment of the papers.",
        epilog="\n".join(["experiments:", *lines]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("name", choices=EXPERIMENTS, metavar="NAME", help="see below")
    result.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder for tables, JSON and plots; finished parts in it are used again",
    )
    result.add_argument("--seeds", type=at_least_one, metavar="N", help="number of repetitions")
    result.add_argument(
        "--quick", action="store_true", help="small version, under two minutes on two cores"
    )
    result.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder of the data sets, with nyuv2/, kitti_raw/, camvid/ and rgbd/ "
        "(default: $UNCERTAINTY_DEPTH_DATA)",
    )
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Run an experiment; user errors become one sentence and exit code 1."""
    arguments = parser().parse_args(argv)
    experiment = EXPERIMENTS[arguments.name]
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    duration = "less than two minutes on two cores" if arguments.quick else experiment.duration
    print(f"{arguments.name} takes {duration}; if stopped, the same command goes on", flush=True)
    try:
        with logging_redirect_tqdm():
            experiment.run(arguments.output, arguments.seeds, arguments.quick, arguments.data)
    except UncertaintyDepthError as error:
        print(f"experiments: {error}", file=sys.stderr)
        return 1
    except OSError as error:  # a folder that is a file, a full disk, a path without permission
        print(f"experiments: {error.filename}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("experiments: interrupted; the same command goes on", file=sys.stderr)
        return 130
    print(f"results in {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
