"""Every figure of a report in one pass over the pixels, in bounded memory, whatever their number.

Sums and counts are exact. Order statistics come from logarithmic bins (see `bins`), so against the exact functions on all pixels together:

- Depth errors, and coverage, AUCE and NLL of the method: equal to float64 rounding.
- `lambda_alpha` and `max_alpha`: within 2^-10 (1e-3) relative, for e / sigma in 2^-20 ... 2^20 (to 2^8 for the depth as sigma) and e in
  2^-24 ... 2^20 m. What lies below counts as 0, above as the largest seen. n-MeRCI is a quotient of differences of these, so its error is at most
  2^-10 (merci + |n| max_alpha) / |max_alpha - mae|; on smooth data it is a tenth of that, as ranks are interpolated within a bin.
- Trimmed n-MeRCI: besides, that of an alpha which differs by at most the share of the one bin that the threshold falls into.
- Pooled sparsification: the share kept at each fraction is off by at most the pixels of one bin of relative width 2^-9; groups of equal keys are
  recognised, and kept whole, where they hold 1/512 of all pixels and stand out fourfold from the bins beside them.
- AUCE of the baselines: the share covered is off by at most the pixels of one bin.
- Spearman: ranks are known to a bin. Sigma (2^-19 ... 2^12 m) and depth (2^-6 ... 2^9 m) have 256 of them over the octaves seen so far, the error 16
  in each octave of 2^-14 ... 2^6 m; beyond these ranges nothing is told apart, and a zero takes the finest bins from all the others. The arc cosine
  of the figure is off by at most acos(a) + acos(b), a^2 and b^2 being the shares of the variance of the two ranks that lie between bins. Measured:
  1e-3 for sigmas that spread by 8 % or more, 3e-3 for 2 %, 5e-3 where a third of the errors lie below 2^-14 m.
- n-MeRCI per depth interval: bins as fine as the memory allows, from 1/8 of an octave (800 intervals) to 1/64 (100 intervals); see `state`.
  By the default config, up to 6.4 % off in an interval of 1,700 pixels, 1.1 % in the median one.

Chunks of any size, at once, or merged in any order: counts are equal and sums agree to rounding. Only the per-image figures depend on what one
image is.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.interrupt import held_interrupt
from uncertainty_depth.metrics import pooled
from uncertainty_depth.metrics.arrays import NUMPY, Array, Arrays, arrays_of
from uncertainty_depth.metrics.bins import Bins
from uncertainty_depth.metrics.depth import valid_pixels
from uncertainty_depth.metrics.frame import PER_STATISTIC, STATISTICS, Frame, Scores
from uncertainty_depth.metrics.state import (
    EXTREMES,
    HISTOGRAMS,
    JOINT,
    JOINT_ERROR,
    SCALARS,
    Intervals,
    State,
    load_state,
    save_state,
)

BLOCK = 1 << 16
KEPT_BYTES = 24 << 20
"""glibc gives freed memory back to the system beyond twice the largest block it was ever asked to free. It would do so after every frame, and page
faults would take a third of the time: one block of this size, never touched, makes it keep what a frame needs."""
Spans = dict[str, tuple[float, float]]


class OnlineMetrics:
    """Accumulates all metrics of depth, its sigma and the two trivial baselines over any number of frames.

    The state is at most 8 MB. It lives where the data live: NumPy arrays, or the device of the torch tensors it is given.

    Attributes:
        config: what is scored, and how. States merge when their configs score the same.

    Raises:
        ConfigError: the config's limits are not finite, reversed, or hold more depth intervals than fit.
    """

    def __init__(self, config: EvaluationConfig = EvaluationConfig()) -> None:  # noqa: B008 (frozen)
        self.config = config
        self._intervals = Intervals.of(config)
        self._state = State(config)
        np.empty(KEPT_BYTES, dtype=np.uint8)  # freed at once: see KEPT_BYTES

    @property
    def pixels(self) -> int:
        """Pixels seen so far."""
        return int(self._state.small["counts"][0])

    @property
    def frames(self) -> int:
        """Frames with at least one valid pixel seen so far."""
        return int(self._state.small["counts"][1])

    @property
    def nbytes(self) -> int:
        """Size of the state."""
        return self._state.nbytes

    def update(self, depth: Array, sigma: Array, ground_truth: Array) -> dict[str, Any] | None:
        """Score one frame and fold it in.

        Args:
            depth: predicted depth of any shape, metres.
            sigma: predicted standard deviation, same shape, metres.
            ground_truth: same shape, metres, NaN where unknown.

        Returns:
            The exact figures of this frame, nested like `compute`; None where no pixel is valid.

        Raises:
            ValueError: the shapes differ.
        """
        xp = arrays_of(depth, sigma, ground_truth)
        valid = valid_pixels(
            depth, sigma, ground_truth, self.config.min_depth, self.config.max_depth
        )
        if not len(valid[0]):
            return None
        scores = Scores(Frame(xp, *valid))
        figures = scores.figures(self.config.alpha)
        with held_interrupt():
            self._fold(xp, scores, figures)
        return figures

    def merge(self, other: OnlineMetrics) -> None:
        """Add what another accumulator has seen.

        Raises:
            ValueError: the other one scores something else.
        """
        for name in ("min_depth", "max_depth", "depth_interval"):
            mine, its = getattr(self.config, name), getattr(other.config, name)
            if mine != its:
                raise ValueError(f"other has {name} {its}; expected {mine}, as here")
        self._state.merge(other._state)

    def compute(self) -> dict[str, Any]:
        """The nested mapping of `summary.json` over everything seen; NaN where nothing was."""
        return pooled.summary(self._state, self.config.alpha)

    def curves(self) -> dict[str, Any]:
        """The plain arrays behind the plots, see `pooled.curves`."""
        return pooled.curves(self._state, self._intervals, self.config.alpha)

    def reset(self) -> None:
        """Forget everything."""
        self._state = State(self.config)

    def save(self, path: str | os.PathLike) -> None:
        """Write the state, so that an interrupted evaluation can go on and parts evaluated apart can be merged."""
        save_state(self._state, self.config, path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> OnlineMetrics:
        """Read a saved state.

        Raises:
            SourceError: there is none at this path, or it is damaged or newer.
        """
        state, config = load_state(path)
        metrics = cls(config)
        metrics._state = state
        return metrics

    def _fold(self, xp: Arrays, scores: Scores, figures: dict[str, Any]) -> None:
        """Add a frame to counts, sums and tables, which agree only once all of it is done."""
        self._state.move(xp)
        self._fold_numbers(scores, figures)
        for name, window in JOINT.items():
            span = np.array(scores.spans[name])
            self._state.widen(name, window.bins.index(NUMPY, span, (0.0, math.inf)))
        self._fold_tables(scores)

    def _fold_numbers(self, scores: Scores, figures: dict[str, Any]) -> None:
        small, frame = self._state.small, scores.frame
        small["counts"] += (frame.pixels, 1)
        small["sums"] += [frame.sums[name] for name in SCALARS]
        small["covered"] += scores.method.covered
        for name, ranked in (("sigma_sums", scores.method), ("depth_sums", scores.proportional)):
            small[name] += (
                float(ranked.sigma.sum()),
                ranked.log_sum,
                ranked.squared_ratio_sum,
                *ranked.finite_squares,
            )
        scored = (figures["uncertainty"], *figures["baselines"].values())
        small["areas"] += [
            [[item[kind][name] for name in STATISTICS] for kind in PER_STATISTIC[:2]]
            for item in scored
        ]
        spans = np.array([scores.spans[name] for name in EXTREMES])
        small["least"] = np.minimum(small["least"], spans[:, 0])
        small["greatest"] = np.maximum(small["greatest"], spans[:, 1])

    def _fold_tables(self, scores: Scores) -> None:
        """Bin all pixels, a block at a time: what a block makes stays in the cache."""
        arrays = binned_arrays(scores)
        for start in range(0, scores.frame.pixels, BLOCK):
            self._fold_block(
                scores.frame.xp,
                {name: values[start : start + BLOCK] for name, values in arrays.items()},
                scores.spans,
            )

    def _fold_block(self, xp: Arrays, block: dict[str, Array], spans: Spans) -> None:
        index = {name: self._fold_values(xp, name, block, spans[name]) for name in HISTOGRAMS}
        rank = _coarse(xp, "error", index, JOINT_ERROR, spans)
        for name, window in JOINT.items():
            cell = _coarse(xp, name, index, window.bins, spans)
            cell >>= window.shift(self._state.span(name))
            cell &= window.rows - 1
            cell *= JOINT_ERROR.number
            cell += rank
            xp.add_at(self._state.tables[f"joint.{name}"], cell, 1)
        self._fold_intervals(xp, block, index, spans)

    def _fold_values(
        self, xp: Arrays, name: str, block: dict[str, Array], span: tuple[float, float]
    ) -> Array:
        """Add counts and sums to the bins of one quantity; the bins are returned."""
        (bins, sums), tables = HISTOGRAMS[name], self._state.tables
        index = bins.index(xp, block[name], span)
        xp.add_at(tables[f"{name}.count"], index, 1)
        for item in sums:
            if item == "max_error":
                xp.maximum_at(tables[f"{name}.{item}"], index, block["error"])
            else:
                xp.add_at(tables[f"{name}.{item}"], index, block[item])
        return index

    def _fold_intervals(
        self, xp: Arrays, block: dict[str, Array], index: dict[str, Array], spans: Spans
    ) -> None:
        tables, intervals = self._state.tables, self._intervals
        place = intervals.index(xp, block["ground_truth"])
        for name in ("error", "sigma"):
            xp.add_at(tables[f"interval.{name}"], place, block[name])
        for name, bins in (("error", intervals.error), ("ratio", intervals.ratio)):
            cell = _coarse(xp, name, index, bins, spans)
            cell += place * bins.number
            xp.add_at(tables[f"interval.{name}_bins"], cell, 1)


def binned_arrays(scores: Scores) -> dict[str, Array]:
    """Everything that is binned or summed in bins, by the names of `state.HISTOGRAMS`."""
    frame, errors = scores.frame, scores.frame.errors
    return {
        "error": errors.absolute,
        "squared": errors.squared,
        "relative": errors.relative,
        "factor": errors.factor,
        "inaccurate": errors.inaccurate,
        "sigma": frame.sigma,
        "depth": scores.proportional.sigma,
        "ratio": scores.method.ratio,
        "depth_ratio": scores.proportional.ratio,
        "ground_truth": frame.ground_truth,
    }


def _coarse(xp: Arrays, name: str, index: dict[str, Array], wanted: Bins, spans: Spans) -> Array:
    return HISTOGRAMS[name][0].coarse(xp, index[name], wanted, spans[name])
