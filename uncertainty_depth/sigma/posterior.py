# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth and sigma from a network's prediction and from what the robot measures beside it.

The logarithm of measured over predicted depth is a Gaussian process over the image (Rasmussen and
Williams 2006, equations 2.23 and 2.24). Before anything is measured, two pixels' errors share

- a part common to the frame: the scale,
- a wide part that falls with their distance in the image,
- a local part that falls faster, and across edges of colour, in proportion to the network's own
  relative sigma,

and each pixel has a part of its own that no neighbour tells. Measurements have noise of their own,
and a part common to all of a frame (`Measurements.common_log_sigma`). Outliers lose their weight
as under a Student-t distribution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.core.measurements import Measurements
from uncertainty_depth.core.records import DepthPrediction

MAX_MEASUREMENTS = 300
"""A solve's time grows with the cube; more of them are spread too densely to add anything."""
GRID = (30, 40)
"""Rows and columns at which the process is evaluated; between them it is interpolated."""
DEGREES_OF_FREEDOM = 4.0
REWEIGHTINGS = 2


@dataclass(frozen=True)
class Prior:
    """Standard deviations of the error of the logarithm of predicted depth, and their reach.

    Attributes:
        common: of the frame's scale.
        wide: of the wide part.
        wide_length: its length, of the image's width.
        local: of the local part, a factor on the network's relative sigma.
        local_length: its length, of the image's width.
        colour_length: its length in CIE Lab units; infinite without colour.
        own: of each pixel's own part, a factor on the network's relative sigma.
    """

    common: float
    wide: float
    wide_length: float
    local: float
    local_length: float
    colour_length: float
    own: float


FOR_SENSORS = Prior(0.20, 0.30, 0.25, 0.49, 0.07, 25.0, 0.10)
"""For pixels measured anywhere in the image."""
FOR_MOTION = Prior(0.20, 0.30, 0.25, 1.0, 0.12, 25.0, 0.5)
"""For corners: what is beside a corner is seldom at its depth, so they tell less than they seem
to, and a prior that is fitted to random pixels would be too sure between them."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """A prediction after measurements.

    Attributes:
        prediction: depth and sigma; of a frame without measurements the network's own.
        scale_log_sigma: standard deviation of the logarithm of the frame's scale, the mean log
            correction over the image. NaN if nothing was measured: the network tells none.
        relative_sigma: (H, W) float32, sigma / depth of a pixel if the frame's scale were known.
        weights: (N,) of the measurements that were used, 1 as its noise claims, towards 0 for an
            outlier.
        used: the measurements themselves.
    """

    prediction: DepthPrediction
    scale_log_sigma: float
    relative_sigma: NDArray[np.float32]
    weights: Floats
    used: Measurements


@dataclass(frozen=True, eq=False)
class _Places:
    """Pixels between which the prior has a covariance.

    Attributes:
        position: (N, 2), of the image's width.
        relative_sigma: (N,), the network's.
        lab: (N, 3); None without colour.
    """

    position: Floats
    relative_sigma: Floats
    lab: Floats | None


def _covariance(prior: Prior, one: _Places, other: _Places) -> Floats:
    """Return the prior covariance of what neighbours share, (N, M)."""
    square = _squared_distances(one.position, other.position)
    local = square / prior.local_length**2
    if one.lab is not None and other.lab is not None:
        local = local + _squared_distances(one.lab, other.lab) / prior.colour_length**2
    amplitudes = prior.local * one.relative_sigma[:, None] * (prior.local * other.relative_sigma)
    covariance: Floats = amplitudes * np.exp(-local / 2)
    covariance += prior.wide**2 * np.exp(-square / (2 * prior.wide_length**2))
    covariance += prior.common**2
    return covariance


def _squared_distances(one: Floats, other: Floats) -> Floats:
    squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T
    return np.maximum(squares, 0.0)


def posterior(
    prediction: DepthPrediction,
    measurements: Measurements,
    image: NDArray[np.uint8] | None = None,
    prior: Prior | None = None,
) -> Posterior:
    """Return a prediction that measurements have corrected, and what is left of its error.

    A pixel's depth becomes the process's median. Nothing is copied into the measured pixel
    itself: it is the neighbourhood that is corrected, so no measurement leaves a bump.

    Args:
        prediction: the network's.
        measurements: in pixels of the prediction; those on a pixel without a predicted depth tell
            nothing and are ignored.
        image: (H, W, 3) uint8, RGB, for the reach across edges of colour; None for without.
        prior: how the network errs; None for `FOR_MOTION` if the measurements share an error, as
            triangulated ones do, else `FOR_SENSORS`.

    Raises:
        ValueError: a measurement lies outside the prediction, or the image has another size.
    """
    depth = prediction.depth_m
    height, width = depth.shape
    if len(measurements) and not (
        0 <= measurements.rows.min() <= measurements.rows.max() < height
        and 0 <= measurements.columns.min() <= measurements.columns.max() < width
    ):
        raise ValueError(f"a measurement lies outside the prediction, which is {width}x{height}")
    if image is not None and image.shape[:2] != depth.shape:
        raise ValueError(f"image has shape {image.shape}; expected {(*depth.shape, 3)}")
    relative = prediction.sigma_m / depth
    measured_on = depth[measurements.rows, measurements.columns]
    with np.errstate(invalid="ignore"):
        usable = (measured_on > 0) & np.isfinite(relative[measurements.rows, measurements.columns])
    used = measurements.taken(usable).spread_evenly(MAX_MEASUREMENTS, depth.shape)
    if not len(used):
        return Posterior(prediction, float("nan"), relative, np.zeros(0), used)
    if prior is None:
        prior = FOR_MOTION if used.common_log_sigma.any() else FOR_SENSORS
    lab = None if image is None else cv2.cvtColor(image, cv2.COLOR_RGB2LAB)
    grid = _grid(relative, lab)
    at = _Places(
        np.stack([used.columns, used.rows], axis=1) / width,
        relative[used.rows, used.columns].astype(np.float64),
        None if lab is None else _lab_units(lab[used.rows, used.columns]),
    )
    residual = np.log(used.depth_m) - np.log(depth[used.rows, used.columns].astype(np.float64))
    own = used.log_sigma**2 + (prior.own * at.relative_sigma) ** 2
    shared = _covariance(prior, at, at)
    weights = np.ones(len(used))
    solved = _solve(shared, own, used.common_log_sigma, residual)
    for _ in range(REWEIGHTINGS):
        unexplained = residual - shared @ solved.weights
        weights = (DEGREES_OF_FREEDOM + 1) / (DEGREES_OF_FREEDOM + unexplained**2 / own)
        weights = np.minimum(weights, 1.0)
        solved = _solve(shared, own / weights, used.common_log_sigma, residual)
    to_grid = _covariance(prior, grid, at)
    mean = to_grid @ solved.weights
    explained = solve_triangular(solved.factor, to_grid.T, lower=True, check_finite=False)
    prior_variance = (prior.local * grid.relative_sigma) ** 2 + prior.wide**2 + prior.common**2
    variance = np.maximum(prior_variance - (explained**2).sum(axis=0), 0.0)
    # The frame's scale is the mean correction over the image. Its posterior covariance with every
    # place needs few places to average over, and the whole grid's with itself 60 ms.
    few = _every_third(grid)
    with_scale = _covariance(prior, grid, few.places).mean(axis=1)
    with_scale -= explained[:, few.index].mean(axis=1) @ explained
    scale_variance = max(float(with_scale[few.index].mean()), 1e-12)
    given_scale = np.maximum(variance - with_scale**2 / scale_variance, 0.0)
    own_variance = (prior.own * relative) ** 2
    corrected = depth * np.exp(_enlarged(mean, depth.shape))
    sigma = corrected * np.sqrt(_enlarged(variance, depth.shape) + own_variance)
    return Posterior(
        replace(
            prediction,
            depth_m=corrected,
            sigma_m=sigma,
            scale_log_sigma=float(np.sqrt(scale_variance)),
        ),
        float(np.sqrt(scale_variance)),
        np.sqrt(_enlarged(given_scale, depth.shape) + own_variance),
        weights,
        used,
    )


@dataclass(frozen=True, eq=False)
class _Solved:
    """Weights of the residuals, (N,), and the lower Cholesky factor of their covariance."""

    weights: Floats
    factor: Floats


def _solve(shared: Floats, own: Floats, common: Floats, residual: Floats) -> _Solved:
    total = shared + np.outer(common, common)
    total[np.diag_indices_from(total)] += own
    factor, _ = cho_factor(total, lower=True, check_finite=False)
    return _Solved(cho_solve((factor, True), residual, check_finite=False), np.tril(factor))


@dataclass(frozen=True, eq=False)
class _Few:
    """Some of the grid's places, and their indices in it."""

    places: _Places
    index: NDArray[np.intp]


def _every_third(grid: _Places) -> _Few:
    index = np.arange(GRID[0] * GRID[1]).reshape(GRID)[1::3, 1::3].ravel()
    lab = None if grid.lab is None else grid.lab[index]
    return _Few(_Places(grid.position[index], grid.relative_sigma[index], lab), index)


def _grid(relative_sigma: NDArray[np.float32], lab: NDArray[np.uint8] | None) -> _Places:
    """Return the centres of the grid's cells, with the mean sigma and colour of each."""
    rows, columns = GRID
    height, width = relative_sigma.shape
    known = np.isfinite(relative_sigma)
    share = cv2.resize(known.astype(np.float32), (columns, rows), interpolation=cv2.INTER_AREA)
    total = cv2.resize(
        np.where(known, relative_sigma, 0), (columns, rows), interpolation=cv2.INTER_AREA
    )
    mean = float(relative_sigma[known].mean())
    cells = np.where(share > 0, total / np.maximum(share, 1e-6), mean)
    x, y = np.meshgrid((np.arange(columns) + 0.5) / columns, (np.arange(rows) + 0.5) / rows)
    # Integer coordinates are pixel centres: a cell's centre at half its pixels less half of one.
    position = np.stack([x.ravel() * width - 0.5, y.ravel() * height - 0.5], axis=1) / width
    colours = None
    if lab is not None:
        small = cv2.resize(lab, (columns, rows), interpolation=cv2.INTER_AREA)
        colours = _lab_units(small.reshape(-1, 3))
    return _Places(position, cells.ravel().astype(np.float64), colours)


def _lab_units(lab: NDArray[np.uint8]) -> Floats:
    """Return OpenCV's 8-bit Lab as L in 0 to 100."""
    return lab.astype(np.float64) * (100 / 255, 1.0, 1.0)


def _enlarged(values: Floats, shape: tuple[int, ...]) -> NDArray[np.float32]:
    grid = values.reshape(GRID).astype(np.float32)
    return cv2.resize(grid, (shape[1], shape[0]), interpolation=cv2.INTER_LINEAR)
