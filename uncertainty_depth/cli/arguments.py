# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The parser of all commands: of each its own arguments, its option classes and an example."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from uncertainty_depth.core.config import (
    UNTRAINED_METHODS,
    CalibrationConfig,
    CalibrationFramesConfig,
    ColorConfig,
    DepthScaleConfig,
    EvaluationConfig,
    HeldOutConfig,
    NetworkConfig,
    PlayerConfig,
    PredictionConfig,
    PredictionTopics,
    PredictorConfig,
    RawPredictorConfig,
    RequirementConfig,
    SourceConfig,
    TrainingConfig,
)
from uncertainty_depth.core.errors import shortened
from uncertainty_depth.core.options import add_arguments, flag_of
from uncertainty_depth.core.version import __version__

SOURCE = (
    "a bag (rosbag2 folder, .mcap, .db3, ROS 1 .bag), nyu:DIR[:train|:test|:fit|:calibrate], "
    "kitti:DRIVE_DIR, rgbd:DIR, or in a clone synthetic:[worlds=4,frames=20,seed=1]"
)
MODEL = "model folder, a shipped model (indoor, demo) or a Hugging Face model (ORG/NAME)"
WIDTH_OF_FLAGS = 28


Argument = tuple[tuple[str, ...], dict[str, Any]]
"""The parameters of an `add_argument` call: names and options."""


def argument(*names: str, **options: Any) -> Argument:
    """Return an argument from the parameters of `ArgumentParser.add_argument`."""
    return names, options


def output(metavar: str, what: str, **options: Any) -> Argument:
    """Return the argument for what a command writes; required unless it has a default."""
    options = {"required": True, **options}
    return argument("-o", "--output", type=Path, metavar=metavar, help=what, **options)


def at_least_one(text: str) -> int:
    """Return a whole number of at least 1."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def positive_float(text: str) -> float:
    """Return a finite number above 0."""
    if not 0 < (number := float(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


class Signature(NamedTuple):
    """What a command takes, the common arguments first."""

    arguments: tuple[Argument, ...]
    configs: tuple[type, ...]
    example: str


OVERWRITE = argument(
    "--overwrite", action="store_true", help="replace the report that is in the folder"
)
JUNIT = argument(
    "--junit",
    type=Path,
    metavar="XML",
    help="also write the requirements, else the verdict, as a JUnit file",
)

SIGNATURES: dict[str, Signature] = {
    "train": Signature(
        (
            argument(
                "source",
                nargs="*",
                metavar="SOURCE",
                help=f"one or more sources, each {SOURCE}; with --resume the recorded ones",
            ),
            output("MODEL", "model folder to write; with --depth-topic a file, sigma.json"),
            argument(
                "--depth-topic",
                default="",
                metavar="TOPIC",
                help="learn no model, but the sigma of the depth that others have recorded here",
            ),
            argument(
                "--resume",
                action="store_true",
                help="continue the training in the output folder, with its sources and options",
            ),
        ),
        (TrainingConfig, NetworkConfig, SourceConfig),
        "my_bag another_bag --output my_model --backbone microsoft/resnet-50 --depth-range 0.5 80",
    ),
    "wrap": Signature(
        (
            argument(
                "backbone",
                metavar="HUB_ID",
                help="metric depth model: hub id, or a folder with its config and .safetensors",
            ),
            output("MODEL", "model folder to write"),
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
        (),
        "depth-anything/Depth-Anything-V2-Metric-Indoor-Small-hf --output my_model",
    ),
    "evaluate": Signature(
        (
            argument(
                "source",
                nargs="+",
                metavar="SOURCE",
                help=f"{SOURCE}; or predictions:DIR, with depth, confidence and ground truth; "
                "several are scored in workers of their own and merged",
            ),
            output("REPORT", "folder for summary.json, frames.csv, plots and report.html"),
            argument("--model", type=Path, help=f"{MODEL}; none for recorded predictions"),
            argument(
                "--max-frames",
                type=at_least_one,
                default=0,
                metavar="N",
                help="score at most N frames of each source, evenly spread (default: all)",
            ),
            OVERWRITE,
            JUNIT,
            argument(
                "--write-bag",
                type=Path,
                metavar="OUT",
                help="also write a bag with the predictions, for RViz",
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
        ),
        (
            RequirementConfig,
            EvaluationConfig,
            PredictorConfig,
            PredictionTopics,
            PredictionConfig,
            HeldOutConfig,
            DepthScaleConfig,
            SourceConfig,
        ),
        "my_bag --model my_model --output my_report",
    ),
    "compare": Signature(
        (
            argument(
                "reports",
                type=Path,
                nargs="+",
                metavar="REPORT",
                help="report folders; the others are compared with the first",
            ),
            output("DIR", "folder for compare.html and compare.json"),
        ),
        (),
        "report_a report_b --output comparison",
    ),
    "merge": Signature(
        (
            argument(
                "reports", type=Path, nargs="+", metavar="REPORT", help="report folders to merge"
            ),
            output("REPORT", "folder to write"),
            OVERWRITE,
            JUNIT,
        ),
        (RequirementConfig,),
        "monday tuesday --output week",
    ),
    "predict": Signature(
        (
            argument("images", type=Path, nargs="+", help="image files"),
            argument("--model", type=Path, required=True, help=MODEL),
            output("DIR", "folder for the maps"),
            argument(
                "--focal-length",
                type=positive_float,
                metavar="PIXELS",
                help="focal length of the images, pixels: a model for any camera gives metres of "
                "its own training camera without it",
            ),
        ),
        (PredictorConfig, ColorConfig),
        "photo.jpg --model my_model --output maps",
    ),
    "calibrate": Signature(
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
            output(
                "FILE",
                "file of the map of recorded predictions, e.g. map.json; a model's map goes into "
                "its folder",
                required=False,
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
        (
            CalibrationConfig,
            CalibrationFramesConfig,
            RawPredictorConfig,
            PredictionTopics,
            PredictionConfig,
            HeldOutConfig,
            SourceConfig,
        ),
        "my_model my_bag another_bag",
    ),
    "convert": Signature(
        (
            argument(
                "source",
                metavar="SOURCE",
                help="kitti:DRIVE_DIR, beside its date's calibration files; or in a clone "
                "synthetic:[worlds=4,frames=20,seed=1]",
            ),
            argument("bag", type=Path, metavar="OUT_BAG", help="bag folder to write"),
        ),
        (),
        "kitti:2011_09_26/2011_09_26_drive_0001_sync drive_bag",
    ),
    "info": Signature(
        (
            argument("source", help=f"{SOURCE}; or a model folder"),
            output(
                "PNG",
                "plot of the depth on the image (default: the source's name with .png, here)",
                required=False,
            ),
        ),
        (SourceConfig,),
        "my_bag",
    ),
    "play": Signature(
        (
            argument("bag", type=Path, help="bag to publish"),
            argument(
                "--json",
                type=Path,
                metavar="FILE",
                help="write the number of messages sent and skipped, by topic",
            ),
        ),
        (PlayerConfig,),
        "my_bag --clock --rate 0.5",
    ),
    "view": Signature(
        (
            argument("source", metavar="SOURCE", help=f"{SOURCE}; or predictions:DIR"),
            argument("--model", type=Path, help=f"{MODEL}; none for recorded predictions"),
            argument(
                "--save",
                type=Path,
                metavar="RRD",
                help="write a file for rerun instead of opening its viewer",
            ),
        ),
        (
            EvaluationConfig,
            ColorConfig,
            PredictorConfig,
            PredictionTopics,
            PredictionConfig,
            SourceConfig,
        ),
        "my_bag --model demo --save my_bag.rrd",
    ),
}


class Parser(argparse.ArgumentParser):
    """A parser whose errors repeat no argument of any length."""

    def error(self, message: str) -> NoReturn:
        """End with the usage and the message."""
        super().error(shortened(message))


def build_parser(
    commands: Mapping[str, Callable[[argparse.Namespace], None]],
) -> Parser:
    """Return the parser; the help of each command is the docstring of its function."""
    parser = Parser(
        "uncertainty-depth",
        description="Monocular depth with its standard deviation (sigma), and scores of both.",
        epilog="Begin with `uncertainty-depth info my_bag`, then `uncertainty-depth evaluate "
        "my_bag --model indoor --output report`. COMMAND --help begins with an example.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    layout = partial(argparse.HelpFormatter, max_help_position=WIDTH_OF_FLAGS)
    for name, command in commands.items():
        signature = SIGNATURES[name]
        text = (command.__doc__ or "").strip()
        subparser = subparsers.add_parser(
            name,
            help=text,
            description=text,
            usage=f"uncertainty-depth {name} {signature.example}",
            formatter_class=layout,
        )
        for names, options in signature.arguments:
            subparser.add_argument(*names, **options)
        for config in signature.configs:
            add_arguments(subparser, config)
        rare = [
            flag_of(option)
            for config in signature.configs
            for option in fields(config)
            if option.metadata["expert"]
        ]
        if rare:
            subparser.epilog = f"rarely set, see docs/reference/options.md: {', '.join(rare)}"
        subparser.set_defaults(command=command)
    return parser
