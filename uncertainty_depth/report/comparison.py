# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Compare reports frame by frame: metrics over the frames that all reports scored.

Each frame of one report is paired with the same frame of the others, by stamp, and the sums of the
common frames are added again: a metric is what a report on only these frames would show.
Differences to the first report have intervals by a block bootstrap that draws the same frames for
every report. `write` makes one HTML page with plots and a JSON file of a comparison.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from operator import eq
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from uncertainty_depth.core import strict
from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.core.errors import ConfigError, SourceError
from uncertainty_depth.core.output import OutputFolder
from uncertainty_depth.metrics.bootstrap import REPLICATES, Interval, Resampled, dependence_of
from uncertainty_depth.metrics.calibration import CONFIDENCE_LEVELS
from uncertainty_depth.metrics.from_sums import covered_shares
from uncertainty_depth.metrics.metric import Metric, SigmaKind
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.metrics.registry import BY_NAME, BY_VALUE, METRICS
from uncertainty_depth.metrics.state import Block
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.frame_plots import number_axis
from uncertainty_depth.report.images import encoded, vector
from uncertainty_depth.report.model_facts import distribution_of_model
from uncertainty_depth.report.page import (
    HEADLINE_DEPTH,
    base64_text,
    headline_names,
    render_template,
)
from uncertainty_depth.report.plots import (
    ERROR_LABELS,
    LOG_STEPS,
    PLOT_DPI,
    by_distance,
    one_plot,
    removal_curves,
)
from uncertainty_depth.report.saved_state import SavedReport, check_same_config
from uncertainty_depth.report.scores import frame_name

FrameKey = tuple[int, int]
"""Stamp, nanoseconds, and how many frames with this stamp came before."""

WORST_BY = "depth.abs_rel"
WORST_FRAMES = 5
"""Largest number for each report."""


@dataclass(frozen=True)
class Row:
    """One metric over the common frames: each report's interval, and differences to the first."""

    name: str
    values: tuple[Interval, ...]
    differences: tuple[Interval, ...]

    @property
    def metric(self) -> Metric:
        """What was measured."""
        return BY_VALUE[self.name]

    def best(self) -> frozenset[int]:
        """Return which reports have the best value; none if neither direction is better."""
        values = [value.value for value in self.values]
        best = self.metric.best_of(values)
        return frozenset(place for place, value in enumerate(values) if value == best)

    def outcome(self, index: int) -> str:
        """Return "better", "worse", or "" if the difference's interval includes zero."""
        difference = self.differences[index]
        better = self.metric.better
        if not (difference.low > 0 or difference.high < 0) or better == "":
            return ""
        if isinstance(better, float):
            gaps = [abs(self.values[place].value - better) for place in (index + 1, 0)]
            return "better" if gaps[0] < gaps[1] else "worse"
        return "better" if (difference.value > 0) == (better == "higher") else "worse"

    def text(self, interval: Interval, sign: str = "") -> str:
        """Return a value, or with a sign a difference, with its interval."""
        numbers = (interval.value, interval.low, interval.high)
        value, low, high = (self.metric.text(number, sign) for number in numbers)
        return value if math.isnan(interval.low) else f"{value} ({low} to {high})"


@dataclass(frozen=True)
class FrameRow:
    """A frame on which one report is worst: its name, and the metric in each report."""

    frame: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Comparison:
    """What `compare` returns: values over the common frames, the first report being the reference.

    `worst` holds each report's worst frames by `WORST_BY`, `series` that metric in the order of
    the first, (reports, frames), `blocks` how many blocks the intervals are based on.
    """

    reports: tuple[SavedReport, ...]
    names: tuple[str, ...]
    rows: tuple[Row, ...]
    worst: tuple[tuple[FrameRow, ...], ...]
    series: Floats
    blocks: int
    notes: tuple[str, ...]


def compare(reports: Sequence[SavedReport]) -> Comparison:
    """Return the comparison between two or more reports; the others are compared with the first.

    Raises `ConfigError` for other options, or fewer than two; `SourceError` without common frames.
    """
    if len(reports) < 2:
        raise ConfigError(f"{len(reports)} report is given; expected two or more to compare")
    for report in reports[1:]:
        check_same_config(reports[0], report)
    tables = [_by_frame(report.evaluation) for report in reports]
    in_all = set(tables[0]).intersection(*tables[1:])
    common = [key for key in tables[0] if key in in_all]
    folders = [report.folder.resolve().name for report in reports]
    if len(set(folders)) < len(folders):
        folders = [str(report.folder) for report in reports]
    names = tuple(map(strict.encodable, folders))
    for name, table in zip(names, tables, strict=True):
        if not table:
            raise SourceError(f"no frame of {name} was scored; expected reports with scores")
    if not common:
        raise SourceError(
            f"{names[0]} and {names[1]} have no frame with the same stamp; expected reports of "
            "the same frames"
        )
    paired = [[table[key] for key in common] for table in tables]
    series = np.array([[scored.error for scored in frames] for frames in paired])
    views = [[scored.view for scored in frames] for frames in paired]
    continues = [False, *(any(map(eq, *pair)) for pair in pairwise(zip(*views, strict=True)))]
    scored = [
        _scored_again(report.evaluation, table, dict(zip(common, continues, strict=True)))
        for report, table in zip(reports, tables, strict=True)
    ]
    dependence = dependence_of(*scored)
    repeated = max(report.evaluation.repeated for report in reports)
    places = min(report.evaluation.views.places for report in reports)
    samples = [Resampled(metrics, repeated, dependence, places) for metrics in scored]
    alone = [
        report.evaluation.resampled()
        if len(table) == len(common)
        else Resampled(metrics, report.evaluation.repeated, None, report.evaluation.views.places)
        for report, table, metrics in zip(reports, tables, scored, strict=True)
    ]
    rows = tuple(_rows(reports, alone, samples))
    worst = []
    for frames, errors in zip(paired, series, strict=True):
        order = np.argsort(-errors, kind="stable")[:WORST_FRAMES]
        of_report = [FrameRow(frames[at].name, tuple(series[:, at].tolist())) for at in order]
        worst.append(tuple(of_report))
    notes = tuple(_notes(reports, names, tables, common))
    return Comparison(
        tuple(reports), names, rows, tuple(worst), series, samples[0].drawn_blocks, notes
    )


class _Scored(NamedTuple):
    """A frame's name, its scored pixels, `WORST_BY`, and its view's number in the report."""

    name: str
    pixels: int
    error: float
    view: int


def _by_frame(evaluation: Evaluation) -> dict[FrameKey, _Scored]:
    """Return a report's frames, in their order."""
    table: dict[FrameKey, _Scored] = {}
    repeats: Counter[int] = Counter()
    view = 0
    for name, block in evaluation.table.saved():
        view += not name.continues
        error = BY_NAME[WORST_BY].values(evaluation.metrics.sums_of(block))[0]
        scored = _Scored(name.frame, int(block["pixels"]), float(error), view)
        table[name.stamp_ns, repeats[name.stamp_ns]] = scored
        repeats[name.stamp_ns] += 1
    return table


def _scored_again(
    evaluation: Evaluation, frames: Iterable[FrameKey], common: Mapping[FrameKey, bool]
) -> OnlineMetrics:
    """Return metrics over the common frames, by the first's order and all reports' repeats."""
    metrics = OnlineMetrics(evaluation.config)
    waiting: dict[FrameKey, Block] = {}
    expected = iter(common)
    frame = next(expected)
    for key, (_, block) in zip(frames, evaluation.table.saved(), strict=True):
        if key in common:
            waiting[key] = block
        while frame in waiting:
            metrics.blocks.add(waiting.pop(frame), common[frame])
            frame = next(expected, (0, -1))
    return metrics


def _rows(
    reports: Sequence[SavedReport], alone: Sequence[Resampled], samples: Sequence[Resampled]
) -> Iterator[Row]:
    """Yield each metric: each report's interval `alone`, and differences by common `samples`."""
    kinds = [report.evaluation.sigma_kind for report in reports]
    for metric in METRICS:
        if metric.unit == "count" or not all(map(metric.is_judged, kinds)):
            continue
        rows_alone, by_report = (
            [sample.rows(metric).reshape(1 + REPLICATES, -1) for sample in each]
            for each in (alone, samples)
        )
        for place, name in enumerate(metric.names()):
            columns = [rows[:, place] for rows in by_report]
            values = tuple(
                sample.interval(rows[:, place], limits=metric.limits)
                for sample, rows in zip(alone, rows_alone, strict=True)
            )
            with np.errstate(invalid="ignore"):  # infinite in both reports
                changes = [column - columns[0] for column in columns[1:]]
            differences = tuple(samples[0].interval(change) for change in changes)
            yield Row(name, values, differences)


def _notes(
    reports: Sequence[SavedReport],
    names: Sequence[str],
    tables: Sequence[dict[FrameKey, _Scored]],
    common: Sequence[FrameKey],
) -> list[str]:
    notes = [
        f"{len(table) - len(common)} of {len(table)} frames of {name} are not in every report"
        for name, table in zip(names, tables, strict=True)
        if len(table) > len(common)
    ]
    notes += [
        f"{report.evaluation.views.repeated} of {report.evaluation.evaluated} frames of {name} "
        "have the scores of an earlier frame and are no new evidence"
        for report, name in zip(reports, names, strict=True)
        if report.evaluation.views.repeated
    ]
    different = sum(len({table[key].pixels for table in tables}) > 1 for key in common)
    if different:
        notes.append(
            f"in {different} of {len(common)} common frames the reports scored different pixels: "
            "where one has no prediction, other ground truth or another mask"
        )
    sources = sorted({str(report.summary["source"]) for report in reports})
    if len(sources) > 1:
        notes.append(f"the sources are called {', '.join(sources)}; frames are paired by stamp")
    return notes


PAGE = "compare.html"
TABLE = "compare.json"
MAX_IMAGES = 3
MAX_IMAGE_BYTES = 2**24
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's: colour-blind readers can tell them apart."""
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (6, 1.5, 1, 1.5)), (0, (1, 1)))
ORACLE_ALPHA = 0.45
PANEL = (4.2, 3.3)  # inches; three side by side on a wide page


def output_of(folder: Path) -> OutputFolder:
    """Return a comparison's folder, to be checked before the work."""
    return OutputFolder(folder, "comparison")


def write(comparison: Comparison, folder: Path, command: str, curves: Sequence[str] = ()) -> Path:
    """Write `compare.html` (self-contained) and `compare.json`; return the page's path.

    The command is empty if there is none; `curves` are formats, "png", "svg" or "pdf", that each
    plot is also written in.
    """
    content = {
        "reports": [str(report.folder) for report in comparison.reports],
        "names": comparison.names,
        "common_frames": comparison.series.shape[1],
        "blocks": comparison.blocks,
        "notes": comparison.notes,
        "metrics": {
            row.name: {
                "over": row.metric.over,
                "values": [asdict(value) for value in row.values],
                "differences": [asdict(gap) for gap in row.differences],
                "outcomes": [row.outcome(index) for index in range(len(row.differences))],
            }
            for row in comparison.rows
        },
        "worst": [list(map(asdict, frames)) for frames in comparison.worst],
    }
    drawn = figures(comparison)
    plots = {name: encoded(figure, PLOT_DPI) for name, figure in drawn.items()}
    names = headline_of(comparison)
    rows = comparison.rows
    page = render_template(
        "comparison.html.j2",
        names=comparison.names,
        command=command,
        notes=comparison.notes,
        blocks=comparison.blocks,
        common=comparison.series.shape[1],
        verdicts=[report.summary["verdict"] for report in comparison.reports],
        headline=[row for row in rows if row.name in names],
        rows=[row for row in rows if row.name not in names and not row.metric.groups],
        group_rows=[
            row
            for row in rows
            if row.metric.groups and any(math.isfinite(value.value) for value in row.values)
        ],
        frame_name=frame_name,
        plots={name: base64_text(data) for name, data in plots.items()},
        worst=comparison.worst,
        pictures=[_pictures(report.folder) for report in comparison.reports],
    )
    with output_of(folder).replacing(TABLE) as staging:
        (staging / PAGE).write_text(page, encoding="utf-8")
        strict.write_json(staging / TABLE, content)
        for file_format in curves:
            for name, figure in drawn.items():
                data = plots[name] if file_format == "png" else vector(figure, file_format)
                (staging / f"{name}.{file_format}").write_bytes(data)
    return folder / PAGE


def headline(comparison: Comparison) -> list[str]:
    """Return the headline metrics as lines for a terminal."""
    names = headline_of(comparison)
    table = [("", *comparison.names)]
    for row in comparison.rows:
        if row.name in names:
            best = row.best()
            values = [
                f"{row.metric.text(value.value)}{'*' if place in best else ' '}"
                for place, value in enumerate(row.values)
            ]
            others = [
                f"{value} {row.text(gap, '+')} {row.outcome(index):6}"
                for index, (value, gap) in enumerate(zip(values[1:], row.differences, strict=True))
            ]
            table.append((row.name.removeprefix("uncertainty."), values[0], *others))
    return [
        f"{comparison.series.shape[1]} common frames in {comparison.blocks} blocks; "
        f"differences to {comparison.names[0]} with 95 % intervals; * best",
        *(f"note: {text}" for text in comparison.notes),
        "",
        *_aligned(table),
    ]


def headline_of(comparison: Comparison) -> tuple[str, ...]:
    """Return the headline metrics' names, under the first report's distribution."""
    distribution = distribution_of_model(comparison.reports[0].summary["model"])
    return (*HEADLINE_DEPTH, *headline_names(distribution))


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines: two spaces or more between the columns."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for first, *cells in table:
        others = [f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append("  ".join((f"{first:{widths[0]}}", *others)).rstrip())
    return lines


def _pictures(folder: Path) -> list[str]:
    """Return the plots of the worst frames in a report's folder, as base64."""
    paths = [folder / f"worst_{index}.jpg" for index in range(MAX_IMAGES)]
    return [
        base64_text(path.read_bytes())
        for path in paths
        if path.is_file() and path.stat().st_size <= MAX_IMAGE_BYTES
    ]


def figures(comparison: Comparison) -> dict[str, Figure]:
    """Return the plots by file name, each a figure with one curve for all of a report's frames."""
    names = comparison.names
    totals = [report.evaluation.metrics.total() for report in comparison.reports]
    plots: dict[str, Figure] = {}
    kinds = {report.evaluation.sigma_kind for report in comparison.reports}
    for statistic, label in ({} if SigmaKind.NONE in kinds else ERROR_LABELS).items():
        each = [removal_curves(sums, statistic) for sums in totals]
        lines = [(curve["percent"], curve["predicted"]) for curve in each]
        figure = _overlaid("Sparsification (dim: oracle), mean over images", names, lines)
        (axes,) = figure.axes
        for line, curve in zip(axes.get_lines(), each, strict=True):
            dim: dict[str, Any] = {
                "color": line.get_color(),
                "alpha": ORACLE_ALPHA,
                "linewidth": 0.9,
            }
            axes.plot(curve["percent"], curve["oracle"], **dim)
        axes.set(xlabel="most uncertain pixels removed (%)", ylabel=label)
        axes.set(xlim=(0, 100), ylim=(0, None))
        plots[f"sparsification_{statistic}"] = figure
    if kinds == {SigmaKind.METRES}:
        distributions = [
            distribution_of_model(report.summary["model"]) for report in comparison.reports
        ]
        percent = 100 * CONFIDENCE_LEVELS
        lines = [
            (percent, 100 * covered_shares(distribution, sums)[0])
            for sums, distribution in zip(totals, distributions, strict=True)
        ]
        titles = [
            f"{name}, {distribution.title()}"
            for name, distribution in zip(names, distributions, strict=True)
        ]
        figure = _overlaid("Do the intervals hold? (grey: calibrated)", titles, lines)
        figure.axes[0].plot([0, 100], [0, 100], color="#666666", linewidth=0.8)
        figure.axes[0].set(
            xlabel="confidence level p (%)", ylabel="errors inside the interval (%)"
        )
        figure.axes[0].set(xlim=(0, 100), ylim=(0, 100))
        plots["reliability"] = figure
    n_merci = "n-MeRCI (0 best, 1 no information)"
    for key, quantity, label in (("mae", "MAE", "MAE (m)"), ("n_merci", "n-MeRCI", n_merci)):
        if not all(map(BY_NAME[f"by_distance.{key}"].is_judged, kinds)):
            continue
        lines = [by_distance(sums, key) for sums in totals]
        figure = _overlaid(f"{quantity} by true distance", names, lines)
        figure.axes[0].set(xlabel="true depth (m)", ylabel=label, xscale="log", ylim=(0, None))
        number_axis(figure.axes[0].xaxis, LOG_STEPS)
        plots[f"{key}_by_distance"] = figure
    lines = [(np.arange(len(errors), dtype=np.float64), errors) for errors in comparison.series]
    figure = _overlaid("Each common frame", names, lines)
    for line in figure.axes[0].get_lines():
        line.set(marker=".", markersize=3, linewidth=0.8)
    figure.axes[0].set(xlabel="common frame, in the order of the first report", ylabel="abs_rel")
    figure.axes[0].set(ylim=(0, None))
    plots["frames"] = figure
    return plots


def _overlaid(title: str, names: Sequence[str], lines: Iterable[tuple[Floats, Floats]]) -> Figure:
    """Return a plot with one line a report, and a legend below it."""
    figure, axes = one_plot(title, PANEL)
    for index, (x, y) in enumerate(lines):
        dashes = DASHES[index // len(COLORS) % len(DASHES)]
        axes.plot(x, y, color=COLORS[index % len(COLORS)], linestyle=dashes, label=str(index))
    legend = figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)  # a label that begins with _ would be none
    return figure
