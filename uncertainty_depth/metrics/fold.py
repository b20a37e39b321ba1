# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What one frame adds to the tables of `OnlineMetrics`.

Values are binned in the order that they were sorted in: neighbours share a bin, so the tables are
walked through from one end to the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.metrics.arrays import Floats, Integers, group_starts
from uncertainty_depth.metrics.baselines import CANDIDATES
from uncertainty_depth.metrics.bins import Bins, join_single_values
from uncertainty_depth.metrics.candidate import Candidate
from uncertainty_depth.metrics.frame import STATISTICS, Frame
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
    STATISTIC_SUMS,
    State,
)


class ErrorBins(NamedTuple):
    """Bins of a frame's errors, for the tables that the candidates add to.

    Attributes:
        groups: (G,) bins of `ERROR_SUMS` that hold an error, ascending.
        starts: (G,) the first pixel in each.
        columns: (N,) column of each pixel in the joint histograms.
    """

    groups: Integers
    starts: Integers
    columns: Integers


def fold_errors(state: State, frame: Frame) -> ErrorBins:
    """Add the sums and histograms of the depth errors."""
    tables = state.tables
    tables["depth_sums"] += [frame.depth_sums[name] for name in DEPTH_SUMS]
    relative = frame.ascending_relative
    groups, starts = _fold_sorted(tables, "relative", RELATIVE, relative)
    tables["relative.relative"][groups] += np.add.reduceat(relative, starts)
    _fold_sorted(tables, "factor", FACTOR, frame.ascending_factor)
    _fold_extremes(tables, "error", frame.error)
    groups, starts = _fold_sorted(tables, "error", ERROR, frame.error)
    squared = frame.statistic_values[STATISTICS.index("rmse")]
    tables["error.squared"][groups] += np.add.reduceat(squared, starts)
    coarse = ERROR.coarse(groups, ERROR_SUMS)
    first = group_starts(coarse)
    bins = ErrorBins(coarse[first], starts[first], JOINT_ERROR.index(frame.error))
    tables["error.absolute"][bins.groups] += np.add.reduceat(frame.error, bins.starts)
    return bins


def fold_areas(state: State, name: str, metrics: dict[str, Any]) -> None:
    """Add the areas of one candidate, whose mean over the frames is reported."""
    table = state.tables["areas"][CANDIDATES.index(name)]
    table += [[metrics[area][item] for item in STATISTICS] for area in ("ause", "aurg")]


def fold_candidate(state: State, name: str, candidate: Candidate, errors: ErrorBins) -> None:
    """Add the sums and histograms of a candidate that has an order of its own."""
    tables = state.tables
    tables[f"{name}.sums"] += [candidate.sums[item] for item in CANDIDATE_SUMS]
    _fold_sigma(state, name, candidate, errors.columns)
    sigma_sums = np.add.reduceat(candidate.sigma, errors.starts)
    tables[f"{name}.error.sigma"][errors.groups] += sigma_sums
    ratio_index = RATIO[name].index(candidate.ratio)
    _fold_ratio(tables, name, candidate, ratio_index)
    if name == "method":
        tables["method.covered"] += list(candidate.covered.values())
        tables["method.scores"] += list(candidate.scores.values())
        _fold_intervals(state, candidate.frame, ratio_index)


def _fold_sigma(state: State, name: str, candidate: Candidate, columns: Integers) -> None:
    tables = state.tables
    ranking = candidate.ranking
    groups, starts = _fold_sorted(tables, f"{name}.sigma", SIGMA[name], ranking.ascending)
    counts = np.append(starts[1:], len(columns)) - starts
    for item, values in zip(STATISTIC_SUMS, candidate.ranked_values, strict=True):
        tables[f"{name}.sigma.{item}"][groups] += np.add.reduceat(values, starts)
    state.widen_joint(name, groups[[0, -1]])
    row = JOINT_SIGMA[name].row(groups, tables[f"{name}.joint_span"][0])
    cell = columns.take(ranking.order)
    cell += np.repeat(row * JOINT_ERROR.number, counts)
    np.add.at(tables[f"{name}.joint"].reshape(-1), cell, 1)


def _fold_ratio(
    tables: dict[str, NDArray], name: str, candidate: Candidate, index: Integers
) -> None:
    _fold_extremes(tables, f"{name}.ratio", candidate.ascending_ratio)
    np.add.at(tables[f"{name}.ratio.count"], index, 1)
    coarse = RATIO[name].coarse(index, RATIO_SUMS[name])
    np.add.at(tables[f"{name}.ratio.sigma"], coarse, candidate.sigma)
    np.add.at(tables[f"{name}.ratio.error"], coarse, candidate.frame.error)
    np.maximum.at(tables[f"{name}.ratio.max_error"], coarse, candidate.frame.error)


def _fold_intervals(state: State, frame: Frame, ratio_index: Integers) -> None:
    tables = state.tables
    place = state.intervals.index(frame.ground_truth)
    number = state.intervals.number
    tables["interval.count"] += np.bincount(place, minlength=number)
    tables["interval.error"] += np.bincount(place, frame.error, number)
    tables["interval.sigma"] += np.bincount(place, frame.sigma, number)
    for name, index in (("error", ERROR.index(frame.error)), ("ratio", ratio_index)):
        state.widen_intervals(name, index, place)
        cell = state.interval_bins(name).cell(index, place, tables[f"interval.{name}_span"])
        np.add.at(tables[f"interval.{name}_bins"].reshape(-1), cell, 1)


def _fold_sorted(
    tables: dict[str, NDArray], name: str, bins: Bins, ascending: Floats
) -> tuple[Integers, Integers]:
    """Count sorted values, and note the bins whose values are all equal.

    Returns:
        The bins that hold a value, ascending, and the first value in each, (G,) each.
    """
    index = bins.index(ascending)
    starts = group_starts(index)
    ends = np.append(starts[1:], len(index))
    groups = index[starts]
    tables[f"{name}.count"][groups] += ends - starts
    table = tables[f"{name}.single"]
    is_single = ~np.isnan(table[groups])  # the others hold several values already
    places = groups[is_single]
    first = ascending[starts[is_single]]
    last = ascending[ends[is_single] - 1]
    single = np.where(first == last, first, np.nan)
    table[places] = join_single_values(table[places], single)
    return groups, starts


def _fold_extremes(tables: dict[str, NDArray], name: str, ascending: Floats) -> None:
    lowest = tables[f"{name}.least"]
    highest = tables[f"{name}.greatest"]
    np.minimum(lowest, ascending[0], out=lowest)
    np.maximum(highest, ascending[-1], out=highest)
