# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Sparse depth: which a model takes, what else may measure, and how both are checked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.errors import ConfigError, MessageError
from uncertainty_depth.core.measurements import check_unit


class SparseInput(NamedTuple):
    """A parsed option `sparse_input`.

    Attributes:
        pixels: of known depth that the network takes, for random:N; 0 for lidar.
    """

    pixels: int


def parse(text: str) -> SparseInput | None:
    """Return the parsed option; None if it is empty, for the image alone.

    Raises:
        ConfigError: it is neither empty, nor lidar, nor random:N.
    """
    if not text:
        return None
    if text == "lidar":
        return SparseInput(0)
    name, _, number = text.partition(":")
    if name != "random" or not number.isdecimal() or int(number) < 1:
        raise ConfigError(
            f"sparse_input is {text!r}; expected 'lidar', or 'random:N' for N pixels of known "
            "depth"
        )
    return SparseInput(int(number))


class MeasurementSources(NamedTuple):
    """The parsed option `measurements`.

    Attributes:
        sparse: of known depth; None for none.
        motion: whether the camera's own motion measures.
        topics: kinds of topics that measure, of `POINTS` and `DEPTH`.
    """

    sparse: SparseInput | None = None
    motion: bool = False
    topics: tuple[str, ...] = ()


MOTION = "motion"
POINTS = "points"
DEPTH = "depth"


def parse_measurements(text: str) -> MeasurementSources:
    """Return what corrects the depth of a model for images alone.

    Raises:
        ConfigError: a name is not known, or stands there twice, or two are of known depth.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    topics = tuple(name for name in names if name in (POINTS, DEPTH))
    sparse = [name for name in names if name not in (MOTION, *topics)]
    if len(sparse) > 1 or len(set(names)) < len(names):
        raise ConfigError(
            f"measurements is {text!r}; expected each source once, and lidar or random:N, not both"
        )
    try:
        known = parse(sparse[0]) if sparse else None
    except ConfigError as error:
        raise ConfigError(
            f"measurements is {text!r}; expected lidar, random:N for N pixels of the ground "
            "truth, motion, points, depth, or several of them with commas between"
        ) from error
    return MeasurementSources(known, MOTION in names, topics)


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


def check_sparse_depth(
    sparse_m: NDArray[np.floating], shape: tuple[int, int], depth_range: tuple[float, ...]
) -> None:
    """Refuse sparse depth of another size, type or unit than the network takes.

    Args:
        sparse_m: metres, NaN or 0 for unknown.
        shape: (H, W) of the image.
        depth_range: min and max depth of the network, metres.

    Raises:
        MessageError: sparse_depth_wrong_shape, sparse_depth_wrong_type or
            sparse_depth_wrong_unit.
    """
    if sparse_m.shape != shape:
        raise MessageError(
            "sparse_depth_wrong_shape",
            f"sparse depth has shape {sparse_m.shape}; expected {shape}, the image's",
        )
    if not np.issubdtype(sparse_m.dtype, np.floating):
        raise MessageError(
            "sparse_depth_wrong_type",
            f"sparse depth is {sparse_m.dtype}; expected floats in metres, NaN where unknown "
            "(divide millimetres by 1000)",
        )
    known = np.isfinite(sparse_m) & (sparse_m > 0)
    check_unit(sparse_m[known], depth_range, "sparse depth")
