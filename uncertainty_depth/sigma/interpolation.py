# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Known depth, interpolated along a prediction between the pixels that have it.

The logarithm of depth is interpolated between the nearest known pixels, near in the image and in
predicted depth, which keeps a wall's pixels from the chair before it. Between them a part of the
predicted relief is kept: all of it would copy the model's errors of shape. Sigma is what the
neighbours disagree by.

How large that part is, how much predicted depth counts as distance and how large sigma is, the
known pixels of each frame tell: each is predicted from others about as far away as the known ones
are from an unknown pixel, and from a posterior that has not seen it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.core.measurements import SENSOR_LOG_SIGMA, Measurements
from uncertainty_depth.core.records import DepthPrediction

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

NEIGHBOURS = 4
DEPTH_WEIGHTS = (0.3, 0.05)
"""Image widths that a factor e in predicted depth may count as in the distance to a neighbour: the
first of a network whose edges are right, the second of one that parts what belongs together."""
MAX_TESTED = 500
"""Known pixels that tell what fits a frame."""
OWN_SIGMA = 0.25
"""Weight of the model's own sigma, grown with distance, beside the neighbours' disagreement."""
NEIGHBOURS_TRIED = 64
"""Neighbours among which one is looked for that is far enough."""
MIN_PIXELS = 16
"""Known pixels below which the prediction stays as it is: the process alone has less error."""
MAX_INTERPOLATED = 8000
"""Most known pixels used, taken evenly over the image: about as many as a LiDAR has in one."""
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
COLUMNS = (160, 640)
"""Columns, least and most, at which neighbours are looked up; between them is interpolated. What
is known to 500 pixels or fewer loses nothing by the fewest."""
COLUMNS_OF_GAPS = 40
"""Columns at which it is looked up how far known pixels are."""
FAR = 4.0
"""Typical distances to the nearest known pixel beyond which sigma is at least the prediction's:
known pixels tell of narrower gaps. Pixels at random leave none so wide, the sky above a LiDAR
does."""
PLACES_PER_PIXEL = 8
"""Places at which neighbours are looked up, for each known pixel."""
LEAST_SIGMA = 1e-4
"""Least sigma over depth: known depth in whole centimetres may agree to the last bit without being
that exact. Images of rooms come to ten times as much."""
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
    return float(np.median(distance)) / _at_random(distance.size, len(known))


def _at_random(size: int, count: int) -> float:
    """Return the median distance to one of so many pixels at random in an image of a size."""
    return math.sqrt(math.log(2) / math.pi * size / count)


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
    log_sigma = np.where(has_value, prediction.sigma_m, 0.0) / np.exp(log_depth)
    unseen = log_depth
    if left_out_m is not None:
        unseen = np.where(np.isfinite(left_out_m), np.log(left_out_m), log_depth)
    rows, columns = np.nonzero(np.isfinite(sparse_m) & (sparse_m > 0) & has_value)
    missed = np.abs(np.log(sparse_m[rows, columns]) - unseen[rows, columns])
    claimed = log_sigma[rows, columns]
    is_right = (claimed == 0) | (missed <= WRONG_SIGMAS * np.hypot(claimed, SENSOR_LOG_SIGMA))
    rows, columns = rows[is_right], columns[is_right]
    if len(rows) < MIN_PIXELS:
        return prediction
    if not has_value.all():  # a place in a hole counts for the pixels beside it
        nearest = _nearest(has_value)
        log_depth, log_sigma = (values.ravel()[nearest] for values in (log_depth, log_sigma))
    log_known = np.log(sparse_m[rows, columns].astype(np.float64))
    known = _Known(rows, columns, log_known, unseen[rows, columns])
    fits = [_fit(_Places(log_depth, has_value, it), known, apart) for it in DEPTH_WEIGHTS]
    some = [fit for fit in fits if fit is not None]
    if not some:
        return prediction
    fit = min(some, key=lambda it: it.deviation)
    wanted = math.sqrt(PLACES_PER_PIXEL * len(rows) * width / height)
    grid = _grid(height, width, min(max(wanted, COLUMNS[0]), COLUMNS[1]))
    distance, index = fit.tree.query(fit.places.at(*grid.reshape(2, -1)), k=NEIGHBOURS)
    rest = log_known - fit.trend * log_depth[rows, columns]
    near, disagreement = _blend(distance, rest[index], width)
    reach = np.sqrt(np.maximum(distance[:, 0], 0.5 / width) / fit.typical)
    own = log_sigma[grid[0], grid[1]].ravel()
    relative = np.hypot(disagreement, OWN_SIGMA * own * reach)
    _, scatter = _blend(fit.distance, rest[fit.index], width)
    expected = np.hypot(scatter, OWN_SIGMA * log_sigma[rows[fit.tested], columns[fit.tested]])
    relative *= LAPLACE_SIGMA * fit.deviation / max(float(expected.mean()), 1e-9)
    cells = (rows * grid.shape[1] // height, columns * grid.shape[2] // width)
    is_far = _is_far(cells, grid.shape[1:])
    relative = np.where(is_far.ravel(), np.maximum(relative, own), relative)

    def at_pixels(values: Floats) -> NDArray[np.float32]:
        coarse = values.reshape(grid.shape[1:]).astype(np.float32)
        return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_LINEAR)

    depth = np.exp(fit.trend * log_depth.astype(np.float32) + at_pixels(near))
    sigma = depth * np.maximum(at_pixels(relative), LEAST_SIGMA)
    depth_m = np.where(has_value, depth, prediction.depth_m)
    sigma_m = np.where(has_value, sigma, prediction.sigma_m)
    return replace(prediction, depth_m=depth_m, sigma_m=sigma_m)


class _Known(NamedTuple):
    """The known pixels.

    Attributes:
        rows, columns: (N,).
        log_depth: (N,), measured.
        unseen: (N,), log depth by a posterior that has not seen the pixel.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    log_depth: Floats
    unseen: Floats


@dataclass(frozen=True, eq=False)
class _Places:
    """Where pixels are, in image widths.

    Attributes:
        log_depth: (H, W), predicted.
        has_value: (H, W), which pixels are predicted.
        depth_weight: of `DEPTH_WEIGHTS`.
    """

    log_depth: Floats
    has_value: NDArray[np.bool_]
    depth_weight: float

    def at(self, rows: NDArray[np.integer], columns: NDArray[np.integer]) -> Floats:
        """Return them of (N,) pixels, (N, 3)."""
        width = self.log_depth.shape[1]
        deep = self.depth_weight * self.log_depth[rows, columns]
        return np.stack([rows / width, columns / width, deep], axis=-1)


@dataclass(frozen=True, eq=False)
class _Fit:
    """What suits the known pixels of a frame, if predicted depth counts so much in distances.

    Attributes:
        places: of pixels.
        tree: of the known ones'.
        typical: distance of a pixel to a known one.
        tested: (n,), known pixels that were predicted from others.
        distance, index: (n, k), of these others.
        trend: part of the predicted relief that is kept.
        deviation: mean absolute error of the tested pixels' log depth.
    """

    places: _Places
    tree: cKDTree
    typical: float
    tested: NDArray[np.intp]
    distance: Floats
    index: NDArray[np.intp]
    trend: float
    deviation: float


def _fit(places: _Places, known: _Known, apart: float) -> _Fit | None:
    """Return it; None if no known pixel has others as far away as the gaps are."""
    from scipy.spatial import cKDTree  # loads slowly, and only who interpolates needs it

    height, width = places.log_depth.shape
    at_known = places.at(known.rows, known.columns)
    tree = cKDTree(at_known)
    some = _grid(height, width, COLUMNS_OF_GAPS).reshape(2, -1)
    predicted = some[:, places.has_value[some[0], some[1]]]
    to_known, _ = tree.query(places.at(*(predicted if predicted.size else some)))
    typical = max(float(np.median(to_known)), 1 / width)  # 0 where most is known
    tested, distance, index = _neighbours_beyond(tree, at_known, apart * typical)
    if not len(tested):
        return None
    relief = places.log_depth[known.rows, known.columns]
    measured = known.log_depth[tested] - _blend(distance, known.log_depth[index], width)[0]
    predicted_so = known.unseen[tested] - _blend(distance, relief[index], width)[0]
    trend = _part_kept(measured, predicted_so)
    deviation = float(np.abs(measured - trend * predicted_so).mean())
    return _Fit(places, tree, typical, tested, distance, index, trend, deviation)


def _part_kept(measured: Floats, relief: Floats) -> float:
    """Return which part of the predicted relief, 0 to 1, leaves the least mean absolute error.

    That is the weighted median of the ratios.
    """
    has_relief = relief != 0
    if not has_relief.any():
        return 1.0
    ratio = measured[has_relief] / relief[has_relief]
    order = np.argsort(ratio)
    weight = np.abs(relief[has_relief])[order].cumsum()
    median = ratio[order[np.searchsorted(weight, weight[-1] / 2)]]
    return float(np.clip(median, 0, 1))


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


def _grid(height: int, width: int, columns: float) -> NDArray[np.int64]:
    """Return rows and columns of pixels evenly over an image, about so many across, (2, h, w)."""
    across = min(round(columns), width)
    down = max(height * across // width, 1)
    rows = ((np.arange(down) + 0.5) * height / down).astype(int)
    places = ((np.arange(across) + 0.5) * width / across).astype(int)
    return np.stack(np.meshgrid(rows, places, indexing="ij"))


def _is_far(
    known: tuple[NDArray[np.intp], NDArray[np.intp]], shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Return which cells of a grid are `FAR` from rows and columns of known pixels' cells."""
    unknown = np.ones(shape, np.uint8)
    unknown[known] = 0
    distance = cv2.distanceTransform(unknown, cv2.DIST_L2, cv2.DIST_MASK_5)
    is_far: NDArray[np.bool_] = distance > FAR * _at_random(distance.size, len(known[0]))
    return is_far


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
) -> tuple[NDArray[np.intp], Floats, NDArray[np.intp]]:
    """Return known pixels, and distances and indices of their nearest others beyond a radius.

    On a LiDAR's ring the next pixel is far nearer than it is to the pixels between the rings.
    Those that have fewer than `NEIGHBOURS` are left out: (n,), (n, k) and (n, k).
    """
    some = np.random.default_rng(0).permutation(len(known))[:MAX_TESTED]
    distance, index = tree.query(known[some], k=min(NEIGHBOURS_TRIED, len(known)))
    usable = (index != some[:, None]) & (distance >= radius)
    apart = np.flatnonzero(usable.sum(axis=1) >= min(NEIGHBOURS, len(known) - 1))
    order = np.argsort(~usable[apart], axis=1, kind="stable")[:, :NEIGHBOURS]
    at = np.take_along_axis
    return some[apart], at(distance[apart], order, axis=1), at(index[apart], order, axis=1)
