# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Measurements: pixels whose depth something other than the network measured, and how well.

A LiDAR, another depth camera, the points of a SLAM and the camera's own motion
(`uncertainty_depth.sigma.motion`) all become this one record, which
`uncertainty_depth.sigma.posterior.posterior` joins with the network's prediction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.core.errors import MessageError

MAX_MEASUREMENTS = 300
"""A solve's time grows with the cube; more of them are spread too densely to add anything."""
SENSOR_LOG_SIGMA = 0.03
"""Error of a depth sensor's pixel: noise, and that it did not measure the pixel's centre."""
UNIT_FACTOR = 10.0
"""Depth whose median is outside the range of what predicts by more than this is in other units."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """Pixels with a measured depth. Errors are those of the depth's natural logarithm.

    Attributes:
        rows, columns: (N,) intp, pixels of the prediction, each at most once.
        depth_m: (N,) float64, metres along the optical axis, positive.
        log_sigma: (N,) float64, standard deviation of each measurement's own error, positive.
        common_log_sigma: (N,) float64, standard deviation of the error that all measurements of
            this frame share, as those have that one wrong pose triangulated: all errors are this
            vector times one unknown number. 0 if they share none.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    depth_m: Floats
    log_sigma: Floats
    common_log_sigma: Floats

    def __post_init__(self) -> None:
        """Raise `ValueError` for arrays that cannot be measurements."""
        count = len(self.rows)
        for name, values in vars(self).items():
            if len(values) != count:
                raise ValueError(f"{name} has {len(values)} values; expected {count}")
        for name, values in (("depth_m", self.depth_m), ("log_sigma", self.log_sigma)):
            if not (np.isfinite(values).all() and (values > 0).all()):
                raise ValueError(f"{name} has values that are not positive and finite")
        common = self.common_log_sigma
        if not (np.isfinite(common).all() and (common >= 0).all()):
            raise ValueError("common_log_sigma has values that are negative or not finite")
        if len(np.unique(self._pixels())) != count:
            raise ValueError("a pixel is measured twice; expected each at most once")

    def __len__(self) -> int:
        return len(self.rows)

    def _pixels(self) -> NDArray[np.int64]:
        """Return a number for each pixel, equal for equal ones."""
        return self.rows.astype(np.int64) << 32 | self.columns.astype(np.int64)

    @classmethod
    def from_map(
        cls, depth_m: NDArray[np.floating], log_sigma: float | Floats = SENSOR_LOG_SIGMA
    ) -> Measurements:
        """Return a map's pixels that have a depth: those positive and finite.

        `log_sigma` is every pixel's, or an (H, W) map.
        """
        rows, columns = np.nonzero(np.isfinite(depth_m) & (depth_m > 0))
        measured = depth_m[rows, columns].astype(np.float64)
        own = np.broadcast_to(np.asarray(log_sigma, np.float64), depth_m.shape)[rows, columns]
        return cls(rows, columns, measured, own, np.zeros(len(rows)))

    @classmethod
    def none(cls) -> Measurements:
        """Return no measurement."""
        empty = np.zeros(0, np.intp)
        return cls(empty, empty, *(np.zeros(0) for _ in range(3)))

    def taken(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> Measurements:
        """Return those that a mask or indices choose."""
        return Measurements(*(values[which] for values in vars(self).values()))

    def evenly(self, count: int, shape: tuple[int, ...]) -> NDArray[np.intp]:
        """Return at most `count` indices, evenly over an (H, W) image, the most certain ones.

        `count` is below 65,536.
        """
        if len(self) <= count:
            return np.arange(len(self))
        height, width = shape
        cells_down = max(1, round(np.sqrt(count * height / width)))
        cells_across = max(1, count // cells_down)
        # Numbers of 16 bits are sorted in linear time: a depth camera measures every pixel.
        cell = self.rows * cells_down // height * cells_across
        cell = (cell + self.columns * cells_across // width).astype(np.uint16)
        # A hash in place of the order within a cell, so that ties are not a raster's first row.
        mixed = (self.rows * 73856093 ^ self.columns * 19349663).astype(np.uint16)
        order = np.lexsort((mixed, self.log_sigma, cell))
        starts = np.r_[0, np.flatnonzero(np.diff(cell[order])) + 1]
        lengths = np.diff(np.r_[starts, len(order)])
        rank = np.empty(len(order), np.uint16)
        in_cell = np.arange(len(order)) - np.repeat(starts, lengths)
        rank[order] = np.minimum(in_cell, np.iinfo(np.uint16).max)
        return np.sort(np.lexsort((mixed, rank))[:count])

    def coverage(self, shape: tuple[int, ...]) -> float:
        """Return the share of an image's 6x8 cells that have a measurement."""
        height, width = shape
        cells = self.rows * 6 // height * 8 + self.columns * 8 // width
        return len(np.unique(cells)) / 48

    def joined(self, other: Measurements) -> Measurements:
        """Return both; a pixel that both measure is this one's."""
        if not len(other):
            return self
        new = other.taken(~np.isin(other._pixels(), self._pixels()))
        both = zip(vars(self).values(), vars(new).values(), strict=True)
        return Measurements(*map(np.concatenate, both))

    def beside(self, better: Measurements | None) -> Measurements:
        """Return both; a pixel that both measure is the other's, which may be None for none."""
        return self if better is None else better.joined(self)

    def map(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Return the measured depth, (H, W) metres, NaN where nothing is measured."""
        depth_m = np.full(shape, np.nan, np.float32)
        depth_m[self.rows, self.columns] = self.depth_m
        return depth_m

    def mask(self, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Return which pixels of an image are measured, (H, W)."""
        mask = np.zeros(shape, np.bool_)
        mask[self.rows, self.columns] = True
        return mask


def check_unit(
    depth_m: NDArray[np.floating], depth_range: tuple[float, ...], name: str = "measured depth"
) -> None:
    """Refuse measured depth, (N,) without NaN, in another unit than the depth that is predicted.

    Args:
        depth_m: metres.
        depth_range: min and max predicted depth, metres.
        name: what the sentence calls it.

    Raises:
        MessageError: sparse_depth_wrong_unit.
    """
    if not depth_m.size:
        return
    median = float(np.median(depth_m))
    low, high = depth_range
    if not low / UNIT_FACTOR <= median <= high * UNIT_FACTOR:
        raise MessageError(
            "sparse_depth_wrong_unit",
            f"{name} has a median of {median:g}, and what predicts has a depth range of {low:g} "
            f"to {high:g} m; expected metres",
        )


def check_sparse_depth(
    sparse_m: NDArray[np.floating], shape: tuple[int, int], depth_range: tuple[float, ...]
) -> None:
    """Refuse sparse depth of another size, type or unit than the prediction.

    Args:
        sparse_m: metres, NaN or 0 for unknown.
        shape: (H, W) of the image.
        depth_range: min and max predicted depth, metres.

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
