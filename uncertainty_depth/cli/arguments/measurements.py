# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Arguments of the commands bench, experiment, demo and soak."""

from __future__ import annotations

from pathlib import Path

from uncertainty_depth.bench import BENCHMARKS
from uncertainty_depth.cli.arguments.signature import (
    Signature,
    argument,
    at_least_one,
    positive_float,
)
from uncertainty_depth.experiments.registry import EXPERIMENTS

SIGNATURES: dict[str, Signature] = {
    "bench": Signature(
        (),
        (
            *(
                argument(f"--{name}", action="store_true", help=benchmark.description)
                for name, benchmark in BENCHMARKS.items()
            ),
            argument(
                "--all",
                action="store_true",
                help="all of these, one after the other; half an hour or more",
            ),
            argument(
                "--overlap",
                action="store_true",
                help="with --source: measure evaluate with its parts overlapped and in sequence",
            ),
            argument(
                "--source",
                nargs="*",
                default=[],
                help="sources with LiDAR: measure reading, projection and scoring, "
                "e.g. kitti:DRIVE_DIR",
            ),
        ),
        "--source kitti:2011_09_26/2011_09_26_drive_0001_sync",
    ),
    "experiment": Signature(
        (),
        (
            argument(
                "name",
                choices=EXPERIMENTS,
                help="; ".join(
                    f"{name}: {experiment.description}" for name, experiment in EXPERIMENTS.items()
                ),
            ),
            argument(
                "-o",
                "--output",
                type=Path,
                required=True,
                metavar="DIR",
                help="folder for table, JSON and plot",
            ),
            argument(
                "--seeds", type=at_least_one, help="repetitions (default: the experiment's own)"
            ),
            argument(
                "--quick",
                action="store_true",
                help="small version, under two minutes on two cores",
            ),
            argument(
                "--data",
                type=Path,
                metavar="DIR",
                help="folder of NYU Depth v2, for nyu (default: nyuv2 in $UNCERTAINTY_DEPTH_DATA)",
            ),
        ),
        "toy-cubic --output cubic --quick",
    ),
    "demo": Signature(
        (),
        (
            argument(
                "-o",
                "--output",
                type=Path,
                default=Path("demo_output"),
                metavar="DIR",
                help="folder for bag, reports and plots",
            ),
        ),
        "--output demo_output",
    ),
    "soak": Signature(
        (),
        (
            argument(
                "--minutes",
                type=positive_float,
                default=60.0,
                help="time to run (default: %(default)g)",
            ),
            argument(
                "--model",
                type=Path,
                default=Path("demo"),
                help="model folder (default: the shipped one)",
            ),
            argument(
                "-o",
                "--output",
                type=Path,
                default=Path("soak_output"),
                metavar="DIR",
                help="folder for bag, logs, report and resources.csv",
            ),
        ),
        "--minutes 60",
    ),
}
