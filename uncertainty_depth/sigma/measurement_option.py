# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The option `measurements`: what it names, and what it may not stand beside."""

from __future__ import annotations

import re
from typing import NamedTuple

from uncertainty_depth.core.errors import ConfigError

LIDAR = "lidar"
MOTION = "motion"
POINTS = "points"
DEPTH = "depth"


class MeasurementSources(NamedTuple):
    """The parsed option `measurements`.

    Attributes:
        lidar: whether a LiDAR measures.
        random: pixels of the ground truth that measure, drawn at random; 0 for none.
        motion: whether the camera's own motion measures.
        topics: kinds of topics that measure, of `POINTS` and `DEPTH`.
    """

    lidar: bool = False
    random: int = 0
    motion: bool = False
    topics: tuple[str, ...] = ()

    @property
    def use_ground_truth(self) -> bool:
        """Whether depth measures that would be scored on too, so that a part is held out."""
        return self.lidar or self.random > 0


def parse_measurements(text: str) -> MeasurementSources:
    """Return what corrects predicted depth.

    Raises:
        ConfigError: a name is not known, or stands there twice, or two are of known depth.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    topics = tuple(name for name in names if name in (POINTS, DEPTH))
    known = [name for name in names if name not in (MOTION, *topics)]
    if len(known) > 1 or len(set(names)) < len(names):
        raise ConfigError(
            f"measurements is {text!r}; expected each source once, and lidar or random:N, not both"
        )
    random = 0
    if known and known[0] != LIDAR:
        drawn = re.fullmatch(r"random:(\d{1,9})", known[0])
        random = int(drawn[1]) if drawn else 0
        if not random:
            raise ConfigError(
                f"measurements is {text!r}; expected lidar, random:N for N pixels of the ground "
                "truth, motion, points, depth, or several of them with commas between"
            )
    return MeasurementSources(LIDAR in known, random, MOTION in names, topics)


def sigma_name(name: str, measurements: str) -> str:
    """Return the identifier of a sigma after measurements: an estimate of one is not the other's.

    Args:
        name: of the sigma before.
        measurements: the option.
    """
    return f"{name}, measurements {measurements}" if measurements else name


def check_one_scale(measurements: str, *, use_depth_scale: bool) -> None:
    """Refuse a followed scale beside measurements, which have corrected the scale already.

    Raises:
        ConfigError: both are asked for.
    """
    if use_depth_scale and measurements:
        raise ConfigError(
            f"use_depth_scale is true and measurements is {measurements!r}, which correct the "
            "scale too; expected one of them"
        )
