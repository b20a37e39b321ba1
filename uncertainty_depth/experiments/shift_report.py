# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Table, JSON and plot of the experiment `shift`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from uncertainty_depth import atomic, strict_json
from uncertainty_depth.experiments import figures, tables
from uncertainty_depth.metrics.classification import auroc

Results = Mapping[str, Mapping[str, Mapping[str, Sequence[float | None]]]]
"""Method, condition, score, frame."""

SCORES = {
    "mae": "MAE (m)",
    "ause": "AUSE rmse (m)",
    "coverage_95": "coverage at 95 %",
    "auroc_sigma": "AUROC, sigma",
    "auroc_unfamiliarity": "AUROC, unfamiliarity",
}


def write(output: Path, results: Results, kinds: Sequence[str], severities: Sequence[int]) -> None:
    """Write table.md, table.csv, summary.json and shift.png."""
    corrupted = {
        method: _scores_by_kind(conditions, kinds, severities)
        for method, conditions in results.items()
    }
    clean = {method: _clean(conditions["clean"]) for method, conditions in results.items()}
    strict_json.write(
        output / "summary.json",
        {"severities": list(severities), "clean": clean, "corrupted": corrupted},
    )
    means = {method: _mean_over_kinds(by_kind) for method, by_kind in corrupted.items()}
    header = ["method", "score", "clean", *map(str, severities)]
    rows: list[list[str]] = []
    for method, scores in means.items():
        for key, title in SCORES.items():
            values = [clean[method].get(key, float("nan")), *scores[key]]
            rows.append([method, title, *(_cell(value) for value in values)])
    parts = [
        f"Means over {len(kinds)} corruptions, by severity:\n",
        tables.markdown(header, rows),
        f"By corruption, at severity {severities[len(severities) // 2]}:\n",
        tables.markdown(["method", "score", *kinds], _by_kind(corrupted, severities)),
    ]
    atomic.write_text(output / "table.md", "\n".join(parts))
    tables.write_table(output / "table.csv", header, rows)
    _plot(output / "shift.png", means, clean, severities)


def _by_kind(corrupted: Mapping[str, Any], severities: Sequence[int]) -> list[list[str]]:
    middle = len(severities) // 2
    rows = []
    for method, by_kind in corrupted.items():
        for key, title in SCORES.items():
            cells = [_cell(by_kind[kind][middle][key]) for kind in by_kind]
            rows.append([method, title, *cells])
    return rows


def _clean(frames: Mapping[str, Sequence[float | None]]) -> dict[str, float]:
    return {key: float(np.nanmean(_floats(frames[key]))) for key in ("mae", "ause", "coverage_95")}


def _scores_by_kind(
    conditions: Mapping[str, Mapping[str, Sequence[float | None]]],
    kinds: Sequence[str],
    severities: Sequence[int],
) -> dict[str, list[dict[str, float]]]:
    """Return the scores of each corruption at each severity."""
    scores = {}
    for kind in kinds:
        scores[kind] = [_scores(conditions, kind, severity) for severity in severities]
    return scores


def _scores(
    conditions: Mapping[str, Mapping[str, Sequence[float | None]]], kind: str, severity: int
) -> dict[str, float]:
    """Return the scores of a condition, and how well it is told from the clean frames."""
    frames = conditions[f"{kind}_{severity}"]
    clean = conditions["clean"]
    return {
        **_clean(frames),
        "auroc_sigma": auroc(_floats(clean["sigma"]), _floats(frames["sigma"])),
        "auroc_unfamiliarity": _auroc_where_known(clean, frames),
    }


def _auroc_where_known(
    clean: Mapping[str, Sequence[float | None]], frames: Mapping[str, Sequence[float | None]]
) -> float:
    if None in clean["unfamiliarity"]:
        return float("nan")
    return auroc(_floats(clean["unfamiliarity"]), _floats(frames["unfamiliarity"]))


def _floats(values: Sequence[float | None]) -> Any:
    return np.array(values, dtype=np.float64)


def _mean_over_kinds(by_kind: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, Any]:
    """Return each score by severity, the mean over the kinds."""
    means = {}
    for key in SCORES:
        scores = [list(map(itemgetter(key), rows)) for rows in by_kind.values()]
        means[key] = np.mean(scores, axis=0).tolist()
    return means


def _cell(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else "–"


def _plot(
    path: Path,
    means: Mapping[str, Mapping[str, Sequence[float]]],
    clean: Mapping[str, Mapping[str, float]],
    severities: Sequence[int],
) -> None:
    figure, panels = figures.panels(1, len(SCORES))
    for axes, (key, title) in zip(panels[0], SCORES.items(), strict=True):
        for number, (method, scores) in enumerate(means.items()):
            color = figures.COLORS[number % len(figures.COLORS)]
            values = [clean[method].get(key, float("nan")), *scores[key]]
            axes.plot([0, *severities], values, "o-", color=color, label=method)
        axes.set_xlabel("severity")
        axes.set_title(title)
    panels[0, 0].legend(fontsize=6)
    figures.save(figure, path)
