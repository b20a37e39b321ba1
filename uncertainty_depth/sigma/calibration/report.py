# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A calibration as text, and as plain values to be stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from uncertainty_depth.core import strict
from uncertainty_depth.metrics.calibration import of_distribution
from uncertainty_depth.sigma.calibration.fit import CONSTANT, DEPTH_ALONE
from uncertainty_depth.sigma.calibration.half_widths import KEY
from uncertainty_depth.sigma.calibration.run import LABELS, Choice, FittedCalibration, Scores
from uncertainty_depth.sigma.calibration.sigma_map import IDENTITY

Record = dict[str, Any]
NAME_WIDTH = 44
COLUMNS = ("crps", "auce", "coverage_68", "coverage_95")
MAX_WORSE = 6
"""Table lines for maps with a larger CRPS than the chosen one, the references aside."""


def record(calibration: FittedCalibration, samples: int | None = None) -> Record:
    """Return what is stored beside the map; `samples` are the predictor's, None if recorded."""
    before, after = calibration.scores()
    guarantee = calibration.guarantee()
    content = {
        **({} if samples is None else {"samples": samples}),
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
    is_measured = guarantee.has_enough and np.isfinite(half_widths).all()
    if is_measured:  # else the distribution knows better
        content[KEY] = half_widths.round(6).tolist()
    return content


def named(scores: Scores, distribution: str) -> Scores:
    """Return scores by the names that `evaluate` gives them, e.g. `auce_laplace`."""
    return {of_distribution(name, distribution): scores[name] for name in LABELS if name in scores}


def table(calibration: FittedCalibration) -> str:
    """Return the maps that were tried, on held-out frames, then before and after on others."""
    choice = calibration.choice
    names = " ".join(named(dict.fromkeys(COLUMNS, 0.0), choice.distribution))
    lines = [
        f"sigma is the standard deviation of a {choice.distribution} error; evaluate calls the "
        f"scores below {names}"
    ]
    if len(choice.distribution_scores) > 1:
        tried = ", ".join(
            f"{name} {crps:.4g} m" for name, crps in choice.distribution_scores.items()
        )
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
    """Return the maps by CRPS."""
    baselines = (choice.reference, CONSTANT, DEPTH_ALONE)
    chosen_name = choice.sigma_map.name
    ranked = sorted(choice.held_out, key=lambda name: choice.held_out[name]["crps"])
    place = ranked.index(chosen_name)
    worse = [name for name in ranked[place + 1 :] if name not in baselines]
    hidden = set(worse[MAX_WORSE:])
    lines = [
        f"{len(ranked)} maps, mean over the parts of the frames left out in turn; of those not "
        "rejected whose CRPS is as good as the smallest, one that covers best is chosen:",
        _row("", [LABELS[name] for name in COLUMNS]),
    ]
    for name in (name for name in ranked if name not in hidden):
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
    covered = calibration.coverage()
    may_be = f"{covered.low:.1%} to {covered.high:.1%}"
    lines.append(f"coverage at 95% may be {may_be}, as far as these frames tell")
    return lines


def _row(name: str, cells: list[str]) -> str:
    return f"{name:{NAME_WIDTH}}" + "".join(f" {cell:>17}" for cell in cells)


def text(name: str, value: float) -> str:
    """Return a score as it is printed: coverage as a percentage."""
    return f"{value:.1%}" if name.startswith("coverage") else f"{value:.4f}"
