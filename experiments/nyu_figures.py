# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Plots of the NYU experiment: curves of all methods, and sigma maps of one test image."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from experiments import figures
from experiments.merci_readings import smallest_errors
from experiments.nyu_methods import ROWS
from experiments.nyu_scores import ALPHA, CONFIG, Scores
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.metrics import n_merci, valid_pixels
from uncertainty_depth.metrics.merci import order_number
from uncertainty_depth.report.images import DEPTH_COLORS, SIGMA_COLORS

STATISTICS = {"abs_rel": "mean relative error", "rmse": "RMSE (m)", "a1": "1 - a1"}
DEPTH_LINE = {"color": "0.5", "linestyle": ":", "label": "sigma = depth (of Multi Epochs)"}
COLUMNS = 4
SMOOTH = 95  # percentile of sigma at the upper end of its colours


def _lines() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each row's name and the style of its line."""
    styles = product(("-", "--", "-."), figures.COLORS)
    for (name, row), (dashes, color) in zip(ROWS.items(), cycle(styles), strict=False):
        yield name, {"color": color, "linestyle": dashes, "label": row.title, "linewidth": 1.2}


def interval_figure(scores: Scores) -> figures.Figure:
    """Plot MAE and n-MeRCI per interval of true depth, the paper's figures 4 and 5.

    Mean over the seeds, where an interval has enough pixels. The MAE is that of the 95 % of the
    pixels with the smallest errors, as in the paper.
    """
    figure, panels = figures.panels(1, 2, width=6.5, height=4.6)
    for name, style in _lines():
        intervals = [entry["intervals"] for entry in scores[name]]
        middle = np.convolve(intervals[0]["edges"], [0.5, 0.5], "valid")
        enough = np.array(intervals[0]["pixels"]) >= intervals[0]["enough"]
        for axes, key in zip(panels.flat, ("mae_kept", "plain"), strict=True):
            mean = np.mean([_floats(entry[key]) for entry in intervals], axis=0)
            axes.plot(middle, np.where(enough, mean, np.nan), **style)
    for axes, label in zip(panels.flat, ("MAE of 95 % (m)", "n-MeRCI"), strict=True):
        axes.set(xlabel="true depth (m)", ylabel=label, ylim=(0, None))
    panels[0, 1].axhline(1.0, color="0.6", linewidth=1, linestyle=":")
    panels[0, 1].set_ylim(0, 3)
    figure.legend(
        *panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8
    )
    return figure


def alpha_figure(scores: Scores) -> figures.Figure:
    """Plot n-MeRCI against the fraction of pixels covered; mean over the seeds."""
    figure, panels = figures.panels(1, 1, width=6.5, height=4.6)
    axes = panels[0, 0]
    for name, style in _lines():
        _alpha_line(axes, [entry["n_merci"] for entry in scores[name]], "predicted", style)
    of_depth = [entry["n_merci"] for entry in scores["multi_epochs"]]
    _alpha_line(axes, of_depth, "proportional_to_depth", DEPTH_LINE)
    axes.axhline(1.0, color="0.6", linewidth=1, linestyle=":")
    axes.set(xlabel="alpha", ylabel="n-MeRCI", ylim=(0, 2))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right", fontsize=8)
    return figure


def _alpha_line(
    axes: Axes, curves: Sequence[Mapping[str, Any]], candidate: str, style: Mapping[str, Any]
) -> None:
    """Plot a line where the denominator is positive."""
    values = np.mean([_floats(curve[candidate]) for curve in curves], axis=0)
    is_positive = np.all([curve["tail"] for curve in curves], axis=0)
    axes.plot(_floats(curves[0]["alphas"]), np.where(is_positive, values, np.nan), **style)


def sparsification_figure(scores: Scores) -> figures.Figure:
    """Plot the error of the remaining pixels above the oracle's, mean over the images.

    Mean over the seeds. Depths differ between rows, hence the difference to the oracle.
    """
    figure, panels = figures.panels(1, 3, width=5.0, height=4.6)
    for axes, (statistic, label) in zip(panels.flat, STATISTICS.items(), strict=True):
        for name, style in _lines():
            _sparsification_line(
                axes,
                [entry["sparsification"][statistic] for entry in scores[name]],
                "predicted",
                style,
            )
        _sparsification_line(
            axes,
            [entry["sparsification"][statistic] for entry in scores["multi_epochs"]],
            "proportional_to_depth",
            DEPTH_LINE,
        )
        axes.set(
            xlabel="most uncertain pixels removed (%)",
            ylabel=f"{label} of the rest, above the oracle",
            ylim=(0, None),
        )
    figure.legend(
        *panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8
    )
    return figure


def _sparsification_line(
    axes: Axes, curves: Sequence[Mapping[str, Any]], candidate: str, style: Mapping[str, Any]
) -> None:
    above = [_floats(curve[candidate]) - _floats(curve["oracle"]) for curve in curves]
    percent = _floats(curves[0]["percent"])
    # without the last point, which is 0 by definition: no pixel is left
    axes.plot(percent[:-1], np.mean(above, axis=0)[:-1], **style)


def _floats(values: object) -> NDArray[np.float64]:
    """Return numbers from JSON, where None is NaN."""
    return np.asarray(values, dtype=np.float64)


def typical_frame(scores: Scores) -> str:
    """Return the test image whose mean abs_rel over all rows (first seed) is the median."""
    rows = [of_seeds[0]["frames"] for of_seeds in scores.values()]
    mean = {}
    for frame in rows[0]:
        mean[frame] = float(np.mean([row[frame]["depth.abs_rel"] for row in rows]))
    return sorted(mean, key=lambda frame: (mean[frame], frame))[len(mean) // 2]


def maps_figure(
    frame: Frame, maps: Sequence[tuple[str, float, float, DepthPrediction]]
) -> figures.Figure:
    """Plot image, ground truth, depth and error of the best row, then all sigma maps.

    Args:
        frame: the test image.
        maps: per row its title, its AUSE over the better baseline's on the split, its AUSE rmse
            on this image, and its prediction; the best first. n-MeRCI and MAE at 95 % of the
            pixels stand below, as in the paper's figure 3.
    """
    rows = math.ceil((len(maps) + 4) / COLUMNS)
    figure, panels = figures.panels(rows, COLUMNS, width=3.3, height=2.9)
    best = maps[0][3]
    truth = frame.need_ground_truth()
    error = np.abs(best.depth_m - truth)
    max_depth = float(np.nanpercentile(truth, 98))
    max_error = float(np.nanpercentile(error, SMOOTH))
    panels.flat[0].imshow(frame.need_image())
    panels.flat[0].set_title(f"test image {frame.name}", fontsize=9)
    _map(panels.flat[1], truth, max_depth, DEPTH_COLORS, "ground truth (m)")
    _map(panels.flat[2], best.depth_m, max_depth, DEPTH_COLORS, f"depth (m), {maps[0][0]}")
    _map(panels.flat[3], error, max_error, SIGMA_COLORS, "its error (m)")
    for rank, (title, score, ause, prediction) in enumerate(maps, 1):
        label = (
            f"{rank}. {title}\n{score:.3f} (this image {ause:.3f})\n{_at_95(prediction, truth)}"
        )
        max_sigma = float(np.percentile(prediction.sigma_m, SMOOTH))
        _map(panels.flat[3 + rank], prediction.sigma_m, max_sigma, SIGMA_COLORS, label)
    for axes in panels.flat:
        axes.set(xticks=[], yticks=[])
        axes.set_frame_on(False)
    figure.suptitle(
        "sigma (m), by AUSE against the better baseline on the test split, the best first; "
        "of the middle seed, each on its own scale",
        fontsize=10,
    )
    return figure


def _at_95(prediction: DepthPrediction, truth_m: NDArray[np.float32]) -> str:
    """Return n-MeRCI at 95 % of an image's pixels, and the MAE of the 95 % of least error."""
    depth, sigma, truth = valid_pixels(
        prediction.depth_m, prediction.sigma_m, truth_m, CONFIG.min_depth, CONFIG.max_depth
    )
    error = np.abs(depth - truth)
    selection = smallest_errors(error, order_number(ALPHA, len(error)))
    merci = n_merci(error, sigma, ALPHA)
    return f"n-MeRCI {merci:.2f}, MAE {error[selection].mean():.2f} m of 95 %"


def _map(axes: Axes, values: NDArray[np.float32], maximum: float, colors: str, title: str) -> None:
    image = axes.imshow(
        values, cmap=colors, vmin=0, vmax=max(maximum, 1e-6), interpolation="nearest"
    )
    axes.figure.colorbar(image, ax=axes, shrink=0.8)
    axes.set_title(title, fontsize=9)
