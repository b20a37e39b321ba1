# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Repeat an experiment of the papers: `python -m experiments NAME --output DIR`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.registry import EXPERIMENTS
from uncertainty_depth.cli.arguments import at_least_one
from uncertainty_depth.cli.main import exit_code_of


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
    duration = "less than two minutes on two cores" if arguments.quick else experiment.duration
    print(f"{arguments.name} takes {duration}; if stopped, the same command goes on", flush=True)

    def run() -> None:
        experiment.run(arguments.output, arguments.seeds, arguments.quick, arguments.data)
        print(f"results in {arguments.output}")

    return exit_code_of("experiments", run, "the same command goes on")


if __name__ == "__main__":
    sys.exit(main())
