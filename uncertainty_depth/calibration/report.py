"""A calibration as text for the terminal, as `calibration.json`, and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from uncertainty_depth import atomic
from uncertainty_depth.calibration.choose import Figures, mean_figures
from uncertainty_depth.calibration.run import Calibration, Trial
from uncertainty_depth.config import CalibrationConfig
from uncertainty_depth.evaluation.frame_table import flatten
from uncertainty_depth.evaluation.summary import HIGHER_IS_BETTER, MARGIN, UNCERTAINTY_ROWS
from uncertainty_depth.experiments.runner import write_json
from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.metrics.distributions import LEVELS
from uncertainty_depth.options import to_mapping

COLUMNS = ("auce", "nll", "n_merci", "n_merci_trimmed", "ause.rmse")
ROWS = (
    "auce",
    "nll",
    "n_merci",
    "n_merci_trimmed",
    "ause.abs_rel",
    "ause.rmse",
    "ause.a1",
    "spearman",
)


@dataclass(frozen=True)
class Context:
    """Where a calibration comes from: the sources' names, the model's description, the options; notes say what to mind about the sources."""

    sources: tuple[str, ...]
    model: Mapping[str, Any]
    config: CalibrationConfig
    notes: tuple[str, ...] = ()


def uncertainty(metrics: OnlineMetrics) -> Figures:
    """The figures of sigma by dotted name."""
    return flatten(metrics.compute()["uncertainty"])


def table(calibration: Calibration) -> str:
    """Every candidate on held-out frames, then before and after on frames not used."""
    chosen = calibration.choice.sigma_map.kind
    lines = ["candidates, mean over the parts of the frames left out in turn:"]
    lines.append(f"{'':16}" + "".join(f"{UNCERTAINTY_ROWS[name][0]:>16}" for name in COLUMNS))
    for kind, found in calibration.choice.held_out.items():
        lines.append(
            f"{kind:16}"
            + "".join(f"{found[name]:16.4f}" for name in COLUMNS)
            + ("   chosen" if kind == chosen else "")
        )
    return "\n".join(
        [
            *lines,
            "",
            *_before_and_after(calibration),
            *_worse(calibration),
            *_by_sequence(calibration),
        ]
    )


def means(calibration: Calibration) -> tuple[Figures, Figures]:
    """Figures before and after, the mean over the trials."""
    before = mean_figures([uncertainty(trial.before) for trial in calibration.trials])
    return before, mean_figures([uncertainty(trial.after) for trial in calibration.trials])


def _before_and_after(calibration: Calibration) -> list[str]:
    before, after = means(calibration)
    frames, pixels = (
        sum(getattr(trial.before, name) for trial in calibration.trials)
        for name in ("frames", "pixels")
    )
    sequences = (
        f", mean over {len(calibration.trials)} sequences by maps of the others"
        if len(calibration.trials) > 1
        else ""
    )
    lines = [
        f"{frames} frames not used ({pixels} pixels){sequences}:",
        f"{'':16}{'before':>16}{'after':>16}",
    ]
    return lines + [
        f"{UNCERTAINTY_ROWS[name][0]:16}{before[name]:16.4f}{after[name]:16.4f}" for name in ROWS
    ]


def _worse(calibration: Calibration) -> list[str]:
    """The map is chosen without the frames not used, so it can fail on them: which figures say so."""
    before, after = means(calibration)
    names = [
        name
        for name in ROWS
        if not name.startswith(HIGHER_IS_BETTER)
        and after[name] - before[name] > MARGIN * abs(before[name])
    ]
    found = ", ".join(UNCERTAINTY_ROWS[name][0] for name in names)
    return (
        [f"worse after calibration on frames not used: {found}; --no-calibrated serves raw sigma"]
        if names
        else []
    )


def _by_sequence(calibration: Calibration) -> list[str]:
    if len(calibration.trials) == 1:
        return []
    figures = [
        (trial, uncertainty(trial.before)["auce"], uncertainty(trial.after)["auce"])
        for trial in calibration.trials
    ]
    lines = [
        f"{'':16}{before:16.4f}{after:16.4f}   {trial.name} ({trial.sigma_map.kind})"
        for trial, before, after in figures
    ]
    return ["", "AUCE of each sequence by the map of the others:", *lines]


def record(calibration: Calibration, context: Context) -> dict[str, Any]:
    """What `model.json` keeps beside the map: where it comes from, and AUCE on frames not used."""
    auce = {
        name: found["auce"]
        for name, found in zip(("before", "after"), means(calibration), strict=True)
    }
    return {
        "sources": list(context.sources),
        "samples": context.model["samples"],
        "auce_on_frames_not_used": auce,
    }


def as_mapping(calibration: Calibration, context: Context) -> dict[str, Any]:
    """Everything as plain values: where it comes from, the map, and all figures."""
    return {
        "sources": context.sources,
        "model": context.model,
        "config": to_mapping(context.config),
        "notes": list(context.notes),
        "map": calibration.choice.sigma_map.to_mapping(),
        "held_out": calibration.choice.held_out,
        "not_used": dict(zip(("before", "after"), means(calibration), strict=True)),
        "trials": [
            {"name": trial.name, "kind": trial.sigma_map.kind, **_trial_mapping(trial)}
            for trial in calibration.trials
        ],
    }


def _trial_mapping(trial: Trial) -> dict[str, Any]:
    counts = {"frames": trial.before.frames, "pixels": trial.before.pixels}
    return {**counts, "before": uncertainty(trial.before), "after": uncertainty(trial.after)}


def write(calibration: Calibration, folder: Path, context: Context) -> None:
    """Write `calibration.json` and `calibration.png`, each whole or not at all."""
    write_json(folder / "calibration.json", as_mapping(calibration, context))
    with atomic.replacing(folder / "calibration.png") as path:
        figure(calibration).savefig(path, dpi=110, format="png")


def figure(calibration: Calibration) -> Figure:
    """Reliability before and after on frames not used, and the map."""
    drawn = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = drawn.subplots(1, 2)
    _draw_reliability(left, calibration)
    _draw_map(right, calibration)
    for axes in (left, right):
        axes.grid(color="#DDDDDD", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    return drawn


def _draw_reliability(axes: Axes, calibration: Calibration) -> None:
    """The mean over the trials; each of several as a thin line besides."""
    axes.plot([0, 100], [0, 100], color="#666666", linewidth=0.8, label="calibrated")
    styles = ({"color": "#D55E00", "linestyle": "--"}, {"color": "#0072B2"})
    for name, found, style in zip(("before", "after"), means(calibration), styles, strict=True):
        covered = np.array(
            [
                getattr(trial, name).curves()["reliability"]["method"]
                for trial in calibration.trials
            ]
        )
        axes.plot(
            100 * LEVELS,
            100 * covered.mean(axis=0),
            linewidth=2,
            label=f"{name}, AUCE {found['auce']:.3f}",
            **style,
        )
        if len(covered) > 1:
            axes.plot(100 * LEVELS, 100 * covered.T, linewidth=0.7, alpha=0.6, **style)
    axes.set_title("Reliability on frames not used", fontsize=10)
    axes.set(
        xlabel="confidence level p (%)",
        ylabel="errors inside the interval (%)",
        xlim=(0, 100),
        ylim=(0, 100),
    )


def _draw_map(axes: Axes, calibration: Calibration) -> None:
    sigma_map = calibration.choice.sigma_map
    raw = np.linspace(0, calibration.raw_range_m, 500)
    axes.plot(raw, raw, color="#666666", linewidth=0.8, label="raw")
    axes.plot(raw, sigma_map(raw), color="#0072B2", linewidth=2, label=sigma_map.kind)
    axes.set_title("The map", fontsize=10)
    axes.set(
        xlabel="raw sigma (m)", ylabel="calibrated sigma (m)", xlim=(0, raw[-1]), ylim=(0, None)
    )
