"""Figures of the curves, fit for a report and for a paper; drawn without any global state of matplotlib.

Every function takes what `OnlineMetrics.curves` returns. Colours are Okabe and Ito's, told apart by the colour blind, and lines differ in dashes too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

LINES: dict[str, dict[str, Any]] = {
    "method": {"color": "#0072B2", "linewidth": 2.0, "label": "predicted sigma", "zorder": 4},
    "proportional_to_depth": {
        "color": "#D55E00",
        "linestyle": (0, (5, 1.5)),
        "label": "sigma proportional to depth",
    },
    "constant": {"color": "#E69F00", "linestyle": (0, (1, 1)), "label": "constant sigma"},
    "oracle": {
        "color": "#009E73",
        "linestyle": (0, (6, 1.5, 1, 1.5)),
        "label": "oracle (true error)",
    },
    "random": {
        "color": "#666666",
        "linestyle": (0, (2, 2)),
        "linewidth": 1.0,
        "label": "random removal",
    },
}
ERROR_LABELS = {
    "abs_rel": "mean relative error of the rest",
    "rmse": "RMSE of the rest (m)",
    "a1": "rest outside a factor of 1.25 (1 - a1)",
}
CANDIDATES = ("method", "proportional_to_depth", "constant")
SIZE = (5.2, 3.6)
MARKED_LEVELS = (0.68, 0.95)


def figures(curves: dict[str, Any], law: str = "gaussian") -> dict[str, Figure]:
    """All plots by a name that suits a file, reliability by a law; none without a pixel."""
    if not curves["pixels"]:
        return {}
    named = {
        f"sparsification_{statistic}": sparsification_figure(curves, statistic)
        for statistic in curves["sparsification"]
    }
    return {
        **named,
        "n_merci": n_merci_figure(curves),
        "reliability": reliability_figure(curves, law),
        "depth_intervals": intervals_figure(curves),
    }


def sparsification_figure(curves: dict[str, Any], statistic: str = "rmse") -> Figure:
    """Error of the rest against the share removed, with oracle, random removal and the baseline; the area between method and oracle is the AUSE.

    Args:
        curves: of `OnlineMetrics.curves`.
        statistic: "abs_rel", "rmse" or "a1".
    """
    figure, axes = _figure(f"Sparsification, {curves['variant']}, all pixels pooled")
    if not curves["pixels"]:
        return figure
    drawn = curves["sparsification"][statistic]
    removed = 100 * drawn["fractions"]
    axes.fill_between(
        removed,
        drawn["oracle"],
        drawn["method"],
        color=LINES["method"]["color"],
        alpha=0.12,
        linewidth=0,
    )
    for name in ("random", "proportional_to_depth", "method", "oracle"):
        ause = f", pooled AUSE {drawn['ause'][name]:.3g}" if name in drawn["ause"] else ""
        axes.plot(removed, drawn[name], **{**LINES[name], "label": LINES[name]["label"] + ause})
    axes.set(
        xlabel="most uncertain pixels removed (%)",
        ylabel=ERROR_LABELS[statistic],
        xlim=(0, 100),
        ylim=(0, None),
    )
    axes.legend(frameon=False, fontsize=8)
    return figure


def n_merci_figure(curves: dict[str, Any]) -> Figure:
    """n-MeRCI against alpha in both readings, side by side; below 1 is better than no uncertainty.

    The plain reading is drawn where the largest error covered is above the mean error: below that its denominator is negative, and at it a pole.
    """
    figure = Figure(figsize=(2 * SIZE[0] * 0.85, SIZE[1]), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, reading in zip(panels, ("plain", "withdrawn"), strict=True):
        style(
            axes,
            f"n-MeRCI, {'over all pixels' if reading == 'plain' else 'largest errors withdrawn'} (Moukari et al. 2019)",
        )
        shown = (
            curves["n_merci"]["tail"]
            if reading == "plain"
            else np.ones(len(curves["n_merci"]["alphas"]), dtype=bool)
        )
        for name in CANDIDATES:
            values = np.where(shown, curves["n_merci"][reading][name], np.nan)
            axes.plot(
                100 * curves["n_merci"]["alphas"], values, **LINES[name], marker=".", markersize=4
            )
        axes.axvline(100 * curves["alpha"], color="#BBBBBB", linewidth=0.8, zorder=0)
        axes.set(
            xlabel="alpha: share of the pixels covered (%)",
            ylabel="n-MeRCI (0 best, 1 no information)",
            xlim=(0, 100),
        )
        axes.set_ylim(0, _top(curves["n_merci"][reading], shown))
    panels[0].legend(frameon=False, fontsize=8)
    return figure


def _top(drawn: dict[str, Any], shown: np.ndarray) -> float:
    """Upper limit that one value next to the pole does not set."""
    values = np.concatenate([drawn[name][shown & np.isfinite(drawn[name])] for name in CANDIDATES])
    return max(1.2, min(1.2 * float(np.percentile(values, 85)), 5.0)) if values.size else 1.2


def reliability_figure(curves: dict[str, Any], law: str = "gaussian") -> Figure:
    """Fraction of the errors within the interval of each level.

    Above the diagonal sigma is too large, below it too small; 68 and 95 % are marked.
    """
    figure, axes = _figure(f"Reliability of {law.title()} intervals (Gustafsson et al. 2020)")
    drawn = curves["reliability_laplace" if law == "laplace" else "reliability"]
    for level in MARKED_LEVELS:
        covered = 100 * float(np.interp(level, drawn["levels"], drawn["method"]))
        axes.axvline(100 * level, color="#BBBBBB", linewidth=0.8, zorder=0)
        axes.plot(100 * level, covered, "o", color=LINES["method"]["color"], zorder=5)
        below = covered > 50
        axes.annotate(
            f"{covered:.1f} % at {level:.0%}",
            (100 * level, covered),
            (0, -16 if below else 7),
            textcoords="offset points",
            ha="right" if level > 0.9 else "center",
            fontsize=8,
        )
    axes.plot([0, 100], [0, 100], color="#666666", linewidth=0.8, label="calibrated")
    axes.fill_between(
        100 * drawn["levels"],
        100 * drawn["levels"],
        100 * drawn["method"],
        color=LINES["method"]["color"],
        alpha=0.12,
        linewidth=0,
    )
    for name in CANDIDATES:
        fitted = "" if name == "method" else ", scale fitted"
        axes.plot(
            100 * drawn["levels"],
            100 * drawn[name],
            **{**LINES[name], "label": LINES[name]["label"] + fitted},
        )
    axes.set(
        xlabel="confidence level p (%)",
        ylabel="errors inside the interval (%)",
        xlim=(0, 100),
        ylim=(0, 100),
    )
    axes.legend(frameon=False, fontsize=8)
    return figure


def intervals_figure(curves: dict[str, Any]) -> Figure:
    """MAE, n-MeRCI and number of pixels against the true depth."""
    figure = Figure(figsize=(SIZE[0], SIZE[1] * 1.5), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True, height_ratios=(2, 2, 1))
    drawn = curves["plotted_intervals"]
    middle = (drawn["edges"][1:] + drawn["edges"][:-1]) / 2
    filled = drawn["pixels"] > 0
    enough = drawn["pixels"] >= drawn["enough"]
    style(
        panels[0],
        f"By depth, intervals of {np.diff(drawn['edges'][:2])[0]:.3g} m with {drawn['enough']} pixels or more",
    )
    mean = (
        np.nanmean(drawn["n_merci"][enough])
        if np.isfinite(drawn["n_merci"][enough]).any()
        else np.nan
    )
    for axes, name, label in (
        (panels[0], "mae", "MAE (m)"),
        (panels[1], "n_merci", f"n-MeRCI, alpha {curves['alpha']:g}"),
    ):
        axes.plot(
            middle,
            np.where(enough, drawn[name], np.nan),
            **{**LINES["method"], "label": None},
            marker=".",
            markersize=3,
        )
        axes.set(ylabel=label, ylim=(0, None))
    panels[1].axhline(1, **{**LINES["constant"], "label": "constant sigma"})
    panels[1].axhline(
        mean,
        color=LINES["method"]["color"],
        linewidth=0.8,
        label=f"mean of {enough.sum()} intervals: {mean:.3g}",
    )
    panels[1].legend(frameon=False, fontsize=8)
    panels[2].step(middle[filled], drawn["pixels"][filled], where="mid", color="#666666")
    panels[2].set(xlabel="true depth (m)", ylabel="pixels", yscale="log")
    for axes in panels[1:]:
        style(axes, "")
    return figure


def _figure(title: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    style(axes, title)
    return figure, axes


def style(axes: Axes, title: str) -> None:
    """Give axes their title, grid and font sizes."""
    axes.set_title(title, fontsize=10)
    axes.grid(color="#DDDDDD", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
