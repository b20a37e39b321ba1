# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The bounded state of `OnlineMetrics`: tables of fixed size that can be merged and saved."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth import atomic
from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.errors import SourceError
from uncertainty_depth.metrics.arrays import Integers
from uncertainty_depth.metrics.baselines import CANDIDATES
from uncertainty_depth.metrics.bins import EMPTY, Bins, Window, join_single_values
from uncertainty_depth.metrics.distributions import CONFIDENCE_LEVELS, DISTRIBUTIONS
from uncertainty_depth.metrics.interval_bins import (
    EMPTY_SPAN,
    IntervalBins,
    Intervals,
    spans_of,
    widest,
)
from uncertainty_depth.metrics.proper_scores import ScoreSums
from uncertainty_depth.metrics.sorted_pixels import STATISTICS
from uncertainty_depth.options import from_mapping, to_mapping

FORMAT = 4
ERROR = Bins(-20, 12, 10)
ERROR_SUMS = Bins(-20, 12, 8)
"""Coarser: within a cut bin, sums are in proportion to counts."""
RELATIVE = Bins(-20, 12, 9)
FACTOR = Bins(0, 24, 9)
RANKED = ("method", "proportional_to_depth", "proportional_to_depth_noisy")
"""The candidates that have an order of their own: a constant sigma has none."""
_DEPTH_SIGMA = Bins(-8, 14, 9)
_DEPTH_RATIO = Bins(-20, 8, 10)
SIGMA = dict(zip(RANKED, (Bins(-20, 12, 9), _DEPTH_SIGMA, _DEPTH_SIGMA), strict=True))
RATIO = dict(zip(RANKED, (Bins(-20, 20, 10), _DEPTH_RATIO, _DEPTH_RATIO), strict=True))
RATIO_SUMS = {name: Bins(bins.low, bins.high, 8) for name, bins in RATIO.items()}
JOINT_ERROR = Bins(-13, 7, 4)
JOINT_SIGMA = {name: Window(bins, 128) for name, bins in SIGMA.items()}
"""Columns and rows of the joint histograms of error and sigma."""
INTERVAL_BINS = {"error": ERROR, "ratio": RATIO["method"]}

DEPTH_SUMS = (
    "mae",
    "abs_rel",
    "sq_rel",
    "squared",
    "log",
    "squared_log",
    "inverse",
    "squared_inverse",
    "a1",
    "a2",
    "a3",
)
CANDIDATE_SUMS = ("sigma", "log_sigma", "finite", *DISTRIBUTIONS)
STATISTIC_SUMS = ("relative", "squared", "inaccurate")
"""Sums, in the order of sigma, that the pooled sparsification curves are made of."""
COUNTS = ("pixels", "frames", "ground_truth_pixels")
Layout = dict[str, tuple[tuple[int, ...], float]]


def layout(config: EvaluationConfig) -> Layout:
    """Return shape and empty value of every table, whose dtype is that of the value."""
    tables: Layout = {
        "counts": ((len(COUNTS),), 0),
        "depth_sums": ((len(DEPTH_SUMS),), 0.0),
        "areas": ((len(CANDIDATES), 2, len(STATISTICS)), 0.0),
        "error.count": ((ERROR.number,), 0),
        "error.squared": ((ERROR.number,), 0.0),
        "error.single": ((ERROR.number,), EMPTY),
        "error.absolute": ((ERROR_SUMS.number,), 0.0),
        "error.least": ((1,), np.inf),
        "error.greatest": ((1,), -np.inf),
        "relative.count": ((RELATIVE.number,), 0),
        "relative.single": ((RELATIVE.number,), EMPTY),
        "relative.relative": ((RELATIVE.number,), 0.0),
        "factor.count": ((FACTOR.number,), 0),
        "factor.single": ((FACTOR.number,), EMPTY),
    }
    tables.update(_interval_layout(Intervals.of(config)))
    for candidate in RANKED:
        tables.update(_candidate_layout(candidate))
    return tables


def _interval_layout(intervals: Intervals) -> Layout:
    tables: Layout = {
        "interval.count": ((intervals.number,), 0),
        "interval.error": ((intervals.number,), 0.0),
        "interval.sigma": ((intervals.number,), 0.0),
    }
    for name in INTERVAL_BINS:
        tables[f"interval.{name}_bins"] = ((intervals.number, intervals.cells), 0)
        tables[f"interval.{name}_span"] = ((intervals.number, 2), EMPTY_SPAN)
    return tables


def _candidate_layout(candidate: str) -> Layout:
    sigma = (SIGMA[candidate].number,)
    ratio_sums = (RATIO_SUMS[candidate].number,)
    tables: Layout = {
        "sums": ((len(CANDIDATE_SUMS),), 0.0),
        "sigma.count": (sigma, 0),
        "sigma.single": (sigma, EMPTY),
        **{f"sigma.{name}": (sigma, 0.0) for name in STATISTIC_SUMS},
        "ratio.count": ((RATIO[candidate].number,), 0),
        "ratio.sigma": (ratio_sums, 0.0),
        "ratio.error": (ratio_sums, 0.0),
        "ratio.max_error": (ratio_sums, 0.0),
        "ratio.least": ((1,), np.inf),
        "ratio.greatest": ((1,), -np.inf),
        "error.sigma": ((ERROR_SUMS.number,), 0.0),
        "joint": ((JOINT_SIGMA[candidate].rows, JOINT_ERROR.number), 0),
        "joint_span": ((1, 2), EMPTY_SPAN),
    }
    if candidate == "method":
        tables["covered"] = ((len(DISTRIBUTIONS), len(CONFIDENCE_LEVELS)), 0)
        tables["scores"] = ((len(DISTRIBUTIONS), len(ScoreSums._fields)), 0.0)
    return {f"{candidate}.{name}": table for name, table in tables.items()}


def joined(name: str) -> Callable[[NDArray, NDArray], NDArray]:
    """Return how two tables of this name are merged."""
    rules: dict[str, Callable[[NDArray, NDArray], NDArray]] = {
        "least": np.minimum,
        "greatest": np.maximum,
        "max_error": np.maximum,
        "single": join_single_values,
        "interval.error_span": widest,
        "interval.ratio_span": widest,
        "joint_span": widest,
    }
    matching = [rule for ending, rule in rules.items() if name.endswith(ending)]
    return matching[0] if matching else np.add


class State:
    """The tables of all frames so far.

    Attributes:
        tables: arrays by name, see `layout`.
        intervals: the depth intervals.
    """

    def __init__(self, config: EvaluationConfig) -> None:
        self.intervals = Intervals.of(config)
        self.tables: dict[str, NDArray] = {
            name: np.full(shape, value) for name, (shape, value) in layout(config).items()
        }

    @property
    def nbytes(self) -> int:
        """Memory of all tables."""
        return sum(table.nbytes for table in self.tables.values())

    def interval_bins(self, name: str) -> IntervalBins:
        """Return the rows of "error" or of "ratio"."""
        return IntervalBins(INTERVAL_BINS[name], self.intervals.cells)

    def widen_joint(self, candidate: str, span: Integers) -> None:
        """Make room for the bins of a span, (2,), in a joint histogram."""
        spans = self.tables[f"{candidate}.joint_span"]
        if spans[0, 0] <= span[0] and span[1] <= spans[0, 1]:
            return
        wider = widest(spans, span[None])
        window = JOINT_SIGMA[candidate]
        is_filled = spans[0, 1] != EMPTY_SPAN
        if is_filled and window.shift(spans[0]) != window.shift(wider[0]):
            table = self.tables[f"{candidate}.joint"]
            self.tables[f"{candidate}.joint"] = window.widened(table, spans[0], wider[0])
        self.tables[f"{candidate}.joint_span"] = wider

    def widen_intervals(self, name: str, index: Integers, place: Integers) -> None:
        """Make room for pixels in the rows of "error" or "ratio", by their bins and intervals."""
        low, high = self.tables[f"interval.{name}_span"].T.copy()
        outside = np.flatnonzero((index < low.take(place)) | (index > high.take(place)))
        if len(outside):
            spans = spans_of(index[outside], place[outside], self.intervals.number)
            self._widen_interval_spans(name, spans)

    def _widen_interval_spans(self, name: str, spans: Integers) -> None:
        old = self.tables[f"interval.{name}_span"]
        wider = widest(old, spans)
        table = self.tables[f"interval.{name}_bins"]
        widened = self.interval_bins(name).widened(table, old, wider)
        self.tables[f"interval.{name}_bins"] = widened
        self.tables[f"interval.{name}_span"] = wider

    def merge(self, other: State) -> None:
        """Add the tables of another state."""
        aligned = other.copy()
        for first, second in ((self, aligned), (aligned, self)):
            for candidate in RANKED:
                span = second.tables[f"{candidate}.joint_span"][0]
                if span[1] != EMPTY_SPAN:
                    first.widen_joint(candidate, span)
            for name in INTERVAL_BINS:
                spans = second.tables[f"interval.{name}_span"]
                first._widen_interval_spans(name, spans)
        for name, table in self.tables.items():
            self.tables[name] = joined(name)(table, aligned.tables[name])

    def copy(self) -> State:
        """Return a new state that shares these tables until it replaces them."""
        result = State.__new__(State)
        result.intervals = self.intervals
        result.tables = dict(self.tables)
        return result


def to_arrays(state: State, config: EvaluationConfig) -> dict[str, NDArray]:
    """Return the tables of a state, and its config as JSON under "header"."""
    options = to_mapping(config)  # of a node: more than the evaluation's own
    own = {item.name: options[item.name] for item in fields(EvaluationConfig)}
    header = json.dumps({"format": FORMAT, "config": own})
    return {"header": np.array(header), **state.tables}


def from_arrays(
    arrays: Mapping[str, NDArray], path: str | os.PathLike
) -> tuple[State, EvaluationConfig]:
    """Return the state and the config that `to_arrays` gave; `path` is where they were read from.

    Raises:
        SourceError: they are of another format. Whatever else is raised means that they are
            damaged.
    """
    header = json.loads(str(arrays["header"]))
    _check_format(path, header["format"])
    config = from_mapping(EvaluationConfig, header["config"])
    state = State(config)
    state.tables = {name: _same(name, arrays[name], like) for name, like in state.tables.items()}
    return state, config


def save_state(state: State, config: EvaluationConfig, path: str | os.PathLike) -> None:
    """Write a state to an `.npz` of plain numbers, with its config as JSON, in one step."""
    tables: dict[str, Any] = to_arrays(state, config)
    with atomic.replacing(os.fspath(path)) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **tables)


def load_state(path: str | os.PathLike) -> tuple[State, EvaluationConfig]:
    """Read what `save_state` wrote; nothing in the file is executed.

    Raises:
        SourceError: the file is missing, damaged, of another format, or not such a state.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return from_arrays(file, path)
    except FileNotFoundError as error:
        raise SourceError(f"{path} does not exist; expected a saved metrics state") from error
    except SourceError:
        raise
    # Whatever the parsers of zip, deflate, npy and JSON raise at damaged bytes.
    except Exception as error:
        raise SourceError(
            f"{path} is not a complete metrics state ({error}); expected a file written by "
            "OnlineMetrics.save"
        ) from error


def _check_format(path: str | os.PathLike, number: int) -> None:
    if number == FORMAT:
        return
    reason = (
        "it was written by a newer version"
        if number > FORMAT
        else "an older version wrote it, evaluate again"
    )
    raise SourceError(f"{path} has format {number}; expected {FORMAT}: {reason}")


def _same(name: str, value: NDArray, like: NDArray) -> NDArray:
    if value.shape != like.shape or value.dtype != like.dtype:
        raise ValueError(
            f"{name} is {value.dtype} of shape {value.shape}; expected {like.dtype} of shape "
            f"{like.shape}"
        )
    return value
