# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A calibration as text for the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from uncertainty_depth.calibration.run import Calibration
from uncertainty_depth.calibration.scores import LABELS

NAME_WIDTH = 28
COLUMN_WIDTH = 18


def table(calibration: Calibration) -> str:
    """Return every candidate on held-out frames, then before and after on frames not used."""
    return "\n".join(
        [
            f"sigma is assumed to be the standard deviation of a {calibration.distribution} error",
            "",
            *_candidates(calibration),
            "",
            *_before_and_after(calibration),
            *_by_sequence(calibration),
        ]
    )


def _candidates(calibration: Calibration) -> list[str]:
    selected_name = calibration.choice.sigma_map.name
    lines = [
        "maps, mean over the parts of the frames left out in turn; chosen is the smallest CRPS of "
        "those that harm nothing:",
        _row("", list(LABELS.values())),
    ]
    for name, scores in calibration.choice.held_out.items():
        mark = "   chosen" if name == selected_name else ""
        lines.append(_row(name, _texts(scores)) + mark)
    return lines


def _before_and_after(calibration: Calibration) -> list[str]:
    before, after = calibration.scores()
    frames = sum(trial.frames for trial in calibration.trials)
    pixels = sum(trial.pixels for trial in calibration.trials)
    sequences = len(calibration.trials)
    origin = f", mean over {sequences} sequences by maps of the others" if sequences > 1 else ""
    lines = [
        f"{frames} frames not used ({pixels} pixels){origin}:",
        _row("", ["before", "after"]),
    ]
    for (name, label), first, last in zip(
        LABELS.items(), _texts(before), _texts(after), strict=True
    ):
        mark = "   worse" if name in calibration.harmed() else ""
        lines.append(_row(label, [first, last]) + mark)
    return lines


def _by_sequence(calibration: Calibration) -> list[str]:
    if len(calibration.trials) == 1:
        return []
    lines = ["", "NLL and coverage at 95 % of each sequence by the map of the others:"]
    lines.append(_row("", ["NLL before", "after", "coverage before", "after"]))
    for trial in calibration.trials:
        values = [
            f"{trial.before['nll']:.4f}",
            f"{trial.after['nll']:.4f}",
            f"{trial.before['coverage_95']:.1%}",
            f"{trial.after['coverage_95']:.1%}",
        ]
        lines.append(f"{_row('', values)}   {trial.name} ({trial.sigma_map.name})")
    return lines


def _row(name: str, cells: list[str]) -> str:
    return f"{name:{NAME_WIDTH}}" + "".join(f"{cell:>{COLUMN_WIDTH}}" for cell in cells)


def _texts(scores: Mapping[str, float]) -> list[str]:
    return [text(name, scores[name]) for name in LABELS]


def text(name: str, value: float) -> str:
    """Return a score as it is printed: coverage as a percentage."""
    return f"{value:.1%}" if name.startswith("coverage") else f"{value:.4f}"
