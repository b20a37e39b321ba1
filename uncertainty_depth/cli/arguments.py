# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Declare the arguments of each command: option classes, own arguments and an example."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from uncertainty_depth import __version__
from uncertainty_depth.completion.config import HeldOutConfig
from uncertainty_depth.config import (
    TRAINED_METHODS,
    UNTRAINED_METHODS,
    CalibrationConfig,
    ColorConfig,
    EvaluationConfig,
    NetworkConfig,
    PlayerConfig,
    PredictorConfig,
    RawPredictorConfig,
    RequirementConfig,
    SourceConfig,
    SynthesisConfig,
    TrainingConfig,
)
from uncertainty_depth.corruption.kinds import KINDS
from uncertainty_depth.experiments.registry import EXPERIMENTS
from uncertainty_depth.options import add_arguments
from uncertainty_depth.predictions.config import PredictionConfig, PredictionTopics
from uncertainty_depth.viewing.config import ViewConfig

SOURCE = (
    "a bag (rosbag2 folder, .mcap, .db3, or a ROS 1 .bag), nyu:DIR (nyu:DIR:train, "
    "nyu:DIR:test), kitti:DRIVE_DIR, or synthetic: (synthetic:worlds=4,frames=20,seed=1)"
)


class Argument(NamedTuple):
    """One `add_argument` call."""

    name: str
    options: dict[str, Any]


def argument(name: str, **options: Any) -> Argument:
    """As `ArgumentParser.add_argument` takes it."""
    return Argument(name, options)


def at_least_one(text: str) -> int:
    """Return a whole number of at least 1."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def positive_float(text: str) -> float:
    """Return a finite number above 0."""
    if not 0 < (number := float(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no number above 0")
    return number


class Signature(NamedTuple):
    """What a command takes."""

    configs: tuple[type, ...]
    arguments: tuple[Argument, ...]
    example: str


SIGNATURES: dict[str, Signature] = {
    "train": Signature(
        (NetworkConfig, TrainingConfig, SourceConfig),
        (
            argument(
                "source",
                nargs="*",
                metavar="SOURCE",
                help=f"one or more sources, each {SOURCE}; with --resume the recorded ones",
            ),
            argument(
                "--output", type=Path, required=True, metavar="MODEL", help="model folder to write"
            ),
            argument(
                "--resume",
                action="store_true",
                help="continue the training in the output folder, with the source and the "
                "options it was started with",
            ),
        ),
        "my_bag another_bag --output my_model --backbone microsoft/resnet-50 --depth-range 0.5 80",
    ),
    "wrap": Signature(
        (),
        (
            argument(
                "backbone",
                nargs="?",
                metavar="HUB_ID",
                default=argparse.SUPPRESS,
                help="metric depth model: hub id, or a folder with its config and "
                ".safetensors weights",
            ),
            argument("--backbone", default=argparse.SUPPRESS, help="another way to say HUB_ID"),
            argument(
                "--output", type=Path, required=True, metavar="MODEL", help="model folder to write"
            ),
            argument(
                "--dropout",
                type=float,
                default=argparse.SUPPRESS,
                help="dropout rate in the head; 0: no dropout, depth only (default: 0.2)",
            ),
            argument(
                "--method",
                default="",
                choices=("", *UNTRAINED_METHODS),
                help="uncertainty method; empty is mc_dropout, or deterministic without dropout",
            ),
            argument(
                "--input-size",
                type=int,
                nargs=2,
                default=argparse.SUPPRESS,
                help="width and height of the network input, pixels (default: the model's own)",
            ),
            argument(
                "--depth-range",
                type=float,
                nargs=2,
                default=argparse.SUPPRESS,
                help="minimum and maximum depth, metres (default: the model's own)",
            ),
        ),
        "depth-anything/Depth-Anything-V2-Metric-Indoor-Small-hf --output my_model",
    ),
    "evaluate": Signature(
        (
            PredictorConfig,
            PredictionTopics,
            PredictionConfig,
            EvaluationConfig,
            RequirementConfig,
            HeldOutConfig,
            SourceConfig,
        ),
        (
            argument(
                "source",
                nargs="+",
                metavar="SOURCE",
                help=f"{SOURCE}; or predictions:DIR, with depth, confidence and ground truth; "
                "several are scored in workers of their own and merged",
            ),
            argument(
                "--jobs",
                type=at_least_one,
                metavar="N",
                help="several sources: workers at a time (default: one a core)",
            ),
            argument(
                "--ray",
                default="",
                metavar="ADDRESS",
                help="score the sources on the Ray cluster at this address, or local",
            ),
            argument(
                "--model",
                type=Path,
                help="model folder; demo: the shipped one; none to score recorded predictions",
            ),
            argument(
                "--output",
                type=Path,
                required=True,
                metavar="REPORT",
                help="folder for summary.json, frames.csv, plots and report.html",
            ),
            argument(
                "--overwrite",
                action="store_true",
                help="replace the report that is in the folder",
            ),
            argument(
                "--write-bag",
                type=Path,
                metavar="OUT",
                help="also write a bag with the predictions, for RViz",
            ),
            argument(
                "--junit",
                type=Path,
                metavar="XML",
                help="also write the requirements, or without any the verdict, as a JUnit file",
            ),
            argument(
                "--corrupt",
                action="append",
                default=[],
                metavar="KIND:SEVERITY",
                help=f"corrupt the images, e.g. fog:3; {', '.join(sorted(KINDS))}, each 1 to 5; "
                "may be given several times",
            ),
        ),
        "my_bag --model my_model --output my_report",
    ),
    "compare": Signature(
        (),
        (
            argument(
                "reports",
                type=Path,
                nargs="+",
                metavar="REPORT",
                help="report folders; the others are compared with the first",
            ),
            argument(
                "--output",
                type=Path,
                required=True,
                metavar="DIR",
                help="folder for compare.html and compare.json",
            ),
        ),
        "report_a report_b --output comparison",
    ),
    "merge": Signature(
        (RequirementConfig,),
        (
            argument(
                "reports", type=Path, nargs="+", metavar="REPORT", help="report folders to merge"
            ),
            argument(
                "--output", type=Path, required=True, metavar="REPORT", help="folder to write"
            ),
            argument(
                "--overwrite", action="store_true", help="replace the report that is in the folder"
            ),
            argument(
                "--junit",
                type=Path,
                metavar="XML",
                help="also write the requirements, or without any the verdict, as a JUnit file",
            ),
        ),
        "monday tuesday --output week",
    ),
    "predict": Signature(
        (PredictorConfig, ColorConfig),
        (
            argument("images", type=Path, nargs="+", help="image files"),
            argument(
                "--model", type=Path, required=True, help="model folder; demo: the shipped one"
            ),
            argument(
                "--output", type=Path, required=True, metavar="DIR", help="folder for the maps"
            ),
        ),
        "photo.jpg --model my_model --output maps",
    ),
    "calibrate": Signature(
        (
            RawPredictorConfig,
            PredictionTopics,
            PredictionConfig,
            CalibrationConfig,
            HeldOutConfig,
            SourceConfig,
        ),
        (
            argument(
                "model",
                type=Path,
                metavar="MODEL",
                help="model folder; with --depth-topic or predictions:DIR the first source",
            ),
            argument(
                "source", nargs="*", metavar="SOURCE", help=f"one or more sequences, each {SOURCE}"
            ),
            argument(
                "--output",
                type=Path,
                metavar="DIR",
                help="folder for calibration.json and calibration.png (default: the model "
                "folder); of recorded predictions the file of the map, e.g. map.json",
            ),
            argument(
                "--dry-run",
                action="store_true",
                help="report only, do not change the model folder",
            ),
            argument(
                "--force",
                action="store_true",
                help="write the calibration even if it makes the scores of held-out frames worse",
            ),
        ),
        "my_model my_bag another_bag --output my_calibration",
    ),
    "export": Signature(
        (),
        (
            argument("model", type=Path, metavar="MODEL", help="model folder, or demo"),
            argument("output", type=Path, metavar="OUT", help="folder to write"),
            argument(
                "--method",
                default="",
                choices=("", *TRAINED_METHODS),
                help="uncertainty method; empty uses the method the model was trained for",
            ),
        ),
        "my_model my_graphs",
    ),
    "familiarity": Signature(
        (SourceConfig,),
        (
            argument("model", type=Path, metavar="MODEL", help="model folder"),
            argument(
                "source",
                nargs="?",
                help=f"frames like the training: {SOURCE}; none takes the recorded source",
            ),
        ),
        "my_model my_bag",
    ),
    "convert-kitti": Signature(
        (),
        (
            argument(
                "drive",
                type=Path,
                metavar="DRIVE_DIR",
                help="drive folder, beside its date's calibration files, e.g. 2011_09_26/..._sync",
            ),
            argument("bag", type=Path, metavar="OUT_BAG", help="bag folder to write"),
        ),
        "2011_09_26/2011_09_26_drive_0001_sync kitti_bag",
    ),
    "synthesize": Signature(
        (SynthesisConfig,),
        (argument("bag", type=Path, metavar="OUT_BAG", help="bag folder to write"),),
        "world_bag --worlds 4 --frames 20 --test-objects",
    ),
    "info": Signature(
        (SourceConfig,),
        (
            argument("bag", type=Path, help="bag or model folder"),
            argument(
                "--output",
                type=Path,
                metavar="PNG",
                help="plot of the LiDAR on the image (default: the bag's name with .png, here)",
            ),
        ),
        "my_bag --output my_bag.png",
    ),
    "play": Signature(
        (PlayerConfig,),
        (
            argument("bag", type=Path, help="bag to publish"),
            argument(
                "--json",
                type=Path,
                metavar="FILE",
                help="write the number of messages sent and skipped, by topic",
            ),
        ),
        "my_bag --clock --rate 0.5",
    ),
    "view": Signature(
        (
            ViewConfig,
            PredictorConfig,
            PredictionTopics,
            PredictionConfig,
            EvaluationConfig,
            SourceConfig,
        ),
        (
            argument(
                "source",
                nargs="?",
                default="",
                help=f"a report, predictions:DIR, or with --model {SOURCE}",
            ),
            argument("--model", type=Path, help="model folder; demo: the shipped one"),
            argument(
                "--live", action="store_true", help="show what the nodes publish, until Ctrl-C"
            ),
            argument(
                "--save",
                type=Path,
                metavar="RRD",
                help="write a file for rerun instead of opening its viewer",
            ),
        ),
        "my_bag --model demo --save my_bag.rrd",
    ),
    "bench": Signature(
        (),
        (
            argument(
                "--metrics",
                action="store_true",
                help="measure the metrics against those of other libraries",
            ),
            argument(
                "--busy",
                action="store_true",
                help="with --metrics: time a frame of 20,000 pixels, alone and while every core "
                "is busy",
            ),
            argument(
                "--engines",
                action="store_true",
                help="measure the installed engines: eight samples against one pass of torch",
            ),
            argument(
                "--startup",
                action="store_true",
                help="measure what each command takes until it looks at its input",
            ),
            argument(
                "--training",
                action="store_true",
                help="measure training: networks of an ensemble in parallel and in sequence",
            ),
            argument(
                "--budget",
                action="store_true",
                help="measure frame_budget_ms beside a busy process: frames over it, and quality",
            ),
            argument(
                "--delivery",
                action="store_true",
                help="images delivered between two ROS processes, by transport, instead",
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


def build_parser(
    commands: Mapping[str, Callable[[argparse.Namespace], None]],
) -> argparse.ArgumentParser:
    """Return the parser; the help of each command is the docstring of its function."""
    parser = argparse.ArgumentParser(
        "uncertainty-depth",
        description="Monocular depth with its standard deviation, and scores of both.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, command in commands.items():
        text = (command.__doc__ or "").strip()
        subparser = subparsers.add_parser(
            name,
            help=text,
            description=text,
            epilog=f"example: uncertainty-depth {name} {SIGNATURES[name].example}",
        )
        for config in SIGNATURES[name].configs:
            add_arguments(subparser, config)
        for each in SIGNATURES[name].arguments:
            subparser.add_argument(each.name, **each.options)
        subparser.set_defaults(command=command)
    return parser
