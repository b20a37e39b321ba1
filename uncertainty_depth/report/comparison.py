# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Compare reports frame by frame: metrics over the frames that all reports scored.

Each frame of one report is paired with the same frame of the others, by stamp, and the sums of the
common frames are added again: a metric is what a report on only these frames would show.
Differences to the first report have intervals by a block bootstrap that draws the same frames for
every report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.metrics.registry import BY_VALUE, METRICS
from uncertainty_depth.metrics.state import Block
from uncertainty_depth.report.bootstrap import REPLICATES, Interval, Resampled, block_length
from uncertainty_depth.report.merging import check_same_config
from uncertainty_depth.report.saved_state import SavedReport

Floats = NDArray[np.float64]
Frame = tuple[int, int]
"""Stamp, nanoseconds, and how many frames with this stamp came before."""

WORST_BY = "depth.abs_rel"


@dataclass(frozen=True)
class Row:
    """One metric over the common frames.

    Attributes:
        name: dotted name.
        values: each report's value, with its interval.
        differences: each other report's difference from the first.
    """

    name: str
    values: tuple[Interval, ...]
    differences: tuple[Interval, ...]

    def outcome(self, index: int) -> str:
        """Return "better", "worse", or "" if the difference's interval includes zero."""
        difference = self.differences[index]
        better = BY_VALUE[self.name].better
        if not (difference.low > 0 or difference.high < 0) or better == "":
            return ""
        if isinstance(better, float):
            gaps = [abs(self.values[place].value - better) for place in (index + 1, 0)]
            return "better" if gaps[0] < gaps[1] else "worse"
        return "better" if (difference.value > 0) == (better == "higher") else "worse"


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
        reports: the others are compared with the first.
        worst_frames: how many to list per report.

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
    scored = [_scored_again(report, common) for report in reports]
    length = max(map(block_length, scored))
    samples = [Resampled(metrics, length) for metrics in scored]
    rows = tuple(_rows(reports, samples))
    worst = tuple(_worst(paired, series, index, worst_frames) for index in range(len(reports)))
    notes = tuple(_notes(reports, names, tables, common, pixels))
    return Comparison(tuple(reports), names, rows, worst, series, samples[0].blocks, notes)


def _by_frame(report: SavedReport) -> dict[Frame, dict[str, str]]:
    keys = FrameKeys()
    return {keys.next(row): row for row in report.evaluation.table.rows().dicts()}


class FrameKeys:
    """Makes the key of each frame of a report, called with its rows in their order."""

    def __init__(self) -> None:
        self._repeats: Counter[int] = Counter()

    def next(self, row: Mapping[str, str]) -> Frame:
        """Return the stamp, and how many earlier frames have it."""
        stamp_ns = int(row["stamp_ns"])
        self._repeats[stamp_ns] += 1
        return stamp_ns, self._repeats[stamp_ns] - 1


def _scored_again(report: SavedReport, common: Sequence[Frame]) -> OnlineMetrics:
    """Return the metrics of the common frames of a report, in the order of the first report."""
    metrics = OnlineMetrics(report.evaluation.config)
    keys = FrameKeys()
    waiting: dict[Frame, Block] = {}
    expected = iter(common)
    frame = next(expected)
    wanted = set(common)
    for row, block in report.evaluation.table.rows().with_sums():
        key = keys.next(row)
        if key in wanted:
            waiting[key] = block
        while frame in waiting:
            metrics.blocks.add(waiting.pop(frame))
            frame = next(expected, (0, -1))
    return metrics


def _column(paired: Sequence[Sequence[dict[str, str]]], name: str) -> Floats:
    """Return the (reports, frames) values of a metric."""
    columns = np.empty((len(paired), len(paired[0])))
    for column, rows in zip(columns, paired, strict=True):
        column[:] = [float(row[name]) for row in rows]
    return columns


def _rows(reports: Sequence[SavedReport], samples: Sequence[Resampled]) -> Iterator[Row]:
    without_size = any(report.evaluation.without_size for report in reports)
    for metric in METRICS:
        if metric.unit == "count" or (metric.is_size and without_size):
            continue
        by_report = [sample.rows(metric).reshape(1 + REPLICATES, -1) for sample in samples]
        for place, name in enumerate(metric.names()):
            columns = [rows[:, place] for rows in by_report]
            values = tuple(
                sample.interval(column, limits=metric.limits)
                for sample, column in zip(samples, columns, strict=True)
            )
            differences = tuple(samples[0].interval(column - columns[0]) for column in columns[1:])
            yield Row(name, values, differences)


def _worst(
    paired: Sequence[Sequence[dict[str, str]]], series: Floats, index: int, number: int
) -> tuple[FrameRow, ...]:
    order = np.argsort(-series[index], kind="stable")[:number]
    return tuple(
        FrameRow(paired[index][place]["frame"], tuple(series[:, place].tolist()))
        for place in order
    )


def _names(reports: Sequence[SavedReport]) -> tuple[str, ...]:
    """Return the name of each report's folder, or its whole path if names repeat."""
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
        f"{report.evaluation.views.repeated} frames of {name} have the scores of an earlier "
        "frame: intervals are too narrow"
        for report, name in zip(reports, names, strict=True)
        if report.evaluation.views.repeated
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
