# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a command takes: option classes, own arguments and an example."""

from __future__ import annotations

import argparse
import math
from typing import Any, NamedTuple

SOURCE = (
    "a bag (rosbag2 folder, .mcap, .db3, or a ROS 1 .bag), nyu:DIR (nyu:DIR:train, "
    "nyu:DIR:test), kitti:DRIVE_DIR, rgbd:DIR, or synthetic: (synthetic:worlds=4,frames=20,seed=1)"
)
MODEL = (
    "model folder, indoor or demo (shipped), or a depth model of Hugging Face: ORG/NAME or a "
    "folder of save_pretrained"
)


class Argument(NamedTuple):
    """One `add_argument` call."""

    names: tuple[str, ...]
    options: dict[str, Any]


def argument(*names: str, **options: Any) -> Argument:
    """Return an argument from the parameters of `ArgumentParser.add_argument`."""
    return Argument(names, options)


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
    """What a command takes."""

    configs: tuple[type, ...]
    arguments: tuple[Argument, ...]
    example: str
