# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth and sigma from a network's prediction and from what the robot measures beside it.

The logarithm of measured over predicted depth is a random process over the image. Its variance is
in proportion to the square of the network's own relative sigma, and two pixels share

- a part common to the frame: the scale,
- a wide part, which falls with their distance in the image and in predicted depth,
- a local part, which falls faster, and across edges of colour.

Given its variance the process is Gaussian (Rasmussen and Williams 2006, equations 2.23 and 2.24).
How large the variance of a frame is, its measurements tell, as in a Student-t process (Shah,
Wilson and Ghahramani, "Student-t Processes as Alternatives to Gaussian Processes", AISTATS 2014):
a network that is better or worse in this room than it says is found out. Measurements have noise
of their own, and a part common to all of a frame (`Measurements.common_log_sigma`). Their noise is
Student-t too, so outliers lose their weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.core.measurements import (
    MAX_MEASUREMENTS,
    Measurements,
    check_sparse_depth,
    check_unit,
)
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.sigma.error_prior import FOREIGN, ErrorPrior
from uncertainty_depth.sigma.interpolation import interpolated, spread
from uncertainty_depth.sigma.recorded.alignment import in_metres

GRID = (30, 40)
"""Rows and columns at which the process is evaluated; between them it is interpolated."""
MAX_REWEIGHTINGS = 6
"""Solves at most that find the measurements' weights, or the frame's variance."""
SETTLED = 0.05
"""Change of a weight, or part of the variance, below which they are found."""
NOTHING_SEEN = (math.log(4), 10.0)
"""A sensor's measurements whose logarithm over the prediction is further than both, the second in
median deviations, from the median are no depths, but what it says where it sees nothing. Of right
ones in rooms less than one in 10,000 is."""
MAX_WITNESSES = 16
"""Measurements, evenly over the image, that tell a frame's variance: the prior describes what
distant pixels share better than what near ones do, of which there would be far more pairs."""
WITNESS_WEIGHT = 0.2
"""Least weight that the process gives a measurement which is asked: a wrong one would tell of a
frame that errs everywhere, in which wrong ones are then believed."""
SENSOR_FREEDOM = 4.0
"""Degrees of freedom of a sensor's noise."""
CORNER_FREEDOM = 1.0
"""The same for a triangulated corner: a wrong match may be off by any distance."""
CORNER_OWN = 0.25
"""What is beside a corner is seldom at its depth: variance of each pixel that no neighbour tells,
over the square of its relative sigma. Chosen on the two drives of `docs/measurements.md`, as is
the next one."""
EDGE_REACH = 0.0125
"""Image widths by which an edge of depth may lie beside the true one."""
EDGE_COLUMNS = 160
"""About how many columns of predicted depth are looked at for edges."""
EDGE_SIGMA = 0.3
"""Standard deviation that this adds to corrected log depth, over its range within that reach.
Chosen on NYU and the two drives."""
CORNER_AT_EDGE = 2.0
"""A corner at an edge may belong to either side: noise of its log depth, over the range of the
predicted one."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """A prediction after measurements.

    Attributes:
        prediction: depth, sigma and `scale_log_sigma`, which is of the mean log correction over
            the image; of a frame without measurements the network's own.
        scale_part: (30, 40) float32, over the image, variance of log depth that only the frame's
            unknown scale makes.
        sigma_factor: by which the network errs more in this frame than its prior says, as far as
            the measurements tell; 1 if nothing was measured.
        weights: (N,) of the measurements that were used, 1 as its noise claims, towards 0 for an
            outlier.
        used: the measurements themselves.
        left_out_m: (N,) metres, the depth of their pixels by all the others.
    """

    prediction: DepthPrediction
    scale_part: NDArray[np.float32]
    sigma_factor: float
    weights: Floats
    used: Measurements
    left_out_m: Floats

    @property
    def relative_sigma(self) -> NDArray[np.float32]:
        """Sigma / depth of each pixel, (H, W), if the frame's scale were known."""
        depth = self.prediction.depth_m
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = np.square(self.prediction.sigma_m / depth)
        variance -= _enlarged(self.scale_part, depth.shape)
        return np.sqrt(np.maximum(variance, 0))


def posterior(
    prediction: DepthPrediction,
    measurements: Measurements,
    image: NDArray[np.uint8] | None = None,
    prior: ErrorPrior = FOREIGN,
) -> Posterior:
    """Return a prediction that measurements have corrected, and what is left of its error.

    A pixel's depth becomes the process's median. Nothing is copied into the measured pixel
    itself: it is the neighbourhood that is corrected, so no measurement leaves a bump.

    Args:
        prediction: the network's.
        measurements: in pixels of the prediction; those on a pixel without a predicted depth or
            with a sigma of 0 or infinity, and those of nothing seen, are ignored.
        image: (H, W, 3) uint8, RGB, for the reach across edges of colour; None for without.
        prior: how the network errs.

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
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = prediction.sigma_m / depth
        has_value = (relative > 0) & (relative < np.inf)
    used = measurements.taken(has_value[measurements.rows, measurements.columns])
    used = used.taken(_is_seen(used, depth))
    used = used.taken(used.evenly(MAX_MEASUREMENTS, depth.shape))
    if not len(used):
        nothing = np.zeros(0)
        return Posterior(prediction, np.zeros(GRID, np.float32), 1.0, nothing, used, nothing)
    field = _Field(prior, depth, relative, image)
    at = field.at(used.rows, used.columns)
    frame, solved = _conditioned(used, field, at, prior.freedom)
    at = at.rounded()
    grid = field.grid().rounded()
    to_grid = np.float32(frame) * field.covariance(at, grid)
    mean = solved.weights.astype(np.float32) @ to_grid
    factor = solved.factor.astype(np.float32)
    explained = solve_triangular(factor, to_grid, lower=True, check_finite=False)
    variance = frame * field.variance(grid) - np.einsum("ng,ng->g", explained, explained)
    scale_variance, with_scale = _scale(field, grid, frame, explained)
    correction = _enlarged(mean, depth.shape)
    of_pixels = _enlarged(np.maximum(variance, 0), depth.shape)
    of_pixels += np.square(EDGE_SIGMA * field.log_depth_range(correction))
    if used.common_log_sigma.all():
        of_pixels += CORNER_OWN * np.square(relative)
    of_pixels[~has_value] += relative[~has_value]  # NaN and infinity stay what they are
    depth_m = depth * np.exp(correction)
    sigma_m = depth_m * np.sqrt(of_pixels)
    scale_log_sigma = float(np.sqrt(scale_variance))
    return Posterior(
        replace(prediction, depth_m=depth_m, sigma_m=sigma_m, scale_log_sigma=scale_log_sigma),
        (with_scale**2 / scale_variance).reshape(GRID).astype(np.float32),
        float(np.sqrt(frame)),
        solved.noise_weights,
        used,
        used.depth_m * np.exp(-solved.left_out),
    )


def _conditioned(
    used: Measurements, field: _Field, at: _Places, freedom: float
) -> tuple[float, _Solved]:
    """Return the frame's variance, over what the network says, and what the residuals tell."""
    depth = field.depth_m
    residual = np.log(used.depth_m) - np.log(depth[used.rows, used.columns].astype(np.float64))
    shared = field.covariance(at, at).astype(np.float64)
    noise = _noise(used, field)
    shared[np.diag_indices_from(shared)] += noise.own * at.relative_sigma**2
    solved = _solve(shared, noise, residual)
    # How far corners are off is not known well enough to tell what is beyond it.
    by_sensor = used.common_log_sigma == 0
    agree = np.flatnonzero(by_sensor & (solved.noise_weights >= WITNESS_WEIGHT))
    if not len(agree):
        return 1.0, solved
    sensed = used.taken(agree)
    few = agree[sensed.evenly(MAX_WITNESSES, depth.shape)]
    # Neighbours that agree with each other are no evidence about the rest of the image.
    freedom /= sensed.coverage(depth.shape)
    frame = _solve(shared[np.ix_(few, few)], noise.taken(few), residual[few], freedom).variance
    return frame, _solve(frame * shared, noise, residual, noise_weights=solved.noise_weights)


def _is_seen(measurements: Measurements, depth: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return which measurements, (N,), are not of `NOTHING_SEEN`."""
    if not len(measurements):
        return np.ones(0, np.bool_)
    ratio = np.log(measurements.depth_m / depth[measurements.rows, measurements.columns])
    deviation = np.abs(ratio - np.median(ratio))
    factor, deviations = NOTHING_SEEN
    is_near = deviation <= max(factor, deviations * np.median(deviation))
    is_corner = measurements.common_log_sigma > 0  # whose errors have tails
    is_seen: NDArray[np.bool_] = is_near | is_corner
    return is_seen


def _scale(
    field: _Field, grid: _Places, frame: float, explained: NDArray[np.float32]
) -> tuple[float, NDArray[np.floating]]:
    """Return the variance of the frame's scale, and its covariance with each cell, (cells,).

    The scale is the mean correction over the image. Few places to average over suffice, and the
    whole grid's covariance with itself takes 60 ms.
    """
    few = np.arange(GRID[0] * GRID[1]).reshape(GRID)[2::6, 3::6].ravel()
    covariance = field.covariance(grid.taken(few), grid).mean(axis=0) * frame
    covariance -= explained[:, few].mean(axis=1) @ explained
    return max(float(covariance[few].mean()), 1e-12), covariance


def corrected(
    prediction: DepthPrediction,
    frame: Frame,
    depth_range: tuple[float, ...],
    prior: ErrorPrior = FOREIGN,
    *,
    is_relative: bool = False,
) -> DepthPrediction:
    """Return a prediction corrected by what was measured in its frame.

    Args:
        prediction: of the frame's image, metres; inverse depth without a unit if `is_relative`.
        frame: with its image, if that is known, its measurements and its sparse depth, which is
            interpolated too where it is known everywhere.
        depth_range: min and max depth of what predicts, metres: measured depth far beyond it has
            another unit. What is measured may correct a prediction beyond it.
        prior: how what predicts errs.
        is_relative: whether what is measured gives the prediction its scale and shift too.

    Raises:
        MessageError: what was measured has another size, type or unit, or is not enough for scale
            and shift.
    """
    measurements = frame.measurements or Measurements.none()
    check_unit(measurements.depth_m, depth_range)
    if frame.sparse_m is not None:
        height, width = prediction.depth_m.shape
        check_sparse_depth(frame.sparse_m, (height, width), depth_range)
        known = Measurements.from_map(frame.sparse_m)
        measurements = known.joined(measurements)
    image = frame.image
    if image is None or not frame.is_registered or image.shape[:2] != prediction.depth_m.shape:
        image = None  # a picture for reports, whose colours are of other directions
    if is_relative:
        prediction = in_metres(prediction, measurements)
    result = posterior(prediction, measurements, image, prior)
    if frame.sparse_m is None or (some := interpolated(known, (height, width))) is None:
        return result.prediction
    left_out = replace(result.used, depth_m=result.left_out_m)
    maps = (some.known.map((height, width)), left_out.map((height, width)))
    return spread(result.prediction, *maps, some.apart)


@dataclass(frozen=True, eq=False)
class _Places:
    """Pixels or cells between which the prior has a covariance.

    Attributes:
        wide, local: (N, D), coordinates over their lengths.
        relative_sigma: (N,), the network's.
    """

    wide: NDArray[np.floating]
    local: NDArray[np.floating]
    relative_sigma: NDArray[np.floating]

    def rounded(self) -> _Places:
        """Return them in float32, in which a grid's covariances take half the time."""
        return _Places(*(getattr(self, f.name).astype(np.float32) for f in fields(self)))

    def taken(self, index: NDArray[np.intp]) -> _Places:
        return _Places(self.wide[index], self.local[index], self.relative_sigma[index])


class _Field:
    """The prior over one image."""

    def __init__(
        self,
        prior: ErrorPrior,
        depth: NDArray[np.float32],
        relative: NDArray[np.float32],
        image: NDArray[np.uint8] | None,
    ) -> None:
        self.depth_m = depth
        self._prior = prior

        self._has_value = (relative > 0) & (relative < np.inf)
        self._relative = np.where(self._has_value, relative, 0)
        log_depth = np.log(depth, where=self._has_value, out=np.zeros_like(depth))
        # Distances are of differences, and in float32 those of small numbers are more precise.
        log_depth -= log_depth[self._has_value].mean()
        self._log_depth = np.where(self._has_value, log_depth, 0)
        self._image = image
        self._mean = float(relative[self._has_value].mean())

    def log_depth_range(self, correction: NDArray[np.float32] | None = None) -> NDArray:
        """Return by how much log depth, (H, W), differs within `EDGE_REACH`, corrected or not."""
        height, width = self.depth_m.shape
        step = max(min(width // EDGE_COLUMNS, height), 1)
        some = (slice(step // 2, None, step), slice(step // 2, None, step))
        log_depth = self._log_depth[some]
        if correction is not None:
            log_depth = log_depth + correction[some]
        has_value = self._has_value[some]
        far = np.float32(1e30)  # of what has no depth; twice as much is still a float32
        window = np.ones(2 * [2 * round(EDGE_REACH * width / step) + 1], np.uint8)
        highest = cv2.dilate(np.where(has_value, log_depth, -far), window)
        lowest = cv2.erode(np.where(has_value, log_depth, far), window)
        apart = np.maximum(highest - lowest, 0)
        return cv2.resize(apart, (width, height), interpolation=cv2.INTER_LINEAR)

    def at(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> _Places:
        colours = None if self._image is None else self._image[rows, columns]
        return self._places(
            rows, columns, self._log_depth[rows, columns], self._relative[rows, columns], colours
        )

    def grid(self) -> _Places:
        """Return the cells of the grid, with the mean sigma, depth and colour of each."""
        height, width = self.depth_m.shape
        share = _cell_means(self._has_value.astype(np.float32))
        some = np.maximum(share, 1e-6)
        sigma = np.where(share > 0, _cell_means(self._relative) / some, self._mean)
        # Integer coordinates are pixel centres: a cell's centre is half a pixel less than its end.
        rows, columns = np.indices(GRID).reshape(2, -1)
        y = (rows + 0.5) * height / GRID[0] - 0.5
        x = (columns + 0.5) * width / GRID[1] - 0.5
        colours = None if self._image is None else _cell_means(self._image)
        return self._places(y, x, _cell_means(self._log_depth) / some, sigma, colours)

    def _places(
        self,
        rows: NDArray,
        columns: NDArray,
        log_depth: NDArray,
        sigma: NDArray,
        colours: NDArray[np.uint8] | None,
    ) -> _Places:
        width = self.depth_m.shape[1]
        place = np.stack([columns / width, rows / width], axis=1) - 0.5
        lab = np.zeros((len(place), 3))
        if colours is not None:
            # OpenCV's 8-bit Lab has L in 0 to 255.
            lab = cv2.cvtColor(colours[None], cv2.COLOR_RGB2LAB)[0] * (100 / 255, 1, 1)

        prior = self._prior
        depths = log_depth[:, None]
        wide = [place / prior.wide_length, depths / prior.wide_depth_length]
        local = [place / prior.local_length, depths / prior.local_depth_length]
        local.append(lab / prior.colour_length)
        return _Places(
            math.sqrt(3) * np.concatenate(wide, axis=1),
            math.sqrt(3) * np.concatenate(local, axis=1),
            sigma.astype(np.float32),
        )

    def covariance(self, one: _Places, other: _Places) -> NDArray[np.floating]:
        """Return the prior covariance, (N, M), in the places' precision."""
        prior = self._prior
        result = _matern(one.wide, other.wide)
        result *= self._mean**2 * prior.wide**2
        result += self._mean**2 * prior.common**2
        local = _matern(one.local, other.local)
        local *= prior.local**2 * one.relative_sigma[:, None]
        local *= other.relative_sigma
        result += local
        return result

    def variance(self, places: _Places) -> NDArray[np.floating]:
        """Return the prior variance of what neighbours share, (N,)."""
        prior = self._prior
        shared = self._mean**2 * (prior.common**2 + prior.wide**2)
        return shared + prior.local**2 * places.relative_sigma**2


def _matern(one: NDArray[np.floating], other: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return (1 + d) exp(-d) of the distances between (N, D) and (M, D) coordinates."""
    distance = (-2 * one) @ other.T
    distance += (one * one).sum(axis=1)[:, None]
    distance += (other * other).sum(axis=1)
    np.maximum(distance, 0, out=distance)
    np.sqrt(distance, out=distance)
    decay = np.exp(-distance)
    distance += 1
    distance *= decay
    return distance


def _cell_means(values: NDArray) -> NDArray:
    """Return the mean of each cell of the grid, (cells,) or (cells, 3)."""
    small = cv2.resize(values, (GRID[1], GRID[0]), interpolation=cv2.INTER_AREA)
    return small.reshape(GRID[0] * GRID[1], *values.shape[2:])


@dataclass(frozen=True, eq=False)
class _Noise:
    """How measurements err.

    Attributes:
        variance: (N,) of log depth, of each measurement's own error.
        common: (N,), see `Measurements.common_log_sigma`.
        freedom: (N,), degrees of freedom of the own error.
        own: (N,), variance that no neighbour of the measured pixel tells, over the square of its
            relative sigma.
    """

    variance: Floats
    common: Floats
    freedom: Floats
    own: Floats

    def taken(self, which: NDArray[np.intp]) -> _Noise:
        return _Noise(*(getattr(self, it.name)[which] for it in fields(self)))


def _noise(measurements: Measurements, field: _Field) -> _Noise:
    """Return the noise of a sensor's pixels and of corners, which share an error."""
    variance = measurements.log_sigma**2
    common = measurements.common_log_sigma
    is_corner = common > 0
    if is_corner.any():
        at_edge = CORNER_AT_EDGE * field.log_depth_range()[measurements.rows, measurements.columns]
        variance = variance + np.where(is_corner, at_edge, 0) ** 2
    freedom = np.where(is_corner, CORNER_FREEDOM, SENSOR_FREEDOM)
    return _Noise(variance, common, freedom, np.where(is_corner, CORNER_OWN, 0.0))


@dataclass(frozen=True, eq=False)
class _Solved:
    """What the residuals tell.

    Attributes:
        variance: of the frame, over what the network says.
        weights: (N,) of the residuals in the mean.
        factor: (N, N) lower Cholesky factor of their covariance.
        noise_weights: (N,), see `Posterior.weights`.
    """

    variance: float
    weights: Floats
    factor: Floats
    noise_weights: Floats

    @property
    def left_out(self) -> Floats:
        """Each residual less what all the others say (Rasmussen and Williams, equation 5.12)."""
        return self.weights / _diagonal_of_inverse(self.factor)


def _solve(
    shared: Floats,
    noise: _Noise,
    residual: Floats,
    frame_freedom: float = math.inf,
    noise_weights: Floats | float = 1.0,
) -> _Solved:
    """Return the solution with the weights and the variance that the residuals suggest.

    The noise's weights are its expectation-maximisation for a Student-t distribution (Lange,
    Little and Taylor 1989), the frame's variance MacKay's fixed point of the evidence
    (Neural Computation 4, 1992, equation 22), both under the posterior of the other. Infinite
    freedom leaves the frame's variance as it is; finite, the noise has no common part. It starts
    from the given weights.
    """
    common = noise.common
    variance = 1.0
    noise_weights = np.broadcast_to(noise_weights, residual.shape)
    for _ in range(MAX_REWEIGHTINGS):
        own = noise.variance / noise_weights
        weights, factor = _factored(variance * shared, own, common, residual)
        precision = _diagonal_of_inverse(factor)
        unexplained = (own * weights) ** 2 + own - own**2 * precision
        before = noise_weights
        noise_weights = (noise.freedom + 1) / (noise.freedom + unexplained / noise.variance)
        noise_weights = np.minimum(noise_weights, 1)
        growth = 1.0
        if math.isfinite(frame_freedom):
            # Of the squares, how many the process explains, and how many it could.
            explained = residual @ weights - own @ weights**2
            determined = len(residual) - own @ precision
            growth = float((frame_freedom / variance + explained) / (frame_freedom + determined))
            variance *= growth
        is_settled = abs(growth - 1) < SETTLED and np.abs(noise_weights - before).max() < SETTLED
        if is_settled:
            break
    weights, factor = _factored(
        variance * shared, noise.variance / noise_weights, common, residual
    )
    return _Solved(variance, weights, factor, noise_weights)


def _factored(
    shared: Floats, noise: Floats, common: Floats, residual: Floats
) -> tuple[Floats, Floats]:
    """Return the weights of the residuals, and the Cholesky factor of their covariance."""
    total = shared + np.outer(common, common)
    total[np.diag_indices_from(total)] += noise
    factor, failed = lapack.dpotrf(total, lower=1, clean=1)
    if failed:
        raise ValueError(f"a covariance of {len(residual)} measurements is not positive")
    return lapack.dpotrs(factor, residual, lower=1)[0], factor


def _diagonal_of_inverse(factor: Floats) -> Floats:
    """Return the diagonal, (N,), of a matrix's inverse, of its lower Cholesky factor."""
    inverse_factor, _ = lapack.dtrtri(factor, lower=1)
    diagonal: Floats = np.einsum("ij,ij->j", inverse_factor, inverse_factor)
    return diagonal


def _enlarged(values: NDArray, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return the values at the grid's cells at each pixel."""
    grid = values.reshape(GRID).astype(np.float32)
    return cv2.resize(grid, (shape[1], shape[0]), interpolation=cv2.INTER_LINEAR)
