# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What one frame adds to the tables of `OnlineMetrics`.

A pass over the pixels of a frame takes longer than any of the arithmetic in it, so each quantity
is binned once, in the order of the frame, and its bins serve all tables.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.metrics.arrays import Floats, Integers
from uncertainty_depth.metrics.baselines import CANDIDATES
from uncertainty_depth.metrics.bins import EMPTY, Bins
from uncertainty_depth.metrics.candidate import Candidate
from uncertainty_depth.metrics.sorted_pixels import STATISTICS, SortedPixels
from uncertainty_depth.metrics.state import (
    CANDIDATE_SUMS,
    DEPTH_SUMS,
    ERROR,
    ERROR_SUMS,
    FACTOR,
    JOINT_ERROR,
    JOINT_SIGMA,
    RATIO,
    RATIO_SUMS,
    RELATIVE,
    SIGMA,
    State,
)


class ErrorBins(NamedTuple):
    """Bins of a frame's errors, for the tables that the candidates add to.

    Attributes:
        bins: (N,) bin of `ERROR` of each pixel.
        coarse: (N,) bin of `ERROR_SUMS` of each pixel.
        columns: (N,) column of each pixel in the joint histograms.
        inaccurate: the pixels outside the factor 1.25, mostly few.
    """

    bins: Integers
    coarse: Integers
    columns: Integers
    inaccurate: Integers


def fold_errors(state: State, frame: SortedPixels) -> ErrorBins:
    """Add the sums and histograms of the depth errors."""
    tables = state.tables
    tables["depth_sums"] += [frame.depth_sums[name] for name in DEPTH_SUMS]
    relative, squared, inaccurate = frame.statistic_values
    index = _fold_values(tables, "relative", RELATIVE, relative)
    np.add.at(tables["relative.relative"], index, relative)
    _fold_values(tables, "factor", FACTOR, frame.ascending_factor)
    _fold_extremes(tables, "error", (frame.error[0], frame.error[-1]))
    index = _fold_values(tables, "error", ERROR, frame.error)
    np.add.at(tables["error.squared"], index, squared)
    coarse = ERROR.coarse(index, ERROR_SUMS)
    np.add.at(tables["error.absolute"], coarse, frame.error)
    columns = ERROR.coarse(index, JOINT_ERROR)
    return ErrorBins(index, coarse, columns, np.flatnonzero(inaccurate))


def fold_areas(state: State, name: str, metrics: dict[str, Any]) -> None:
    """Add the areas of one candidate, whose mean over the frames is reported."""
    table = state.tables["areas"][CANDIDATES.index(name)]
    table[0] += [metrics["ause"][item] for item in STATISTICS]
    table[1] += [metrics["aurg"][item] for item in STATISTICS]


def fold_candidate(state: State, name: str, candidate: Candidate, errors: ErrorBins) -> None:
    """Add the sums and histograms of a candidate that has an order of its own."""
    tables = state.tables
    tables[f"{name}.sums"] += [candidate.sums[item] for item in CANDIDATE_SUMS]
    _fold_sigma(state, name, candidate, errors)
    np.add.at(tables[f"{name}.error.sigma"], errors.coarse, candidate.sigma)
    ratio_index = RATIO[name].index(candidate.ratio)
    _fold_ratio(tables, name, candidate, ratio_index)
    if name == "method":
        tables["method.covered"] += list(candidate.covered.values())
        tables["method.scores"] += list(candidate.scores.values())
        _fold_intervals(state, candidate.frame, errors.bins, ratio_index)


def _fold_sigma(state: State, name: str, candidate: Candidate, errors: ErrorBins) -> None:
    tables = state.tables
    bins = SIGMA[name]
    index = _fold_values(tables, f"{name}.sigma", bins, candidate.sigma)
    relative, squared, _ = candidate.frame.statistic_values
    np.add.at(tables[f"{name}.sigma.relative"], index, relative)
    np.add.at(tables[f"{name}.sigma.squared"], index, squared)
    np.add.at(tables[f"{name}.sigma.inaccurate"], index.take(errors.inaccurate), 1.0)
    state.widen_joint(name, bins.index(candidate.sigma_span))
    cell = JOINT_SIGMA[name].row(index, tables[f"{name}.joint_span"][0])
    cell *= JOINT_ERROR.number
    cell += errors.columns
    np.add.at(tables[f"{name}.joint"].reshape(-1), cell, 1)


def _fold_ratio(
    tables: dict[str, NDArray], name: str, candidate: Candidate, index: Integers
) -> None:
    _fold_extremes(tables, f"{name}.ratio", candidate.ratio_span)
    np.add.at(tables[f"{name}.ratio.count"], index, 1)
    coarse = RATIO[name].coarse(index, RATIO_SUMS[name])
    error = candidate.frame.error
    np.add.at(tables[f"{name}.ratio.sigma"], coarse, candidate.sigma)
    np.add.at(tables[f"{name}.ratio.error"], coarse, error)
    max_error = tables[f"{name}.ratio.max_error"]
    frame_max = np.zeros_like(max_error)
    frame_max[coarse] = error  # errors ascend, and of several in a bin the last is kept
    np.maximum(max_error, frame_max, out=max_error)


def _fold_intervals(
    state: State, frame: SortedPixels, error_index: Integers, ratio_index: Integers
) -> None:
    tables = state.tables
    place = state.intervals.index(frame.ground_truth)
    number = state.intervals.number
    tables["interval.count"] += np.bincount(place, minlength=number)
    tables["interval.error"] += np.bincount(place, frame.error, number)
    tables["interval.sigma"] += np.bincount(place, frame.sigma, number)
    for name, index in (("error", error_index), ("ratio", ratio_index)):
        state.widen_intervals(name, index, place)
        cell = state.interval_bins(name).cell(index, place, tables[f"interval.{name}_span"])
        np.add.at(tables[f"interval.{name}_bins"].reshape(-1), cell, 1)


def _fold_values(tables: dict[str, NDArray], name: str, bins: Bins, values: Floats) -> Integers:
    """Count values, note the bins whose values are all equal, and return the bin of each value."""
    index = bins.index(values)
    np.add.at(tables[f"{name}.count"], index, 1)
    single = tables[f"{name}.single"]
    single_values = single.take(index)
    undecided = np.flatnonzero(single_values == single_values)  # NaN: several values
    if len(undecided):
        _note_singles(single, index[undecided], values[undecided])
    return index


def _note_singles(single: Floats, places: Integers, values: Floats) -> None:
    """Note the value of bins that were empty, and NaN where two values of a bin differ."""
    is_first = single[places] == EMPTY
    single[places[is_first]] = values[is_first]
    single[places[single[places] != values]] = np.nan


def _fold_extremes(tables: dict[str, NDArray], name: str, span: tuple[float, float]) -> None:
    lowest = tables[f"{name}.least"]
    highest = tables[f"{name}.greatest"]
    np.minimum(lowest, span[0], out=lowest)
    np.maximum(highest, span[1], out=highest)
