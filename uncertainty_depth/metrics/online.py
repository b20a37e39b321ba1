"""Every metric in one pass over the pixels, in bounded memory, whatever their number.

Sums and counts are exact. Order statistics come from logarithmic bins (see `bins`), so pooled
metrics are off from the exact functions on all pixels together by bounds that docs/metrics.md
states and the tests hold. Chunks of any size, at once, or merged in any order: counts are equal and
sums agree to rounding. Only the per-image metrics depend on what one image is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.interrupt import held_interrupt
from uncertainty_depth.metrics import checks, plot_curves, pooled
from uncertainty_depth.metrics.arrays import Floats, as_floats
from uncertainty_depth.metrics.baselines import CANDIDATES
from uncertainty_depth.metrics.bins import Bins, join_single_values, single_values
from uncertainty_depth.metrics.depth import pixels_with_ground_truth, predicted_pixels
from uncertainty_depth.metrics.frame import STATISTICS, Candidate, Frame, Scores
from uncertainty_depth.metrics.interval_bins import spans_of
from uncertainty_depth.metrics.state import (
    CANDIDATE_SUMS,
    DEPTH_SUMS,
    ERROR,
    ERROR_SUMS,
    FACTOR,
    JOINT_ERROR,
    JOINT_SIGMA,
    RANKED,
    RATIO,
    RATIO_SUMS,
    RELATIVE,
    SIGMA,
    STATISTIC_SUMS,
    State,
    from_arrays,
    load_state,
    save_state,
    to_arrays,
)

BLOCK = 1 << 16
"""Pixels that are binned at a time: what a block makes stays in the cache."""
KEPT_BYTES = 24 << 20
"""glibc returns freed memory beyond twice the largest block it was ever asked to free. It would do
so after every frame, and page faults would take a third of the time: one block of this size, never
touched, makes it keep what a frame needs."""


class OnlineMetrics:
    """Accumulates all metrics of depth, its sigma and the trivial baselines over any frames.

    The state is at most 8 MB; `update` needs 0.3 to 0.4 kB for each scored pixel of its frame besides.

    Attributes:
        config: what is scored, and how. States merge when their configs score the same.

    Raises:
        ConfigError: the config's limits are not finite, reversed, or hold more depth intervals than
            fit.
        ValueError: alpha is out of range.
    """

    def __init__(self, config: EvaluationConfig = EvaluationConfig()) -> None:  # noqa: B008 (frozen)
        checks.fraction("alpha", config.alpha)
        self.config = config
        self._state = State(config)
        np.empty(KEPT_BYTES, dtype=np.uint8)  # freed at once: see KEPT_BYTES

    @property
    def pixels(self) -> int:
        """Pixels scored so far."""
        return int(self._state.tables["counts"][0])

    @property
    def frames(self) -> int:
        """Frames with at least one valid pixel seen so far."""
        return int(self._state.tables["counts"][1])

    @property
    def nbytes(self) -> int:
        """Size of the state."""
        return self._state.nbytes

    def update(
        self, depth: ArrayLike, sigma: ArrayLike, ground_truth: ArrayLike
    ) -> dict[str, Any] | None:
        """Score one frame and fold it in.

        Args:
            depth: predicted depth of any shape, metres; NaN where there is no prediction.
            sigma: predicted standard deviation, same shape, metres.
            ground_truth: same shape, metres, NaN where unknown.

        Returns:
            The exact metrics of this frame, nested like `compute`; None where no pixel is valid.
            Its pixels with ground truth count in the pooled `scored_fraction` all the same.

        Raises:
            ValueError: the shapes differ, or an argument is no array of numbers.
        """
        limits = self.config.min_depth, self.config.max_depth
        known = pixels_with_ground_truth(depth, sigma, ground_truth, *limits)
        valid = predicted_pixels(*known)
        if not len(valid[0]):
            self._state.tables["counts"][2] += len(known[0])
            return None
        scores = Scores(Frame(*map(as_floats, valid)))
        metrics = scores.metrics(self.config.alpha, len(valid[0]) / len(known[0]))
        with held_interrupt():
            self._fold(scores, metrics, len(known[0]))
        return metrics

    def merge(self, other: OnlineMetrics) -> None:
        """Add what another accumulator has seen.

        Raises:
            ValueError: the other one scores something else.
        """
        for name in ("min_depth", "max_depth", "depth_bin_width"):
            mine = getattr(self.config, name)
            its = getattr(other.config, name)
            if mine != its:
                raise ValueError(f"other has {name} {its}; expected {mine}, as here")
        self._state.merge(other._state)

    def compute(self) -> dict[str, Any]:
        """The nested mapping of `summary.json` over everything seen; NaN where nothing was."""
        return pooled.summary(self._state, self.config.alpha)

    def curves(self) -> dict[str, Any]:
        """The plain arrays behind the plots, see `plot_curves.curves`."""
        return plot_curves.curves(self._state, self.config.alpha)

    def reset(self) -> None:
        """Forget everything."""
        self._state = State(self.config)

    def save(self, path: str | os.PathLike) -> None:
        """Write the state, to go on later or to merge parts evaluated apart."""
        save_state(self._state, self.config, path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> OnlineMetrics:
        """Read a saved state.

        Raises:
            SourceError: there is none at this path, or it is damaged or of another format.
        """
        state, config = load_state(path)
        metrics = cls(config)
        metrics._state = state
        return metrics

    def to_arrays(self) -> dict[str, NDArray]:
        """Return the state as named arrays, to be saved as a part of something larger."""
        return to_arrays(self._state, self.config)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray], path: str | os.PathLike) -> OnlineMetrics:
        """Return the metrics that `to_arrays` gave; `path` is where the arrays were read from.

        Raises:
            SourceError: the arrays are of another format.
            ValueError, KeyError: they are damaged.
        """
        state, config = from_arrays(arrays, path)
        metrics = cls(config)
        metrics._state = state
        return metrics

    def _fold(self, scores: Scores, metrics: dict[str, Any], known_pixels: int) -> None:
        """Add a frame to counts, sums and tables, which agree only once all of it is done."""
        self._fold_sums(scores, metrics, known_pixels)
        self._fold_errors(scores.frame)
        for name in RANKED:
            self._fold_candidate(name, scores.candidates[name])
        self._fold_intervals(scores)

    def _fold_sums(self, scores: Scores, metrics: dict[str, Any], known_pixels: int) -> None:
        tables = self._state.tables
        frame = scores.frame
        tables["counts"] += (frame.pixels, 1, known_pixels)
        tables["depth_sums"] += [frame.depth_sums[name] for name in DEPTH_SUMS]
        by_candidate = {"method": metrics["uncertainty"], **metrics["baselines"]}
        for place, name in enumerate(CANDIDATES):
            for row, area in enumerate(("ause", "aurg")):
                values = by_candidate[name][area]
                tables["areas"][place, row] += [values[statistic] for statistic in STATISTICS]
        for name in RANKED:
            sums = scores.candidates[name].sums
            tables[f"{name}.sums"] += [sums[item] for item in CANDIDATE_SUMS]
        tables["method.covered"] += list(scores.candidates["method"].covered.values())

    def _fold_errors(self, frame: Frame) -> None:
        tables = self._state.tables
        errors = frame.errors
        self._fold_extremes("error", frame.ascending_error)
        self._fold_single("error", ERROR, frame.ascending_error)
        self._fold_single("relative", RELATIVE, frame.ascending_relative)
        self._fold_single("factor", FACTOR, frame.ascending_factor)
        for block in blocks(frame.pixels):
            index = ERROR.index(errors.absolute[block])
            np.add.at(tables["error.count"], index, 1)
            np.add.at(tables["error.squared"], index, errors.squared[block])
            coarse = ERROR.coarse(index, ERROR_SUMS)
            np.add.at(tables["error.absolute"], coarse, errors.absolute[block])
            relative = RELATIVE.index(errors.relative[block])
            np.add.at(tables["relative.count"], relative, 1)
            np.add.at(tables["relative.relative"], relative, errors.relative[block])
            np.add.at(tables["factor.count"], FACTOR.index(errors.factor[block]), 1)

    def _fold_candidate(self, name: str, candidate: Candidate) -> None:
        ascending = candidate.ranking.ascending
        span = SIGMA[name].index(ascending[[0, -1]])
        self._state.widen_joint(name, span)
        self._fold_extremes(f"{name}.ratio", candidate.ascending_ratio)
        self._fold_single(f"{name}.sigma", SIGMA[name], ascending)
        for block in blocks(candidate.frame.pixels):
            self._fold_block(name, candidate, block)

    def _fold_block(self, name: str, candidate: Candidate, block: slice) -> None:
        tables = self._state.tables
        errors = candidate.frame.errors
        sigma = candidate.sigma[block]
        error = errors.absolute[block]
        sigma_index = SIGMA[name].index(sigma)
        np.add.at(tables[f"{name}.sigma.count"], sigma_index, 1)
        for item in STATISTIC_SUMS:
            np.add.at(tables[f"{name}.sigma.{item}"], sigma_index, getattr(errors, item)[block])
        ratio_index = RATIO[name].index(candidate.ratio[block])
        np.add.at(tables[f"{name}.ratio.count"], ratio_index, 1)
        coarse = RATIO[name].coarse(ratio_index, RATIO_SUMS[name])
        np.add.at(tables[f"{name}.ratio.sigma"], coarse, sigma)
        np.add.at(tables[f"{name}.ratio.error"], coarse, error)
        np.maximum.at(tables[f"{name}.ratio.max_error"], coarse, error)
        np.add.at(tables[f"{name}.error.sigma"], ERROR_SUMS.index(error), sigma)
        row = JOINT_SIGMA[name].row(sigma_index, tables[f"{name}.joint_span"][0])
        cell = row * JOINT_ERROR.number + JOINT_ERROR.index(error)
        np.add.at(tables[f"{name}.joint"].reshape(-1), cell, 1)

    def _fold_extremes(self, name: str, ascending: Floats) -> None:
        least = self._state.tables[f"{name}.least"]
        greatest = self._state.tables[f"{name}.greatest"]
        np.minimum(least, ascending[0], out=least)
        np.maximum(greatest, ascending[-1], out=greatest)

    def _fold_single(self, name: str, bins: Bins, ascending: Floats) -> None:
        table = self._state.tables[f"{name}.single"]
        place, values = single_values(bins, ascending)
        table[place] = join_single_values(table[place], values)

    def _fold_intervals(self, scores: Scores) -> None:
        state = self._state
        tables = state.tables
        place = state.intervals.index(scores.frame.ground_truth)
        number = state.intervals.number
        error = scores.frame.errors.absolute
        tables["interval.count"] += np.bincount(place, minlength=number)
        tables["interval.error"] += np.bincount(place, error, number)
        tables["interval.sigma"] += np.bincount(place, scores.frame.sigma, number)
        for name, values in (("error", error), ("ratio", scores.candidates["method"].ratio)):
            bins = state.interval_bins(name)
            index = bins.bins.index(values)
            state.widen_intervals(name, spans_of(index, place, number))
            cell = bins.cell(index, place, tables[f"interval.{name}_span"])
            np.add.at(tables[f"interval.{name}_bins"].reshape(-1), cell, 1)


def blocks(pixels: int) -> list[slice]:
    """Slices of at most `BLOCK` pixels."""
    return [slice(start, start + BLOCK) for start in range(0, pixels, BLOCK)]
