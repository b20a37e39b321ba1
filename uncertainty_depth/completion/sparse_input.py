# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The sparse depth that a network takes beside the image: the option, and checks of the arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.errors import ConfigError, MessageError

UNIT_FACTOR = 10.0
"""Sparse depth whose median is outside the depth range by more than this is in other units."""


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
    values = sparse_m[np.isfinite(sparse_m) & (sparse_m > 0)]
    if not values.size:
        return
    median = float(np.median(values))
    low, high = depth_range
    if not low / UNIT_FACTOR <= median <= high * UNIT_FACTOR:
        raise MessageError(
            "sparse_depth_wrong_unit",
            f"sparse depth has a median of {median:g}, and the network's depth range is {low:g} "
            f"to {high:g} m; expected metres",
        )
