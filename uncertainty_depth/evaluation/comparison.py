# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Compare reports frame by frame: metrics over the frames that all of them scored.

Each frame of one report is paired with the same frame of the others, by stamp. Differences to the
first report have intervals by a block bootstrap that draws the same frames for every report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.evaluation.bootstrap import Bootstrap, Interval
from uncertainty_depth.evaluation.merging import SavedReport, check_same_config
from uncertainty_depth.evaluation.summary import HIGHER_IS_BETTER
from uncertainty_depth.metrics.sparsification_variants import POGGI

Floats = NDArray[np.float64]
Frame = tuple[int, int]
"""Stamp, nanoseconds, and how many frames with this stamp came before."""

ROOTS = ("depth.rmse", "depth.rmse_log", "depth.irmse")
"""Roots of means over pixels: their squares are averaged."""
SIZE_METRICS = ("coverage_68", "coverage_95", "nll", "crps", "interval_score_95", "mpiw_95")
PIXEL_MEANS = (
    "depth.mae",
    "depth.abs_rel",
    "depth.sq_rel",
    "depth.imae",
    "depth.a1",
    "depth.a2",
    "depth.a3",
    *(f"uncertainty.{name}" for name in SIZE_METRICS),
    *(f"uncertainty.{name}_laplace" for name in SIZE_METRICS),
)
FRAME_MEANS = (
    *(f"uncertainty.ause.{statistic}" for statistic in POGGI.errors),
    *(f"uncertainty.aurg.{statistic}" for statistic in POGGI.errors),
    "uncertainty.auce",
    "uncertainty.auce_laplace",
    "uncertainty.n_merci",
    "uncertainty.n_merci_withdrawn",
    "uncertainty.spearman",
)
"""Means over images. AUCE, n-MeRCI and Spearman of a report are those of all pixels together."""
METRICS = (*ROOTS, *PIXEL_MEANS, *FRAME_MEANS)
NEITHER = ("coverage", "mpiw")
"""Metrics that are neither better low nor better high."""
ACCURACIES = ("depth.a1", "depth.a2", "depth.a3")
WORST_BY = "depth.abs_rel"


@dataclass(frozen=True)
class Row:
    """One metric over the common frames.

    Attributes:
        name: dotted name.
        values: of each report, with its interval.
        differences: to the first report, of each of the others.
        frames: common frames in which every report has the metric.
    """

    name: str
    values: tuple[Interval, ...]
    differences: tuple[Interval, ...]
    frames: int

    def outcome(self, index: int) -> str:
        """Return "better", "worse" or "" where the interval of a difference holds zero."""
        difference = self.differences[index]
        short = self.name.removeprefix("uncertainty.")
        excludes_zero = difference.low > 0 or difference.high < 0
        if short.startswith(NEITHER) or not excludes_zero:
            return ""
        is_high_better = short.startswith(HIGHER_IS_BETTER) or short in ACCURACIES
        return "better" if (difference.value > 0) == is_high_better else "worse"


@dataclass(frozen=True)
class FrameRow:
    """A frame on which one report is worst: its name, and the metric in each report."""

    frame: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`.

    Attributes:
        reports: in the order given; the first is the reference.
        names: a different name for each.
        rows: every metric over the common frames.
        worst: for each report its worst frames, by `WORST_BY`.
        series: (reports, frames) `WORST_BY` of the common frames, in the order of the first.
        blocks: blocks of frames that the intervals are based on.
        notes: what limits the comparison.
    """

    reports: tuple[SavedReport, ...]
    names: tuple[str, ...]
    rows: tuple[Row, ...]
    worst: tuple[tuple[FrameRow, ...], ...]
    series: Floats
    blocks: int
    notes: tuple[str, ...]


def compare(reports: Sequence[SavedReport], worst_frames: int = 5) -> Comparison:
    """Return the comparison of two or more reports.

    Args:
        reports: the first is the one that the others are compared with.
        worst_frames: how many to list of each report.

    Raises:
        ConfigError: there are fewer than two, or they were scored with other options.
        SourceError: they have no frame in common.
    """
    if len(reports) < 2:
        raise ConfigError(f"{len(reports)} report is given; expected two or more to compare")
    for report in reports[1:]:
        check_same_config(reports[0], report)
    tables = [_by_frame(report) for report in reports]
    in_all = set(tables[0]).intersection(*tables[1:])
    common = [key for key in tables[0] if key in in_all]
    names = _names(reports)
    if not common:
        raise SourceError(
            f"{names[0]} and {names[1]} have no frame with the same stamp; expected reports of "
            "the same frames"
        )
    paired = [list(map(table.__getitem__, common)) for table in tables]
    pixels = _column(paired, "pixels")
    series = _column(paired, WORST_BY)
    bootstrap = Bootstrap(_units(paired, pixels), _column(paired, "depth.mae")[0])
    rows = tuple(_row(name, bootstrap, paired) for name in METRICS)
    worst = tuple(_worst(paired, series, index, worst_frames) for index in range(len(reports)))
    notes = tuple(_notes(reports, names, tables, common, pixels))
    return Comparison(tuple(reports), names, rows, worst, series, bootstrap.blocks, notes)


def _by_frame(report: SavedReport) -> dict[Frame, dict[str, str]]:
    repeats: Counter[int] = Counter()
    frames = {}
    for row in report.evaluation.table.rows().dicts():
        stamp_ns = int(row["stamp_ns"])
        frames[stamp_ns, repeats[stamp_ns]] = row
        repeats[stamp_ns] += 1
    return frames


def _column(paired: Sequence[Sequence[dict[str, str]]], name: str) -> Floats:
    """Return the (reports, frames) values of a metric."""
    columns = np.empty((len(paired), len(paired[0])))
    for column, rows in zip(columns, paired, strict=True):
        column[:] = [float(row[name]) for row in rows]
    return columns


def _units(paired: Sequence[Sequence[dict[str, str]]], pixels: Floats) -> dict[str, Floats]:
    """Return by metric (frames, reports, 2): what is summed, and the weight it is divided by.

    A frame in which the metric is not finite in every report has no weight in any.
    """
    units = {}
    for name in METRICS:
        values = _column(paired, name)
        weights = np.ones_like(values) if name in FRAME_MEANS else pixels
        defined = np.isfinite(values).all(axis=0)
        weights = np.where(defined, weights, 0.0)
        summed = np.where(defined, values, 0.0)
        if name in ROOTS:
            summed = summed**2
        units[name] = np.stack([(weights * summed).T, weights.T], axis=2)
    return units


def _row(name: str, bootstrap: Bootstrap, paired: Sequence[Sequence[dict[str, str]]]) -> Row:
    sums = bootstrap.sums(name)
    with np.errstate(invalid="ignore"):
        means = sums[..., 0] / sums[..., 1]
    if name in ROOTS:
        means = np.sqrt(means)
    values = tuple(bootstrap.interval(column) for column in means.T)
    differences = tuple(bootstrap.interval(column - means[:, 0]) for column in means.T[1:])
    defined = np.isfinite(_column(paired, name)).all(axis=0)
    return Row(name, values, differences, int(defined.sum()))


def _worst(
    paired: Sequence[Sequence[dict[str, str]]], series: Floats, index: int, number: int
) -> tuple[FrameRow, ...]:
    order = np.argsort(-series[index], kind="stable")[:number]
    return tuple(
        FrameRow(paired[index][place]["frame"], tuple(series[:, place].tolist()))
        for place in order
    )


def _names(reports: Sequence[SavedReport]) -> tuple[str, ...]:
    """Return the name of each report's folder, or its whole path where names repeat."""
    names = [report.folder.resolve().name for report in reports]
    if len(set(names)) == len(names):
        return tuple(names)
    return tuple(str(report.folder) for report in reports)


def _notes(
    reports: Sequence[SavedReport],
    names: Sequence[str],
    tables: Sequence[dict[Frame, Any]],
    common: Sequence[Frame],
    pixels: Floats,
) -> list[str]:
    notes = [
        f"{len(table) - len(common)} of {len(table)} frames of {name} are not in every report"
        for name, table in zip(names, tables, strict=True)
        if len(table) > len(common)
    ]
    notes += [
        f"{report.evaluation.repeated.count} frames of {name} have the scores of an earlier "
        "frame: intervals are too narrow"
        for report, name in zip(reports, names, strict=True)
        if report.evaluation.repeated.count
    ]
    different = int((pixels != pixels[0]).any(axis=0).sum())
    if different:
        notes.append(
            f"in {different} of {len(common)} common frames the reports scored different pixels: "
            "where one has no prediction or other ground truth"
        )
    sources = sorted({str(report.summary["source"]) for report in reports})
    if len(sources) > 1:
        notes.append(f"the sources are called {', '.join(sources)}; frames are paired by stamp")
    return notes
