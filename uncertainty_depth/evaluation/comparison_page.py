# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write a comparison as one HTML page and as JSON, and print its headline."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from uncertainty_depth import atomic, strict_json
from uncertainty_depth.evaluation.bootstrap import Interval
from uncertainty_depth.evaluation.comparison import FRAME_MEANS, WORST_BY, Comparison, Row
from uncertainty_depth.evaluation.comparison_plots import figures
from uncertainty_depth.evaluation.drawing import PLOT_DPI
from uncertainty_depth.evaluation.html import base64_text, render_template
from uncertainty_depth.evaluation.model_facts import law_of
from uncertainty_depth.evaluation.summary import UNCERTAINTY_ROWS, headline_rows
from uncertainty_depth.figure_bytes import encoded

PAGE = "compare.html"
TABLE = "compare.json"
OVER_IMAGES = ("auce", "n_merci", "spearman")
"""Metrics whose name means something else in a report: there, over all pixels together."""
MAX_IMAGES = 3
HEADLINE_DEPTH = ("depth.abs_rel", "depth.rmse", "depth.a1")


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
        rows=[_cells(row) for row in comparison.rows],
        plots=plots,
        worst_by=WORST_BY,
        worst=_worst(comparison),
    )
    atomic.write_text(folder / PAGE, page)
    return folder / PAGE


def headline(comparison: Comparison) -> list[str]:
    """Return the headline metrics as lines for a terminal."""
    law = law_of(comparison.reports[0].summary["model"])
    names = {*HEADLINE_DEPTH, *(f"uncertainty.{name}" for name in headline_rows(law))}
    lines = [
        f"{comparison.series.shape[1]} common frames in {comparison.blocks} blocks; "
        f"differences to {comparison.names[0]} with 95 % intervals",
        *(f"note: {note}" for note in comparison.notes),
        "",
        f"{'':24}" + "".join(f"{name[-30:]:>32}" for name in comparison.names),
    ]
    for row in comparison.rows:
        if row.name in names:
            cells = [f"{row.values[0].value:.4f}"]
            pairs = zip(row.values[1:], row.differences, strict=True)
            cells += [f"{value.value:.4f} {_signed(gap)}" for value, gap in pairs]
            outcomes = [row.outcome(index) for index in range(len(row.differences))]
            lines.append(
                f"{_short(row.name):24}"
                + "".join(f"{cell:>32}" for cell in cells)
                + f"  {', '.join(outcomes)}".rstrip(" ,")
            )
    return lines


def _cells(row: Row) -> dict[str, Any]:
    label, note = UNCERTAINTY_ROWS.get(_short(row.name), (row.name, ""))
    if _short(row.name).startswith(OVER_IMAGES):
        note = "mean over images"
    pairs = zip(row.values[1:], row.differences, strict=True)
    others = [
        {"value": value.text(4), "gap": _signed(gap), "outcome": row.outcome(index)}
        for index, (value, gap) in enumerate(pairs)
    ]
    return {
        "label": label,
        "note": note,
        "first": row.values[0].text(4),
        "others": others,
        "frames": row.frames,
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
        "mean_over": "images" if row.name in FRAME_MEANS else "pixels",
        "frames": row.frames,
        "values": [asdict(value) for value in row.values],
        "differences": [asdict(gap) for gap in row.differences],
        "outcomes": [row.outcome(index) for index in range(len(row.differences))],
    }


def _signed(gap: Interval, digits: int = 4) -> str:
    return f"{gap.value:+.{digits}f} ({gap.low:+.{digits}f} to {gap.high:+.{digits}f})"


def _short(name: str) -> str:
    return name.removeprefix("uncertainty.")
