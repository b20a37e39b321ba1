# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What each command of `uncertainty-depth` takes: its option classes, its own arguments, and an example that teaches."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from uncertainty_depth import __version__
from uncertainty_depth.config import (
    CalibrationConfig,
    ColorConfig,
    EvaluationConfig,
    NetworkConfig,
    PlayerConfig,
    PredictorConfig,
    RawPredictorConfig,
    SourceConfig,
    SynthesisConfig,
    TrainingConfig,
)
from uncertainty_depth.experiments.registry import EXPERIMENTS
from uncertainty_depth.options import add_arguments

SOURCE = """a bag (rosbag2 folder, .mcap, .db3, or a ROS 1 .bag), nyu:DIR (nyu:DIR:train, nyu:DIR:test),
kitti:DRIVE_DIR, or synthetic: (synthetic:worlds=4,frames=20,seed=1)"""


class Argument(NamedTuple):
    """One `add_argument` call."""

    name: str
    options: dict[str, Any]


def argument(name: str, **options: Any) -> Argument:
    """As `ArgumentParser.add_argument` takes it."""
    return Argument(name, options)


def at_least_one(text: str) -> int:
    """A whole number of 1 or more."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
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
                "source", nargs="?", help=f"{SOURCE}; --resume takes that of the start by default"
            ),
            argument(
                "--output", type=Path, required=True, metavar="MODEL", help="model folder to write"
            ),
            argument(
                "--resume",
                action="store_true",
                help="go on with an interrupted training in the same folder, with the options of its start",
            ),
        ),
        "my_bag --output my_model --backbone microsoft/resnet-50 --depth-range 0.5 80",
    ),
    "wrap": Signature(
        (),
        (
            argument(
                "--backbone",
                required=True,
                help="a metric depth model: its hub id, or a folder with its config and .safetensors weights",
            ),
            argument(
                "--output", type=Path, required=True, metavar="MODEL", help="model folder to write"
            ),
            argument(
                "--dropout",
                type=float,
                default=argparse.SUPPRESS,
                help="rate of the dropout put into the head; 0 gives depth alone (default: 0.2)",
            ),
            argument(
                "--input-size",
                type=int,
                nargs=2,
                default=argparse.SUPPRESS,
                help="width and height the network sees, pixels (default: the model's own)",
            ),
            argument(
                "--depth-range",
                type=float,
                nargs=2,
                default=argparse.SUPPRESS,
                help="least and greatest depth, metres (default: the model's own)",
            ),
        ),
        "--backbone depth-anything/Depth-Anything-V2-Metric-Indoor-Small-hf --output my_model",
    ),
    "evaluate": Signature(
        (PredictorConfig, EvaluationConfig, SourceConfig),
        (
            argument("source", help=SOURCE),
            argument(
                "--model", type=Path, required=True, help="model folder; demo: the shipped one"
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
                help="also write a bag with the predictions, to look at in RViz",
            ),
        ),
        "my_bag --model my_model --output my_report",
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
        (RawPredictorConfig, CalibrationConfig, SourceConfig),
        (
            argument("model", type=Path, metavar="MODEL", help="model folder"),
            argument(
                "source", nargs="+", metavar="SOURCE", help=f"one or more sequences, each {SOURCE}"
            ),
            argument(
                "--output",
                type=Path,
                metavar="DIR",
                help="folder for calibration.json and calibration.png (default: the model folder)",
            ),
            argument(
                "--dry-run",
                action="store_true",
                help="only report: leave the model folder as it is",
            ),
            argument(
                "--force",
                action="store_true",
                help="write the map even if it is worse than raw sigma on frames not used",
            ),
        ),
        "my_model my_bag another_bag --output my_calibration",
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
            argument("bag", type=Path, help="bag, or model folder, to look into"),
            argument(
                "--output",
                type=Path,
                metavar="PNG",
                help="the plot of depth on the image (default: the bag's name with .png, here)",
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
                help="write how many messages of each topic were sent, and what was left out",
            ),
        ),
        "my_bag --clock --rate 0.5",
    ),
    "bench": Signature(
        (),
        (
            argument(
                "--metrics",
                action="store_true",
                help="the metrics against their peers instead of the network",
            ),
            argument(
                "--training",
                action="store_true",
                help="training networks of an ensemble at once against one after the other instead",
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
                help="sources with LiDAR for the reading, projection and scoring rate, e.g. kitti:DRIVE_DIR",
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
                help="; ".join(f"{name}: {one.description}" for name, one in EXPERIMENTS.items()),
            ),
            argument(
                "--output",
                type=Path,
                required=True,
                metavar="DIR",
                help="folder for table, JSON and figure",
            ),
            argument(
                "--seeds", type=at_least_one, help="repetitions (default: the experiment's own)"
            ),
            argument(
                "--quick",
                action="store_true",
                help="a small version, under two minutes on two cores",
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
                help="folder for bag, report and pictures",
            ),
        ),
        "--output demo_output",
    ),
}


def build_parser(
    commands: Mapping[str, Callable[[argparse.Namespace], None]],
) -> argparse.ArgumentParser:
    """The whole command line: each command's help is the docstring of its function."""
    parser = argparse.ArgumentParser(
        "uncertainty-depth",
        description="Monocular depth with an error bar, and the scores of the error bar.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, command in commands.items():
        text = (command.__doc__ or "").strip()
        made = subparsers.add_parser(
            name,
            help=text,
            description=text,
            epilog=f"example: uncertainty-depth {name} {SIGNATURES[name].example}",
        )
        for config in SIGNATURES[name].configs:
            add_arguments(made, config)
        for each in SIGNATURES[name].arguments:
            made.add_argument(each.name, **each.options)
        made.set_defaults(command=command)
    return parser
