# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write a comparison as one HTML page with plots and as JSON, and print its headline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from uncertainty_depth import atomic, strict_json
from uncertainty_depth.figure_bytes import encoded
from uncertainty_depth.metrics.registry import BY_VALUE
from uncertainty_depth.report.bootstrap import Interval
from uncertainty_depth.report.comparison import WORST_BY, Comparison, Row
from uncertainty_depth.report.model_facts import law_of
from uncertainty_depth.report.page import base64_text, render_template
from uncertainty_depth.report.plots import ERROR_LABELS, PLOT_DPI, SIZE, distances, style
from uncertainty_depth.report.summary import headline_names, note, title

PAGE = "compare.html"
TABLE = "compare.json"
MAX_IMAGES = 3
HEADLINE_DEPTH = ("depth.abs_rel", "depth.rmse", "depth.a1")
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Of Okabe and Ito; colour-blind readers can tell them apart."""
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (6, 1.5, 1, 1.5)), (0, (1, 1)))
ORACLE_ALPHA = 0.45


def write(comparison: Comparison, folder: Path, command: str) -> Path:
    """Write `compare.html` (self-contained) and `compare.json`; return the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    strict_json.write(folder / TABLE, _table(comparison))
    plots = {
        name: base64_text(encoded(figure, PLOT_DPI))
        for name, figure in figures(comparison).items()
    }
    page = render_template(
        "comparison.html.j2",
        names=comparison.names,
        command=command,
        notes=comparison.notes,
        blocks=comparison.blocks,
        common=comparison.series.shape[1],
        verdicts=[report.summary["verdict"] for report in comparison.reports],
        rows=[_cells(row) for row in comparison.rows if not BY_VALUE[row.name].groups],
        group_rows=[_cells(row) for row in comparison.rows if _is_group(row)],
        plots=plots,
        worst_by=WORST_BY,
        worst=_worst(comparison),
    )
    atomic.write_text(folder / PAGE, page)
    return folder / PAGE


def headline(comparison: Comparison) -> list[str]:
    """Return the headline metrics as lines for a terminal."""
    law = law_of(comparison.reports[0].summary["model"])
    names = {*HEADLINE_DEPTH, *headline_names(law)}
    table = [("", *comparison.names, "")]
    for row in comparison.rows:
        if row.name in names:
            cells = [f"{row.values[0].value:.4f}"]
            pairs = zip(row.values[1:], row.differences, strict=True)
            cells += [f"{value.value:.4f} {_signed(gap)}" for value, gap in pairs]
            outcomes = [row.outcome(index) for index in range(len(row.differences))]
            name = row.name.removeprefix("uncertainty.")
            table.append((name, *cells, ", ".join(filter(None, outcomes))))
    return [
        f"{comparison.series.shape[1]} common frames in {comparison.blocks} blocks; "
        f"differences to {comparison.names[0]} with 95 % intervals",
        *(f"note: {text}" for text in comparison.notes),
        "",
        *_aligned(table),
    ]


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines: two spaces or more between the columns."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for first, *cells, last in table:
        middle = [f"{cell:>{width}}" for cell, width in zip(cells, widths[1:-1], strict=True)]
        lines.append("  ".join((f"{first:{widths[0]}}", *middle, last)).rstrip())
    return lines


def _is_group(row: Row) -> bool:
    """Return whether a row is part of a list metric that some report has."""
    has_value = any(math.isfinite(value.value) for value in row.values)
    return bool(BY_VALUE[row.name].groups) and has_value


def _cells(row: Row) -> dict[str, Any]:
    metric = BY_VALUE[row.name]
    pairs = zip(row.values[1:], row.differences, strict=True)
    others = [
        {"value": value.text(4), "gap": _signed(gap), "outcome": row.outcome(index)}
        for index, (value, gap) in enumerate(pairs)
    ]
    return {
        "label": row.name if metric.groups else title(metric),
        "note": note(metric),
        "first": row.values[0].text(4),
        "others": others,
    }


def _worst(comparison: Comparison) -> list[dict[str, Any]]:
    """Return for each report the table of its worst frames and the plots in its folder."""
    worst = []
    for name, report, frames in zip(
        comparison.names, comparison.reports, comparison.worst, strict=True
    ):
        paths = sorted(report.folder.glob("worst_*.jpg"))[:MAX_IMAGES]
        rows = []
        for frame in frames:
            values = [f"{value:.4f}" for value in frame.values]
            rows.append({"frame": frame.frame, "values": values})
        images = [base64_text(path.read_bytes()) for path in paths]
        worst.append({"name": name, "rows": rows, "images": images})
    return worst


def _table(comparison: Comparison) -> dict[str, Any]:
    return {
        "reports": [str(report.folder) for report in comparison.reports],
        "names": comparison.names,
        "common_frames": comparison.series.shape[1],
        "blocks": comparison.blocks,
        "notes": comparison.notes,
        "metrics": {row.name: _json_row(row) for row in comparison.rows},
        "worst": [list(map(asdict, frames)) for frames in comparison.worst],
    }


def _json_row(row: Row) -> dict[str, Any]:
    return {
        "over": BY_VALUE[row.name].over,
        "values": [asdict(value) for value in row.values],
        "differences": [asdict(gap) for gap in row.differences],
        "outcomes": [row.outcome(index) for index in range(len(row.differences))],
    }


def _signed(gap: Interval, digits: int = 4) -> str:
    return f"{gap.value:+.{digits}f} ({gap.low:+.{digits}f} to {gap.high:+.{digits}f})"


def figures(comparison: Comparison) -> dict[str, Figure]:
    """Return the plots by file name; curves cover all of a report's frames."""
    curves = [report.evaluation.metrics.curves() for report in comparison.reports]
    return {
        "sparsification": _sparsification(curves, comparison.names),
        "reliability": _reliability(curves, comparison.names),
        "by_distance": _by_distance(curves, comparison.names),
        "frames": _frames(comparison),
    }


def _lines(names: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "color": COLORS[index % len(COLORS)],
            "linestyle": DASHES[index // len(COLORS) % len(DASHES)],
            "label": name,
        }
        for index, name in enumerate(names)
    ]


def _panels(columns: int, titles: Sequence[str]) -> tuple[Figure, Sequence[Axes]]:
    figure = Figure(figsize=(SIZE[0] * 0.8 * columns, SIZE[1]), layout="constrained")
    panels = figure.subplots(1, columns, squeeze=False)[0]
    for axes, text in zip(panels, titles, strict=True):
        style(axes, text)
    return figure, panels


def _sparsification(curves: Sequence[dict[str, Any]], names: Sequence[str]) -> Figure:
    figure, panels = _panels(3, ["Sparsification, mean over images", "dim: oracle", ""])
    for axes, (statistic, label) in zip(panels, ERROR_LABELS.items(), strict=True):
        for curve, line in zip(curves, _lines(names), strict=True):
            values = curve["sparsification"][statistic]
            removed = 100 * values["fractions"]
            axes.plot(removed, values["method"], **line)
            dim = {**line, "label": None, "alpha": ORACLE_ALPHA, "linewidth": 0.9}
            axes.plot(removed, values["oracle"], **dim)
        axes.set(xlabel="most uncertain pixels removed (%)", ylabel=label)
        axes.set(xlim=(0, 100), ylim=(0, None))
    panels[0].legend(frameon=False, fontsize=8)
    return figure


def _reliability(curves: Sequence[dict[str, Any]], names: Sequence[str]) -> Figure:
    keys = {"reliability": "Gaussian intervals", "reliability_laplace": "Laplace intervals"}
    figure, panels = _panels(2, list(keys.values()))
    for axes, key in zip(panels, keys, strict=True):
        axes.plot([0, 100], [0, 100], color="#666666", linewidth=0.8, label="calibrated")
        for curve, line in zip(curves, _lines(names), strict=True):
            axes.plot(100 * curve[key]["levels"], 100 * curve[key]["method"], **line)
        axes.set(xlabel="confidence level p (%)", ylabel="errors inside the interval (%)")
        axes.set(xlim=(0, 100), ylim=(0, 100))
    panels[0].legend(frameon=False, fontsize=8)
    return figure


def _by_distance(curves: Sequence[dict[str, Any]], names: Sequence[str]) -> Figure:
    figure, panels = _panels(2, ["MAE by true distance", "n-MeRCI by true distance"])
    for axes, key in zip(panels, ("mae", "n_merci"), strict=True):
        for curve, line in zip(curves, _lines(names), strict=True):
            middle, enough = distances(curve["by_distance"])
            axes.plot(middle, np.where(enough, curve["by_distance"][key], np.nan), **line)
        axes.set(xlabel="true depth (m)", xscale="log", ylim=(0, None))
    panels[0].set(ylabel="MAE (m)")
    panels[1].set(ylabel="n-MeRCI (0 best, 1 no information)")
    panels[0].legend(frameon=False, fontsize=8)
    return figure


def _frames(comparison: Comparison) -> Figure:
    figure = Figure(figsize=(2 * SIZE[0] * 0.8, SIZE[1] * 0.8), layout="constrained")
    axes = figure.subplots()
    style(axes, "Each common frame")
    for values, line in zip(comparison.series, _lines(comparison.names), strict=True):
        axes.plot(np.arange(len(values)), values, marker=".", markersize=3, linewidth=0.8, **line)
    axes.set(xlabel="common frame, in the order of the first report", ylabel=WORST_BY)
    axes.set(ylim=(0, None))
    axes.legend(frameon=False, fontsize=8)
    return figure
