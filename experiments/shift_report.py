# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Tables, JSON and plot of the experiment `shift`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import figures, tables
from experiments.classification_metrics import auroc
from experiments.shift_methods import DROPOUT, of_network
from uncertainty_depth.core import atomic, strict

Frames = Mapping[str, Sequence[float | None]]
"""Score, frame."""
Results = Mapping[str, Mapping[str, Mapping[str, Frames]]]
"""Domain, method, condition, score, frame."""

SCORES = {
    "mae": "MAE (m)",
    "ause": "AUSE rmse (m)",
    "coverage_95": "coverage at 95 %",
    "auroc_sigma": "AUROC, sigma",
    "auroc_unfamiliarity": "AUROC, unfamiliarity",
}
OF_FRAMES = ("mae", "ause", "coverage_95")
RESAMPLINGS = 2000


def write(
    output: Path, results: Results, corruptions: Sequence[str], severities: Sequence[int]
) -> None:
    """Write table.md, table.csv, summary.json and shift.png.

    Dropout of several networks counts as their mean, frame by frame: the ensemble joins them all.
    """
    networks = {domain: _dropouts(methods) for domain, methods in results.items()}
    results = {domain: _with_mean_dropout(methods) for domain, methods in results.items()}
    clean: dict[str, dict[str, float]] = {}
    corrupted: dict[str, Any] = {}
    domains: dict[str, list[str]] = {}
    for domain, methods in results.items():
        for name, conditions in methods.items():
            title = _title(domain, name)
            domains.setdefault(domain, []).append(title)
            clean[title] = _means(conditions["clean"])
            corrupted[title] = _scores_by_corruption(conditions, corruptions, severities)
    content = {"severities": list(severities), "clean": clean, "corrupted": corrupted}
    strict.write_json(output / "summary.json", content)
    means = {
        title: _mean_over_corruptions(by_corruption) for title, by_corruption in corrupted.items()
    }
    header = ["method", "score", "clean", *map(str, severities)]
    rows = _by_severity(means, clean)
    parts = [
        f"Means over {len(corruptions)} corruptions, by severity:\n",
        tables.markdown(header, rows),
        f"By corruption, at severity {severities[len(severities) // 2]}:\n",
        tables.markdown(["method", "score", *corruptions], _by_corruption(corrupted, severities)),
        *_elsewhere(results),
        *_against_dropout(results, header, corruptions, severities),
        *_over_networks(networks, header[1:], corruptions, severities),
    ]
    atomic.write_text(output / "table.md", "\n".join(parts))
    tables.write_table(output / "table.csv", header, rows)
    _plot(output / "shift.png", domains, means, clean, severities)


def _title(domain: str, method: str) -> str:
    return f"{domain}: {method}"


def _elsewhere(results: Results) -> list[str]:
    """Return the table of the methods that were scored on another domain; nothing without any."""
    rows = []
    for domain, methods in results.items():
        for name, conditions in methods.items():
            if "elsewhere" in conditions:
                scores = _scores(conditions["clean"], conditions["elsewhere"])
                rows.append([_title(domain, name), *(_cell(scores[key]) for key in SCORES)])
    if not rows:
        return []
    caption = "Another domain, without corruption; AUROC against the method's own:\n"
    return [caption, tables.markdown(["method", *SCORES.values()], rows)]


def _against_dropout(
    results: Results, header: Sequence[str], corruptions: Sequence[str], severities: Sequence[int]
) -> list[str]:
    """Return a table for each domain with dropout: the other methods minus it."""
    parts = []
    growth = f"{severities[-1]} against clean"
    for domain, methods in results.items():
        if DROPOUT in methods:
            rows = _differences(methods, corruptions, severities)
            parts += [
                f"{domain}: minus {DROPOUT}, frame by frame, 95 % interval over frames:\n",
                tables.markdown([*header, growth], rows),
            ]
    return parts


def _dropouts(methods: Mapping[str, Mapping[str, Frames]]) -> list[Mapping[str, Frames]]:
    """Return the scores of dropout of each network; nothing if there is one alone."""
    prefix = of_network(DROPOUT, 0)[:-1]
    return [scores for name, scores in methods.items() if name.startswith(prefix)]


def _with_mean_dropout(
    methods: Mapping[str, Mapping[str, Frames]],
) -> dict[str, Mapping[str, Frames]]:
    networks = _dropouts(methods)
    others = {name: scores for name, scores in methods.items() if scores not in networks}
    if not networks:
        return others
    mean: dict[str, Frames] = {}
    for condition, scores in networks[0].items():
        mean[condition] = {
            key: np.mean([_floats(network[condition][key]) for network in networks], 0).tolist()
            if None not in values
            else values
            for key, values in scores.items()
        }
    return {**others, DROPOUT: mean}


def _over_networks(
    networks: Mapping[str, Sequence[Mapping[str, Frames]]],
    header: Sequence[str],
    corruptions: Sequence[str],
    severities: Sequence[int],
) -> list[str]:
    """Return a table for each domain with several networks: how they differ among themselves."""
    parts = []
    for domain, of_domain in networks.items():
        if len(of_domain) > 1:
            rows = []
            for key in OF_FRAMES:
                means = [
                    [_mean_of_frames(one, conditions, key).mean() for one in of_domain]
                    for conditions in _levels(corruptions, severities)
                ]
                cells = [f"{np.mean(row):.3f} ± {np.std(row, ddof=1):.3f}" for row in means]
                rows.append([SCORES[key], *cells])
            caption = f"{domain}: {DROPOUT} of {len(of_domain)} networks, mean ± deviation:\n"
            parts += [caption, tables.markdown(header, rows)]
    return parts


def _levels(corruptions: Sequence[str], severities: Sequence[int]) -> list[list[str]]:
    """Return the conditions of each severity, the clean one first."""
    levels = [["clean"]]
    for severity in severities:
        levels.append([f"{corruption}_{severity}" for corruption in corruptions])
    return levels


def _by_severity(means: Mapping[str, Any], clean: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for method, scores in means.items():
        for key, title in SCORES.items():
            values = [clean[method].get(key, float("nan")), *scores[key]]
            rows.append([method, title, *(_cell(value) for value in values)])
    return rows


def _by_corruption(corrupted: Mapping[str, Any], severities: Sequence[int]) -> list[list[str]]:
    middle = len(severities) // 2
    rows = []
    for method, by_corruption in corrupted.items():
        for key, title in SCORES.items():
            cells = [_cell(by_corruption[corruption][middle][key]) for corruption in by_corruption]
            rows.append([method, title, *cells])
    return rows


def _differences(
    methods: Mapping[str, Mapping[str, Frames]],
    corruptions: Sequence[str],
    severities: Sequence[int],
) -> list[list[str]]:
    """Return rows of each method minus MC-dropout: what falls is better but for coverage.

    The last column is the difference at the last severity minus that of the clean frames.
    """
    rows = []
    for name, method in methods.items():
        if name == DROPOUT:
            continue
        for key in OF_FRAMES:
            differences = []
            for conditions in _levels(corruptions, severities):
                own = _mean_of_frames(method, conditions, key)
                differences.append(own - _mean_of_frames(methods[DROPOUT], conditions, key))
            differences.append(differences[-1] - differences[0])
            rows.append([name, SCORES[key], *map(_interval, differences)])
    return rows


def _mean_of_frames(
    method: Mapping[str, Frames], conditions: Sequence[str], key: str
) -> NDArray[np.float64]:
    """Return each frame's score, the mean over the conditions."""
    return np.mean([_floats(method[condition][key]) for condition in conditions], axis=0)


def _interval(values: NDArray[np.float64]) -> str:
    """Return the mean and its 95 % interval by bootstrap over the frames."""
    resamples = np.random.default_rng(0).integers(len(values), size=(RESAMPLINGS, len(values)))
    low, high = np.quantile(values[resamples].mean(axis=1), (0.025, 0.975))
    return f"{values.mean():+.3f} ({low:+.3f} to {high:+.3f})"


def _means(frames: Frames) -> dict[str, float]:
    return {key: float(np.nanmean(_floats(frames[key]))) for key in OF_FRAMES}


def _scores_by_corruption(
    conditions: Mapping[str, Frames], corruptions: Sequence[str], severities: Sequence[int]
) -> dict[str, list[dict[str, float]]]:
    """Return the scores of each corruption at each severity."""
    scores = {}
    for corruption in corruptions:
        scores[corruption] = [
            _scores(conditions["clean"], conditions[f"{corruption}_{severity}"])
            for severity in severities
        ]
    return scores


def _scores(clean: Frames, frames: Frames) -> dict[str, float]:
    """Return the scores of a condition, and how well it is separated from the clean frames."""
    return {
        **_means(frames),
        "auroc_sigma": auroc(_floats(clean["sigma"]), _floats(frames["sigma"])),
        "auroc_unfamiliarity": _auroc_where_known(clean, frames),
    }


def _auroc_where_known(clean: Frames, frames: Frames) -> float:
    if None in clean["unfamiliarity"]:
        return float("nan")
    return auroc(_floats(clean["unfamiliarity"]), _floats(frames["unfamiliarity"]))


def _floats(values: Sequence[float | None]) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)


def _mean_over_corruptions(
    by_corruption: Mapping[str, Sequence[Mapping[str, float]]],
) -> dict[str, Any]:
    """Return each score by severity, the mean over the corruptions."""
    means = {}
    for key in SCORES:
        scores = [list(map(itemgetter(key), rows)) for rows in by_corruption.values()]
        means[key] = np.mean(scores, axis=0).tolist()
    return means


def _cell(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else "–"


def _plot(
    path: Path,
    domains: Mapping[str, Sequence[str]],
    means: Mapping[str, Mapping[str, Sequence[float]]],
    clean: Mapping[str, Mapping[str, float]],
    severities: Sequence[int],
) -> None:
    """Plot a row of panels for each domain, a curve for each method."""
    figure, panels = figures.panels(len(domains), len(SCORES))
    for row, titles in zip(panels, domains.values(), strict=True):
        for axes, (key, score) in zip(row, SCORES.items(), strict=True):
            for number, title in enumerate(titles):
                color = figures.COLORS[number % len(figures.COLORS)]
                values = [clean[title].get(key, float("nan")), *means[title][key]]
                axes.plot([0, *severities], values, "o-", color=color, label=title)
            axes.set_xlabel("severity")
            axes.set_title(score)
        row[0].legend(fontsize=6)
    figures.save(figure, path)
