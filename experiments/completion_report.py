# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Tables and claims of the experiment on depth completion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments import figures, tables
from experiments.completion_models import ENSEMBLE, MC_DROPOUT, Settings
from experiments.figures import COLORS, panels
from experiments.pooled_sparsification import FRACTIONS
from uncertainty_depth.core import atomic
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.metrics.calibration import CONFIDENCE_LEVELS
from uncertainty_depth.report.images import DEPTH_COLORS, SIGMA_COLORS

Table = tuple[list[str], list[list[str]]]
Scores = Mapping[str, Any]
Examples = Mapping[str, tuple[Frame, DepthPrediction]]
TITLES = {ENSEMBLE: "ensemble", MC_DROPOUT: "MC-dropout"}
METRICS = {"AUSE": "ause", "constant sigma": "constant", "AUCE": "auce", "RMSE (m)": "rmse"}
UNKNOWN = "–"
LEVEL = 89
"""Index of 90 % in `CONFIDENCE_LEVELS`: above it sigma is too large, below too small."""


def write(
    output: Path,
    shifted: Mapping[str, Scores],
    examples: Examples,
    settings: Settings,
    quick: bool,
) -> None:
    """Write table.md, shifted.csv and the plots."""
    table = shifted_table(shifted)
    tables.write_table(output / "shifted.csv", *table)
    title = (
        "Trained on rendered worlds. Mean ± standard deviation over sets of members of the "
        "ensemble, or over networks with dropout."
    )
    warning = "**Quick run: only a test that the run works; its numbers mean nothing.**\n"
    parts = [warning] if quick else []
    parts.append(f"{title}\n\n{tables.markdown(*table)}")
    parts += [f"- {claim}\n" for claim in claims(shifted)]
    atomic.write_text(output / "table.md", "\n".join(parts))
    sizes = [str(size) for size in settings.sizes]
    plots = all_figures(shifted, sizes)
    plots["examples"] = examples_figure(examples)
    for name, figure in plots.items():
        if quick:
            figure.text(0.0, 0.0, "quick run", color="red", fontsize=8)
        figures.save(figure, output / f"{name}.png")


def shifted_table(shifted: Mapping[str, Scores]) -> Table:
    """Return test set, method and number of members or passes with the metrics over the sets."""
    rows = []
    for name, of_methods in shifted.items():
        for method, title in TITLES.items():
            for size, sets in of_methods[method].items():
                columns = [list(map(itemgetter(key), sets)) for key in METRICS.values()]
                cells = list(map(_over_sets, columns))
                covered = [scores["covered"][LEVEL] for scores in sets]
                rows.append([name, title, size, str(len(sets)), *cells, _over_sets(covered)])
        plain = f"{of_methods['interpolation']['rmse']:.3f}"
        rows.append([name, "linear interpolation", *[UNKNOWN] * 5, plain, UNKNOWN])
    return ["scored on", "method", "M", "sets", *METRICS, "covered at 90 %"], rows


def _over_sets(values: Sequence[float]) -> str:
    """Return mean and population standard deviation, as the paper's code has it."""
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}"


def claims(shifted: Mapping[str, Scores]) -> Iterator[str]:
    """Yield what the numbers say to each claim of the paper, for each test set."""
    for name, of_methods in shifted.items():
        ensemble = of_methods[ENSEMBLE]
        dropout = of_methods[MC_DROPOUT]
        smaller = [size for size in ensemble if _mean(ensemble, size) < _mean(dropout, size)]
        yield (
            f"{name}: the ensemble's mean AUSE is below MC-dropout's at {len(smaller)} of "
            f"{len(ensemble)} numbers M (M = {', '.join(smaller) or 'none'})."
        )
        for method, by_size in ((ENSEMBLE, ensemble), (MC_DROPOUT, dropout)):
            first, *_, last = by_size
            before = _mean(by_size, first, "auce")
            after = _mean(by_size, last, "auce")
            change = "improves" if after < before else "worsens"
            yield (
                f"{name}: AUCE of {TITLES[method]} {change} from {before:.3f} (M = {first}) to "
                f"{after:.3f} (M = {last})."
            )


def _mean(by_size: Scores, size: str, key: str = "ause") -> float:
    return float(np.mean([scores[key] for scores in by_size[size]]))


METHOD_STYLES = {ENSEMBLE: ("ensemble", COLORS[0]), MC_DROPOUT: ("MC-dropout", COLORS[1])}
SMOOTH = 98
"""Percentile at the upper end of a map's colours."""
PLOTTED = {"ause": "AUSE", "auce": "AUCE", "rmse": "RMSE (m)"}


def all_figures(shifted: Mapping[str, Scores], sizes: Sequence[str]) -> dict[str, Figure]:
    """Return file name to plot."""
    return {
        "metrics": metrics_figure(shifted),
        "sparsification": curves_figure(shifted, sizes, _draw_sparsification, "RMSE / first"),
        "sparsification_error": curves_figure(shifted, sizes, _draw_error, "above the oracle"),
        "calibration": curves_figure(shifted, sizes, _draw_calibration, "fraction covered"),
    }


def examples_figure(examples: Mapping[str, tuple[Frame, DepthPrediction]]) -> Figure:
    """Plot a frame of each test set: image, true and predicted depth, error, sigma (figure 1).

    Given pixels are dots in the image; error and sigma share their colours.
    """
    figure, axes = panels(len(examples), 5, 2.6, 2.1)
    for row, (name, (frame, prediction)) in zip(axes, examples.items(), strict=True):
        truth = frame.need_ground_truth()
        error = np.abs(prediction.depth_m - truth)
        far = float(np.nanpercentile(truth, SMOOTH))
        large = float(np.nanpercentile(error, SMOOTH))
        row[0].imshow(frame.need_image())
        if frame.sparse_m is not None:
            rows, columns = np.nonzero(np.isfinite(frame.sparse_m))
            row[0].plot(columns, rows, ".", color="yellow", markersize=0.5)
        row[0].set_title(name, fontsize=9)
        _draw_map(row[1], truth, far, DEPTH_COLORS, "withheld depth (m)")
        _draw_map(row[2], prediction.depth_m, far, DEPTH_COLORS, "depth (m)")
        _draw_map(row[3], error, large, SIGMA_COLORS, "error (m)")
        _draw_map(row[4], prediction.sigma_m, large, SIGMA_COLORS, "sigma (m)")
    for panel in axes.flat:
        panel.set(xticks=[], yticks=[])
    return figure


def _draw_map(
    panel: Axes, values: NDArray[np.floating], maximum: float, colors: str, title: str
) -> None:
    image = panel.imshow(values, cmap=colors, vmin=0, vmax=maximum, interpolation="nearest")
    panel.figure.colorbar(image, ax=panel, shrink=0.7)
    panel.set_title(title, fontsize=9)


def metrics_figure(shifted: Mapping[str, Scores]) -> Figure:
    """Plot the three metrics by the number of members or passes (figure 6)."""
    figure, axes = panels(len(shifted), len(PLOTTED), 3.4, 2.6)
    for row, (name, of_methods) in zip(axes, shifted.items(), strict=True):
        for panel, (key, title) in zip(row, PLOTTED.items(), strict=True):
            for method, (label, color) in METHOD_STYLES.items():
                _draw_metric(panel, of_methods[method], key, label, color)
            panel.set(xscale="log", xlabel="M", ylabel=title, title=name)
            sizes = [int(size) for size in of_methods[ENSEMBLE]]
            panel.set_xticks(sizes, [str(size) for size in sizes], minor=False)
            panel.set_xticks([], minor=True)
    axes[0, 0].legend()
    return figure


def _draw_metric(panel: Axes, by_size: Scores, key: str, label: str, color: str) -> None:
    values = [list(map(itemgetter(key), sets)) for sets in by_size.values()]
    means = [np.mean(of_size) for of_size in values]
    deviations = [np.std(of_size) for of_size in values]
    sizes = [int(size) for size in by_size]
    panel.errorbar(sizes, means, deviations, color=color, label=label, marker="o", capsize=3)


def curves_figure(
    shifted: Mapping[str, Scores], sizes: Sequence[str], draw: Any, title: str
) -> Figure:
    """Plot a curve of every set: a row for each test set, a column for each number M."""
    figure, axes = panels(len(shifted), len(sizes), 2.6, 2.4, sharex=True, sharey="row")
    for row, (name, of_methods) in zip(axes, shifted.items(), strict=True):
        for panel, size in zip(row, sizes, strict=True):
            for method, (label, color) in METHOD_STYLES.items():
                draw(panel, of_methods[method][size], label, color)
            panel.set_title(f"{name}, M = {size}", fontsize=9)
        row[0].set_ylabel(title)
    axes[0, 0].legend(fontsize=7)
    return figure


def _draw_sparsification(panel: Axes, sets: Sequence[Scores], label: str, color: str) -> None:
    """Draw the first set, an example as in figures 22 and 23, and its oracle."""
    panel.plot(FRACTIONS, sets[0]["sparsification"], color=color, label=label)
    panel.plot(FRACTIONS, sets[0]["oracle"], color=color, linestyle=":")


def _draw_error(panel: Axes, sets: Sequence[Scores], label: str, color: str) -> None:
    """Draw the sparsification error of every set (figures 24 and 25)."""
    for number, scores in enumerate(sets):
        error = np.subtract(scores["sparsification"], scores["oracle"])
        panel.plot(FRACTIONS, error, color=color, alpha=0.5, label=None if number else label)


def _draw_calibration(panel: Axes, sets: Sequence[Scores], label: str, color: str) -> None:
    """Draw coverage against the level for every set (figures 7, 26 and 27)."""
    for number, scores in enumerate(sets):
        covered = scores["covered"]
        panel.plot(
            CONFIDENCE_LEVELS, covered, color=color, alpha=0.5, label=None if number else label
        )
    panel.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle="--")
