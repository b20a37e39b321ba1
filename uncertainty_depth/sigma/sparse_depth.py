# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Sparse depth as a model's input: which it takes, its check, and its spread along a prediction.

The logarithm of depth is interpolated between the nearest known pixels, near in the image and in
predicted depth, which keeps a wall's pixels from the chair before it. Only a part of the predicted
relief is kept between known pixels (`TREND`): all of it would copy the model's errors of shape.

Sigma is what the neighbours disagree by. Its size comes from the known pixels themselves, each
predicted from others about as far away as the known ones are from an unknown pixel, and from a
posterior that has not seen it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.core.errors import ConfigError, MessageError
from uncertainty_depth.core.measurements import (
    SENSOR_LOG_SIGMA,
    Measurements,
    check_unit,
)
from uncertainty_depth.core.records import DepthPrediction

if TYPE_CHECKING:
    from scipy.spatial import cKDTree


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


NEIGHBOURS = 4
TREND = 0.7
"""Part of the predicted relief of log depth that is kept between known pixels: the posterior has
corrected it, and of a network's own less would be better."""
DEPTH_WEIGHT = 0.3
"""Image widths that a factor e in predicted depth counts as in the distance to a neighbour."""
OWN_SIGMA = 0.25
"""Weight of the model's own sigma, grown with distance, beside the neighbours' disagreement."""
NEIGHBOURS_TRIED = 64
"""Neighbours among which one is looked for that is far enough."""
MIN_PIXELS = 16
"""Known pixels below which the prediction stays as it is: the process alone has less error."""
MAX_INTERPOLATED = 4000
"""Of more known pixels those are taken, evenly over the image: a LiDAR has as many in it."""
MAX_GAP = 1.6
"""Median distance of a pixel to a known one, over that of as many at random, up to which all are
interpolated."""
RING_GAP = 1.2
"""The same of rings, of whose pixels as many are interpolated as have no wider gaps between the
highest and the lowest: neighbours along a ring tell nothing of the gap to the next."""
RINGS_APART = 3.0
"""Typical distances that known pixels on rings are apart from those that they are predicted by, to
find the size of sigma; all three chosen on rows of NYU, the HoloLens, a kitchen and a street."""
MIN_ON_RINGS = 600
"""Pixels on rings below which the process remains: twice what it takes."""
MIN_HEIGHT = 0.5
"""Part of the image's rows between the highest and the lowest ring: beyond them is guessed."""
RINGS_THINNED = 0.9
"""Part that is tried next of the pixels that would do if thinning widened no gap."""
WRONG_SIGMAS = 5.0
"""Known depth that is further from what all else says is wrong, and is not copied. Chosen on 14 of
NYU's training images: of right pixels hardly one is lost, and of those off by a factor of two few
are left."""
COLUMNS = (160, 320)
"""Columns, least and most, at which neighbours are looked up; between them is interpolated. What
is known to 500 pixels or fewer loses nothing by the fewest."""
PLACES_PER_PIXEL = 16
"""Places at which neighbours are looked up, for each known pixel."""
LAPLACE_SIGMA = math.sqrt(2.0)
"""Standard deviation of a Laplace distribution over its mean absolute deviation."""


class Interpolated(NamedTuple):
    """What is interpolated of known depth.

    Attributes:
        known: the pixels.
        apart: typical distances that two are apart of which one predicts the other, to find the
            size of sigma.
    """

    known: Measurements
    apart: float


def interpolated(known: Measurements, shape: tuple[int, int]) -> Interpolated | None:
    """Return the known pixels of an (H, W) image that are to be interpolated; None for none.

    Pixels all over the image are. Of a LiDAR's rings as many are as leave no wide gaps, if these
    are many more than the process takes.
    """
    known = known.taken(known.evenly(MAX_INTERPOLATED, shape))
    if len(known) < MIN_PIXELS:
        return None
    if _gap(known, shape, slice(None)) <= MAX_GAP:
        return Interpolated(known, 1.0)
    between = slice(int(known.rows.min()), int(known.rows.max()) + 1)
    if between.stop - between.start < MIN_HEIGHT * shape[0]:
        return None
    count = len(known)
    while count >= MIN_ON_RINGS:
        some = known.taken(known.evenly(count, shape))
        gap = _gap(some, shape, between)
        if gap <= RING_GAP:
            return Interpolated(some, RINGS_APART)
        count = int(RINGS_THINNED * count * (RING_GAP / gap) ** 2)
    return None


def _gap(known: Measurements, shape: tuple[int, int], rows: slice) -> float:
    """Return the median distance to a known pixel, over that of as many at random in the rows."""
    unknown = (~known.mask(shape)).astype(np.uint8)
    distance = cv2.distanceTransform(unknown, cv2.DIST_L2, cv2.DIST_MASK_5)[rows]
    at_random = math.sqrt(math.log(2) / math.pi * distance.size / len(known))
    return float(np.median(distance)) / at_random


def spread(
    prediction: DepthPrediction,
    sparse_m: NDArray[np.floating],
    left_out_m: NDArray[np.floating] | None = None,
    apart: float = 1.0,
) -> DepthPrediction:
    """Return a prediction that agrees with known depth, and follows it between known pixels.

    Known depth that the rest contradicts (`WRONG_SIGMAS`) is taken as unknown; a sigma of 0, as of
    a network without a variance head, contradicts nothing.

    Args:
        prediction: a model's, (H, W).
        sparse_m: (H, W), metres, NaN or 0 for unknown.
        left_out_m: (H, W), metres, what the prediction would be at a known pixel that it has seen,
            had it not; NaN elsewhere.
        apart: see `Interpolated`.

    Returns:
        Depth and sigma at every pixel that the prediction has with a finite sigma, else its own;
        the prediction itself if fewer than `MIN_PIXELS` of these are known, or none has others as
        far away as the gaps are.
    """
    has_value = np.isfinite(prediction.sigma_m) & (prediction.depth_m > 0)
    has_value &= np.isfinite(prediction.depth_m)
    height, width = prediction.depth_m.shape
    log_depth = np.log(np.where(has_value, prediction.depth_m, 1.0)).astype(np.float64)
    sigma = np.where(has_value, prediction.sigma_m, 0.0) / np.exp(log_depth)
    unseen = log_depth
    if left_out_m is not None:
        unseen = np.where(np.isfinite(left_out_m), np.log(left_out_m), log_depth)
    rows, columns = np.nonzero(np.isfinite(sparse_m) & (sparse_m > 0) & has_value)
    missed = np.abs(np.log(sparse_m[rows, columns]) - unseen[rows, columns])
    claimed = sigma[rows, columns]
    is_right = (claimed == 0) | (missed <= WRONG_SIGMAS * np.hypot(claimed, SENSOR_LOG_SIGMA))
    rows, columns = rows[is_right], columns[is_right]
    if len(rows) < MIN_PIXELS:
        return prediction
    if not has_value.all():  # a place in a hole counts for the pixels beside it
        nearest = _nearest(has_value)
        log_depth, sigma = (values.ravel()[nearest] for values in (log_depth, sigma))

    def places(y: NDArray[np.integer], x: NDArray[np.integer]) -> Floats:
        return np.stack([y / width, x / width, DEPTH_WEIGHT * log_depth[y, x]], axis=-1)

    known = places(rows, columns)
    log_known = np.log(sparse_m[rows, columns].astype(np.float64))
    rest = log_known - TREND * log_depth[rows, columns]
    from scipy.spatial import cKDTree  # loads slowly, and only who spreads needs it

    tree = cKDTree(known)
    grid = _grid(height, width, PLACES_PER_PIXEL * len(rows))
    distance, index = tree.query(places(*grid.reshape(2, -1)), k=NEIGHBOURS)
    near, disagreement = _blend(distance, rest[index], width)
    in_hole = ~has_value[grid[0], grid[1]].ravel()
    to_known = distance[:, 0] if in_hole.all() else distance[~in_hole, 0]
    typical = max(float(np.median(to_known)), 1 / width)  # 0 where most is known
    reach = np.sqrt(distance[:, 0] / typical)
    own = sigma[grid[0], grid[1]].ravel()
    relative = np.hypot(disagreement, OWN_SIGMA * own * reach)

    tested, left_out, index = _neighbours_beyond(tree, known, apart * typical)
    if not len(tested):
        return prediction
    blended, scatter = _blend(left_out, rest[index], width)
    expected = np.hypot(scatter, OWN_SIGMA * sigma[rows[tested], columns[tested]])
    own = log_known - TREND * unseen[rows, columns]
    deviation = float(np.abs(blended - own[tested]).mean())
    size = LAPLACE_SIGMA * deviation / max(float(expected.mean()), 1e-9)

    def at_pixels(values: Floats) -> Floats:
        coarse = values.reshape(grid.shape[1:])
        return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_LINEAR)

    depth = np.exp(TREND * log_depth + at_pixels(near)).astype(np.float32)
    sigma = depth * (size * at_pixels(relative)).astype(np.float32)
    depth_m = np.where(has_value, depth, prediction.depth_m)
    sigma_m = np.where(has_value, sigma, prediction.sigma_m)
    return replace(prediction, depth_m=depth_m, sigma_m=sigma_m)


def _nearest(has_value: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the flat index of the nearest pixel that has a value, (H, W)."""
    _, label = cv2.distanceTransformWithLabels(
        (~has_value).astype(np.uint8),
        cv2.DIST_L2,
        cv2.DIST_MASK_5,
        labelType=cv2.DIST_LABEL_PIXEL,
    )
    pixel_of = np.zeros(label.max() + 1, np.intp)
    pixel_of[label[has_value]] = np.flatnonzero(has_value)
    nearest: NDArray[np.intp] = pixel_of[label]
    return nearest


def _grid(height: int, width: int, places: int) -> NDArray[np.int64]:
    """Return rows and columns of about so many pixels within `COLUMNS`, (2, h, w)."""
    least, most = COLUMNS
    coarse_width = min(max(round(math.sqrt(places * width / height)), least), most, width)
    coarse_height = max(height * coarse_width // width, 1)
    rows = (np.arange(coarse_height) + 0.5) * height / coarse_height
    columns = (np.arange(coarse_width) + 0.5) * width / coarse_width
    return np.stack(np.meshgrid(rows.astype(int), columns.astype(int), indexing="ij"))


def _blend(distance: Floats, values: Floats, width: int) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of neighbours' (N, k) values by inverse square distance.

    A neighbour within half a pixel counts as one at half a pixel.
    """
    weight = np.maximum(distance, 0.5 / width) ** -2.0
    weight /= weight.sum(axis=1, keepdims=True)
    mean = (weight * values).sum(axis=1)
    variance = (weight * (values - mean[:, None]) ** 2).sum(axis=1)
    return mean, np.sqrt(variance)


def _neighbours_beyond(
    tree: cKDTree, known: Floats, radius: float
) -> tuple[NDArray[np.intp], Floats, NDArray[np.integer]]:
    """Return known pixels, and distances and indices of their nearest others beyond a radius.

    On a LiDAR's ring the next pixel is far nearer than it is to the pixels between the rings.
    Those that have fewer than `NEIGHBOURS` are left out: (n,), (n, k) and (n, k).
    """
    distance, index = tree.query(known, k=min(NEIGHBOURS_TRIED, len(known)))
    itself = index == np.arange(len(known))[:, None]
    usable = ~itself & (distance >= radius)
    apart = np.flatnonzero(usable.sum(axis=1) >= min(NEIGHBOURS, len(known) - 1))
    order = np.argsort(~usable[apart], axis=1, kind="stable")[:, :NEIGHBOURS]
    at = np.take_along_axis
    return apart, at(distance[apart], order, axis=1), at(index[apart], order, axis=1)
