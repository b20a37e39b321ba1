# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Arguments of the commands that write, describe and play bags."""

from __future__ import annotations

from pathlib import Path

from uncertainty_depth.cli.arguments.signature import SOURCE, Signature, argument
from uncertainty_depth.config import PlayerConfig, SourceConfig, SynthesisConfig

SIGNATURES: dict[str, Signature] = {
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
            argument("source", help=f"{SOURCE}; or a model folder"),
            argument(
                "-o",
                "--output",
                type=Path,
                metavar="PNG",
                help="plot of the depth on the image (default: the source's name with .png, here)",
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
}
