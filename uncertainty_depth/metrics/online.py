# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Every metric in one pass over the pixels, in bounded memory, whatever their number.

Sums and counts are exact. Order statistics come from logarithmic bins (see `bins`), so pooled
metrics are off from the exact functions on all pixels together by bounds that docs/metrics.md
states and the tests hold. Chunks of any size, at once, or merged in any order: counts are equal
and sums agree to rounding. Only the per-image metrics depend on what one image is.
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
from uncertainty_depth.metrics.candidate import Candidate, candidates, frame_metrics
from uncertainty_depth.metrics.depth import pixels_with_ground_truth, predicted_pixels
from uncertainty_depth.metrics.fold import fold_areas, fold_candidate, fold_errors
from uncertainty_depth.metrics.sorted_pixels import SortedPixels
from uncertainty_depth.metrics.state import (
    State,
    from_arrays,
    load_state,
    save_state,
    to_arrays,
)
from uncertainty_depth.options import changed, takes_options

HEAP_RESERVE_BYTES = 24 << 20
"""glibc returns freed memory beyond twice the largest block it was ever asked to free. It would
do so after every frame, and page faults would take a third of the time: one block of this size,
never touched, makes it keep what a frame needs."""


class OnlineMetrics:
    """Accumulates all metrics of depth, its sigma and the trivial baselines over any frames.

    The state is at most 8 MB; besides, `update` needs 0.2 kB for each scored pixel of its frame.

    Args:
        config: what is scored, and how.
        **options: of `EvaluationConfig`, in place of the config's, e.g. `max_depth=10`.

    Attributes:
        config: what is scored, and how. States merge when their configs score the same.

    Raises:
        ConfigError: an option is unknown, the limits are not finite, reversed, or hold more depth
            intervals than fit.
        ValueError: alpha is out of range.

    Examples:
        >>> online = OnlineMetrics(max_depth=10)
        >>> frame = online.update(depth=[2.0, 3.0], sigma=[0.5, 0.5], ground_truth=[2.0, 4.0])
        >>> online.compute()["depth"]["mae"]
        0.5
    """

    @takes_options(EvaluationConfig)
    def __init__(
        self,
        config: EvaluationConfig = EvaluationConfig(),  # noqa: B008  frozen
        **options: Any,
    ) -> None:
        config = changed(config, options)
        checks.fraction("alpha", config.alpha)
        self.config = config
        self._state = State(config)
        np.empty(HEAP_RESERVE_BYTES, dtype=np.uint8)  # freed at once: see HEAP_RESERVE_BYTES

    @property
    def pixels(self) -> int:
        """Number of pixels scored so far."""
        return int(self._state.tables["counts"][0])

    @property
    def frames(self) -> int:
        """Number of frames with at least one valid pixel so far."""
        return int(self._state.tables["counts"][1])

    @property
    def nbytes(self) -> int:
        """Size of the state, bytes."""
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
            ValueError: the shapes differ, or an argument is not an array of numbers.
        """
        limits = self.config.min_depth, self.config.max_depth
        maps_with_truth = pixels_with_ground_truth(depth, sigma, ground_truth, *limits)
        valid = predicted_pixels(*maps_with_truth)
        known_pixels = len(maps_with_truth[0])
        del maps_with_truth
        depth, sigma, ground_truth = map(as_floats, valid)
        return self.update_pixels(depth, sigma, ground_truth, known_pixels)

    def update_pixels(
        self, depth: Floats, sigma: Floats, ground_truth: Floats, known_pixels: int
    ) -> dict[str, Any] | None:
        """Score the selected pixels of one frame and fold them in; `update` selects them itself.

        Args:
            depth: (N,) finite, metres.
            sigma: (N,) finite and not negative, metres.
            ground_truth: (N,) within the limits of the config, metres.
            known_pixels: number of pixels with such a ground truth, with or without a prediction.

        Returns:
            As `update`; None for N = 0.
        """
        if not len(depth):
            self._state.tables["counts"][2] += known_pixels
            return None
        frame = SortedPixels(depth, sigma, ground_truth, self.config.alpha)
        with held_interrupt():
            return self._fold(frame, known_pixels)

    def merge(self, other: OnlineMetrics) -> None:
        """Add the frames of another accumulator.

        Raises:
            ValueError: the other one scores something else.
        """
        for name in ("min_depth", "max_depth", "depth_bin_width"):
            value = getattr(self.config, name)
            other_value = getattr(other.config, name)
            if value != other_value:
                raise ValueError(f"other has {name} {other_value}; expected {value}, as here")
        self._state.merge(other._state)

    def compute(self) -> dict[str, Any]:
        """Return the nested mapping of `summary.json` over all frames; NaN without pixels."""
        return pooled.summary(self._state, self.config.alpha)

    def curves(self) -> dict[str, Any]:
        """Return the plain arrays behind the plots, see `plot_curves.curves`."""
        return plot_curves.curves(self._state, self.config.alpha)

    def reset(self) -> None:
        """Discard all frames."""
        self._state = State(self.config)

    def save(self, path: str | os.PathLike) -> None:
        """Write the state, to continue later or to merge partial evaluations."""
        save_state(self._state, self.config, path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> OnlineMetrics:
        """Read a saved state.

        Raises:
            SourceError: the file is missing, damaged or of another format.
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

    def _fold(self, frame: SortedPixels, known_pixels: int) -> dict[str, Any]:
        """Score a frame and add it to the tables, which agree only once all of it is done.

        One candidate at a time, so that the arrays of the others take no memory.
        """
        state = self._state
        state.tables["counts"] += (frame.pixels, 1, known_pixels)
        error_bins = fold_errors(state, frame)
        by_candidate = {}
        for name, candidate in candidates(frame):
            by_candidate[name] = candidate.metrics()
            fold_areas(state, name, by_candidate[name])
            if isinstance(candidate, Candidate):
                fold_candidate(state, name, candidate, error_bins)
            del candidate
        return frame_metrics(frame, by_candidate, frame.pixels / known_pixels)
