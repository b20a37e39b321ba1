# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A calibration as text, as JSON, and as two plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from uncertainty_depth import atomic, strict
from uncertainty_depth.calibration.fit import CONSTANT, DEPTH_ALONE
from uncertainty_depth.calibration.half_widths import KEY
from uncertainty_depth.calibration.run import LABELS, Choice, FittedCalibration, Scores
from uncertainty_depth.calibration.sigma_map import IDENTITY
from uncertainty_depth.config import CalibrationConfig
from uncertainty_depth.metrics.calibration import CONFIDENCE_LEVELS, of_law
from uncertainty_depth.options import to_mapping

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Record = dict[str, Any]
NAME_WIDTH = 44
COLUMNS = ("crps", "auce", "coverage_68", "coverage_95")
MAX_WORSE = 6
"""Lines of the table for maps with a larger CRPS than the chosen one, the references aside."""
STYLES: dict[str, dict[str, Any]] = {
    "before": {"color": "#D55E00", "linestyle": "--"},
    "after": {"color": "#0072B2"},
}


def record(
    calibration: FittedCalibration, model: Mapping[str, Any] = MappingProxyType({})
) -> Record:
    """Return what is stored beside the map: fitted data, scores, and intervals.

    Args:
        calibration: to store.
        model: the predictor's description; empty for recorded depth.
    """
    before, after = calibration.scores()
    guarantee = calibration.guarantee()
    content = {
        **({"samples": model["samples"]} if "samples" in model else {}),
        "distribution": calibration.distribution,
        "fitted_to": calibration.fitted.to_mapping(),
        "not_used": strict.plain(
            {
                "reference": calibration.choice.reference,
                "before": named(before, calibration.distribution),
                "after": named(after, calibration.distribution),
                "rejected": calibration.rejected(),
            }
        ),
        "frame_guarantee": guarantee.to_mapping(),
    }
    half_widths = calibration.half_widths()
    if guarantee.holds and np.isfinite(half_widths).all():  # else the distribution knows better
        content[KEY] = half_widths.round(6).tolist()
    return content


def named(scores: Scores, distribution: str) -> Scores:
    """Return scores by the names that `evaluate` gives them, e.g. `auce_laplace`."""
    return {of_law(name, distribution): value for name, value in scores.items()}


def write(
    calibration: FittedCalibration,
    folder: Path,
    sources: Sequence[str],
    model: Mapping[str, Any],
    config: CalibrationConfig,
    notes: Sequence[str] = (),
) -> None:
    """Write `calibration.json` and `calibration.png`, each whole or not at all.

    Args:
        calibration: to write.
        folder: created if missing.
        sources: their names.
        model: the predictor's description.
        config: the options.
        notes: warnings about the sources.
    """
    from uncertainty_depth.figure_bytes import encoded

    choice = calibration.choice
    law = choice.distribution
    content = {
        "sources": tuple(sources),
        "model": model,
        "config": {**to_mapping(config), "distribution": law},
        "notes": [*notes, *calibration.notes()],
        "map": choice.sigma_map.to_mapping(),
        **record(calibration, model),
        "law_scores": choice.law_scores,
        "held_out": {name: named(scores, law) for name, scores in choice.held_out.items()},
        "rejected": choice.rejected,
        "trials": [
            {
                "name": trial.name,
                "kind": trial.sigma_map.name,
                "frames": trial.frames,
                "pixels": trial.pixels,
                "before": named(trial.before, law),
                "after": named(trial.after, law),
            }
            for trial in calibration.trials
        ],
    }
    strict.write_json(folder / "calibration.json", content)
    atomic.write_bytes(folder / "calibration.png", encoded(plot(calibration), 110))


def table(calibration: FittedCalibration) -> str:
    """Return the candidates on held-out frames, then before and after on frames not used."""
    choice = calibration.choice
    names = " ".join(named(dict.fromkeys(COLUMNS, 0.0), choice.distribution))
    lines = [
        f"sigma is the standard deviation of a {choice.distribution} error; evaluate calls the "
        f"scores below {names}"
    ]
    if len(choice.law_scores) > 1:
        tried = ", ".join(f"{name} {crps:.4g} m" for name, crps in choice.law_scores.items())
        lines.append(f"(CRPS of the best map: {tried})")
    lines += ["", *_candidates(choice), "", *_before_and_after(calibration)]
    if len(calibration.trials) > 1:
        lines += ["", "CRPS and coverage at 95% of each sequence by the map of the others:"]
        lines.append(_row("", ["CRPS before", "after", "coverage before", "after"]))
        for trial in calibration.trials:
            values = [
                text(name, scores[name])
                for name in ("crps", "coverage_95")
                for scores in (trial.before, trial.after)
            ]
            lines.append(f"{_row('', values)}   {trial.name} ({trial.sigma_map.name})")
    return "\n".join([*lines, "", calibration.guarantee().sentence()])


def _candidates(choice: Choice) -> list[str]:
    """Return the maps by CRPS; every map that is better than the chosen one has its reason."""
    baselines = (choice.reference, CONSTANT, DEPTH_ALONE)
    chosen_name = choice.sigma_map.name
    ranked = sorted(choice.held_out, key=lambda name: choice.held_out[name]["crps"])
    place = ranked.index(chosen_name)
    worse = [name for name in ranked[place + 1 :] if name not in baselines]
    hidden = set(worse[MAX_WORSE:])
    lines = [
        f"{len(ranked)} maps, mean over the parts of the frames left out in turn; the smallest "
        "CRPS of those not rejected is chosen:",
        _row("", [LABELS[name] for name in COLUMNS]),
    ]
    for name in ranked:
        if name in hidden:
            continue
        reason = choice.rejected.get(name)
        mark = f"   rejected: {reason}" if reason else ""
        mark = f"   chosen{mark}" if name == chosen_name else mark
        scores = choice.held_out[name]
        lines.append(_row(name, [text(column, scores[column]) for column in COLUMNS]) + mark)
    if hidden:
        rejected = len(hidden.intersection(choice.rejected))
        lines.append(f"{len(hidden)} more with a larger CRPS, {rejected} of them rejected")
    if choice.sigma_map == IDENTITY:
        lines.append(f"no map beats {IDENTITY.name}, which stays as it is")
    return lines


def _before_and_after(calibration: FittedCalibration) -> list[str]:
    before, after = calibration.scores()
    frames = sum(trial.frames for trial in calibration.trials)
    pixels = sum(trial.pixels for trial in calibration.trials)
    sequences = len(calibration.trials)
    origin = f", mean over {sequences} sequences by maps of the others" if sequences > 1 else ""
    rejected = calibration.rejected()
    lines = [
        f"{frames} frames not used ({pixels} pixels){origin}:",
        _row("", [f"before: {calibration.choice.reference}", "after"]),
    ]
    for name, label in LABELS.items():
        values = [text(name, scores[name]) for scores in (before, after)]
        mark = "   worse" if name in rejected else ""
        lines.append(_row(label, values) + mark)
    return lines


def _row(name: str, cells: list[str]) -> str:
    return f"{name:{NAME_WIDTH}}" + "".join(f" {cell:>17}" for cell in cells)


def text(name: str, value: float) -> str:
    """Return a score as it is printed: coverage as a percentage."""
    return f"{value:.1%}" if name.startswith("coverage") else f"{value:.4f}"


def plot(calibration: FittedCalibration) -> Figure:
    """Return the reliability on frames not used, and the map, side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    _plot_reliability(left, calibration)
    sigma_map = calibration.choice.sigma_map
    raw = np.linspace(0, calibration.raw_range_m, 500)
    right.plot(raw, raw, color="#666666", linewidth=0.8, label="raw")
    at_1_m = sigma_map(raw, np.ones_like(raw))
    right.plot(raw, at_1_m, color="#0072B2", linewidth=2, label=sigma_map.name)
    right.set_title("The map" + (" at 1 m" if sigma_map.depth_power else ""), fontsize=10)
    right.set(xlabel="raw sigma (m)", ylabel="calibrated sigma (m)")
    right.set(xlim=(0, raw[-1]), ylim=(0, None))
    for axes in (left, right):
        axes.grid(color="#DDDDDD", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    return figure


def _plot_reliability(axes: Axes, calibration: FittedCalibration) -> None:
    """Plot the mean over the trials, and each of several trials as a thin line."""
    axes.plot([0, 100], [0, 100], color="#666666", linewidth=0.8, label="calibrated")
    coverage = np.stack([trial.reliability for trial in calibration.trials])
    scores = calibration.scores()
    percent = 100 * CONFIDENCE_LEVELS
    for index, (name, style) in enumerate(STYLES.items()):
        mean = coverage[:, index].mean(axis=0)
        label = f"{name}, AUCE {scores[index]['auce']:.3f}"
        axes.plot(percent, 100 * mean, linewidth=2, label=label, **style)
        if len(coverage) > 1:
            axes.plot(percent, 100 * coverage[:, index].T, linewidth=0.7, alpha=0.6, **style)
    axes.set_title("Reliability on frames not used", fontsize=10)
    axes.set(
        xlabel=f"confidence level p (%), {calibration.distribution} intervals",
        ylabel="errors inside the interval (%)",
        xlim=(0, 100),
        ylim=(0, 100),
    )
