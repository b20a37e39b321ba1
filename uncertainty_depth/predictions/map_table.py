# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The calibration of a confidence as text for the terminal."""

from __future__ import annotations

from uncertainty_depth.calibration.scores import LABELS
from uncertainty_depth.calibration.table import text
from uncertainty_depth.predictions.calibrate import MapCalibration

MAX_CANDIDATES = 5
REFERENCES = {"identity": "sigma as it is", "constant": "constant sigma"}


def table(calibration: MapCalibration) -> str:
    """Return the best candidates on held-out frames, then before and after on frames not used."""
    before, after = calibration.scores()
    worse = calibration.harmed()
    frames = sum(trial.frames for trial in calibration.trials)
    pixels = sum(trial.pixels for trial in calibration.trials)
    reference = REFERENCES[calibration.reference]
    lines = [*_candidates(calibration), "", f"{frames} frames not used ({pixels} pixels):"]
    lines.append(f"{'':28}{reference:>18}{'map':>18}")
    for name, label in LABELS.items():
        mark = "   worse" if name in worse else ""
        lines.append(
            f"{label:28}{text(name, before[name]):>18}{text(name, after[name]):>18}{mark}"
        )
    return "\n".join(lines)


def _candidates(calibration: MapCalibration) -> list[str]:
    held_out = calibration.held_out
    ranked = sorted(held_out, key=lambda name: held_out[name]["crps"])
    selected_name = calibration.confidence_map.name
    names = dict.fromkeys([*ranked[:MAX_CANDIDATES], selected_name, calibration.reference])
    lines = [
        f"{len(held_out)} maps, mean over the parts of the frames left out in turn; the smallest "
        "CRPS of those that harm nothing is chosen:",
        f"{'':44}{'CRPS (m)':>10}{'AUCE':>10}",
    ]
    for name in names:
        scores = held_out[name]
        mark = "   chosen" if name == selected_name else ""
        lines.append(f"{name:44}{scores['crps']:10.4f}{scores['auce']:10.4f}{mark}")
    return lines
