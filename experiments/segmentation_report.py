# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Table, JSON and plots of the experiment `segmentation`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from experiments import figures, tables
from experiments.segmentation_data import CLASSES, VOID
from uncertainty_depth.core import atomic, strict

Scores = Mapping[str, Mapping[str, Mapping[int, Sequence[Mapping[str, Any]]]]]
"""Domain, method, M, set."""
METRICS = {
    "ause": "AUSE",
    "ece": "ECE",
    "mean_iou": "mIoU",
    "brier": "Brier score",
    "accuracy": "accuracy",
}
PLOTTED = ("ause", "ece", "mean_iou")
COLOR_OF = dict(zip(("ensemble", "mc_dropout"), figures.COLORS, strict=False))
FRACTIONS = np.arange(100) / 100


def write(output: Path, scores: Scores, settings: Mapping[str, Any], members: int) -> None:
    """Write table.md, table.csv, summary.json, and plots: metrics, reliability, sparsification.

    Mean and sample standard deviation over the sets of an ensemble and the networks of MC-dropout.
    """
    header, rows = table(scores)
    models = max(len(sets) for sets in scores["day"]["mc_dropout"].values())
    intro = (
        f"{members} ensemble members, {models} networks of MC-dropout; mean ± standard deviation "
        "over drawn sets of members, and over networks; without ± there is a single one."
    )
    atomic.write_text(output / "table.md", f"{intro}\n\n{tables.markdown(header, rows)}")
    tables.write_table(output / "table.csv", header, rows)
    summary = {"settings": settings, "members": members, "dropout_models": models}
    strict.write_json(output / "summary.json", {**summary, "scores": scores})
    figures.save(plot_metrics(scores), output / "metrics.png")
    figures.save(plot_reliability(scores), output / "reliability.png")
    figures.save(plot_sparsification(scores), output / "sparsification.png")


class Example(NamedTuple):
    """An image, its labels, and the class and entropy of an ensemble at each pixel, (h, w)."""

    image: NDArray[np.uint8]
    labels: NDArray[np.uint8]
    classes: NDArray[np.integer]
    entropy: NDArray[np.floating]


def plot_examples(examples: Mapping[str, Example]) -> figures.Figure:
    """Plot an image of each domain with its prediction and entropy, the paper's figure 1."""
    figure, axes = figures.panels(len(examples), 4, 3.0, 2.3)
    for row, (domain, example) in zip(axes, examples.items(), strict=True):
        row[0].imshow(example.image)
        for axis, classes in zip(row[1:3], (example.labels, example.classes), strict=True):
            classes_without_void = np.ma.masked_equal(classes, VOID)
            axis.imshow(
                classes_without_void, cmap="tab20", vmin=0, vmax=19, interpolation="nearest"
            )
        entropy_image = row[3].imshow(
            example.entropy, cmap="cividis", vmin=0, vmax=np.log(len(CLASSES))
        )
        figure.colorbar(entropy_image, ax=row[3], shrink=0.7)
        for axis, title in zip(row, ("", ": labels", ": ensemble", ": entropy"), strict=True):
            axis.set_title(f"{domain}{title}", fontsize=9)
            axis.set(xticks=[], yticks=[])
    return figure


def counts_of(scores: Scores) -> list[int]:
    """Return the numbers of samples of any method, ascending."""
    of_methods = chain.from_iterable(methods.values() for methods in scores.values())
    return sorted(set(chain.from_iterable(of_methods)))


def table(scores: Scores) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: each metric by domain, method and M."""
    counts = counts_of(scores)
    header = ["domain", "metric", "method", *(f"M = {count}" for count in counts)]
    rows = []
    for domain, methods in scores.items():
        for metric, title in METRICS.items():
            for method, by_count in methods.items():
                cells = [_cell(by_count.get(count, ()), metric) for count in counts]
                rows.append([domain, title, method, *cells])
    return header, rows


def _cell(sets: Sequence[Mapping[str, Any]], metric: str) -> str:
    if not sets:
        return "–"
    return tables.mean_and_deviation([scores[metric] for scores in sets], 4)


def plot_metrics(scores: Scores) -> figures.Figure:
    """Plot AUSE, ECE and mIoU against M with their deviations, the paper's figure 8."""
    figure, axes = figures.panels(len(scores), len(PLOTTED))
    counts = counts_of(scores)
    for row, (domain, methods) in zip(axes, scores.items(), strict=True):
        for axis, metric in zip(row, PLOTTED, strict=True):
            for method, by_count in methods.items():
                _plot_metric(axis, by_count, metric, method)
            axis.set(title=f"{domain}: {METRICS[metric]}", xlabel="M", xscale="log")
            axis.set_xticks(counts, [str(count) for count in counts])
            axis.xaxis.minorticks_off()
    axes[0, 0].legend(fontsize=8)
    return figure


def _plot_metric(
    axis: Axes, by_count: Mapping[int, Sequence[Mapping[str, Any]]], metric: str, method: str
) -> None:
    values = [np.array(list(map(itemgetter(metric), sets))) for sets in by_count.values()]
    means = [of_count.mean() for of_count in values]
    deviations = [of_count.std(ddof=1) if len(of_count) > 1 else 0.0 for of_count in values]
    axis.errorbar(
        list(by_count), means, deviations, marker="o", markersize=3, capsize=2,
        color=COLOR_OF[method], label=method,
    )  # fmt: skip


def plot_reliability(scores: Scores) -> figures.Figure:
    """Plot the reliability diagrams of all sets, with the histogram of the first one's pixels.

    A row for each domain and method, a column for each M: the paper's figures 32 to 35.
    """
    figure, panels = _grid(scores)
    for axis, sets, color in panels:
        count = np.array(sets[0]["reliability"]["pixels"], dtype=float)
        places = (np.arange(len(count)) + 0.5) / len(count)
        axis.bar(places, count / count.sum(), 1 / len(count), color="0.85")
        axis.plot([0, 1], [0, 1], ":", color="0.4")
        for of_set in sets:
            diagram = of_set["reliability"]
            confidence = np.array(diagram["confidence"], dtype=float)
            accuracy = np.array(diagram["accuracy"], dtype=float)
            axis.plot(confidence, accuracy, "o-", color=color, markersize=3, linewidth=0.8)
        axis.set(xlabel="confidence", ylabel="accuracy")
    return figure


def plot_sparsification(scores: Scores) -> figures.Figure:
    """Plot the Brier score of the rest by entropy, and by the oracle (dotted), of all sets.

    A row for each domain and method, a column for each M: the paper's figures 28 to 31.
    """
    figure, panels = _grid(scores)
    for axis, sets, color in panels:
        for of_set in sets:
            axis.plot(FRACTIONS, of_set["by_entropy"], color=color, linewidth=0.8)
            axis.plot(FRACTIONS, of_set["oracle"], ":", color=color, linewidth=0.8)
        axis.set(xlabel="fraction of pixels removed", ylabel="Brier score, normalised")
    return figure


def _grid(
    scores: Scores,
) -> tuple[figures.Figure, list[tuple[Axes, Sequence[Mapping[str, Any]], str]]]:
    """Return a figure, and panel, sets and colour of each domain, method and M that there is."""
    counts = counts_of(scores)
    rows: list[tuple[str, str]] = []
    for domain, methods in scores.items():
        rows += [(domain, method) for method in methods]
    figure, axes = figures.panels(len(rows), len(counts), 2.6, 2.3, sharex=True, sharey=True)
    panels = []
    for row, (domain, method) in zip(axes, rows, strict=True):
        for axis, count in zip(row, counts, strict=True):
            sets = scores[domain][method].get(count)
            if not sets:
                axis.set_axis_off()
                continue
            axis.set_title(f"{domain}, {method}, M = {count}", fontsize=8)
            panels.append((axis, sets, COLOR_OF[method]))
    return figure, panels
