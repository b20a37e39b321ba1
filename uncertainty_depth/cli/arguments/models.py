# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Arguments of the commands that train, calibrate and run models."""

from __future__ import annotations

import argparse
from pathlib import Path

from uncertainty_depth.cli.arguments.signature import (
    MODEL,
    SOURCE,
    Signature,
    argument,
    positive_float,
)
from uncertainty_depth.config import (
    TRAINED_METHODS,
    UNTRAINED_METHODS,
    CalibrationConfig,
    ColorConfig,
    NetworkConfig,
    PredictorConfig,
    RawPredictorConfig,
    SourceConfig,
    TrainingConfig,
)
from uncertainty_depth.config.prediction import HeldOutConfig, PredictionConfig, PredictionTopics

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
                "-o",
                "--output",
                type=Path,
                required=True,
                metavar="MODEL",
                help="model folder to write",
            ),
            argument(
                "--resume",
                action="store_true",
                help="continue the training in the output folder, with the source and the "
                "options it was started with",
            ),
            argument(
                "--ray",
                default="",
                metavar="ADDRESS",
                help="train the networks of an ensemble on the Ray cluster at this address, or "
                "local; all nodes share the output folder",
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
                "-o",
                "--output",
                type=Path,
                required=True,
                metavar="MODEL",
                help="model folder to write",
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
    "predict": Signature(
        (PredictorConfig, ColorConfig),
        (
            argument("images", type=Path, nargs="+", help="image files"),
            argument(
                "--model",
                type=Path,
                required=True,
                help=MODEL,
            ),
            argument(
                "-o",
                "--output",
                type=Path,
                required=True,
                metavar="DIR",
                help="folder for the maps",
            ),
            argument(
                "--focal-length",
                type=positive_float,
                metavar="PIXELS",
                help="focal length of the images, pixels: a model for any camera gives metres of "
                "its own training camera without it",
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
                "-o",
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
            argument(
                "model",
                type=Path,
                metavar="MODEL",
                help="model folder, or indoor or demo, which are shipped",
            ),
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
                nargs="*",
                help=f"frames like the training: {SOURCE}; none takes the recorded source",
            ),
        ),
        "my_model my_bag",
    ),
}
