# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A calibration as `calibration.json` and `calibration.png`, and what the model folder keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uncertainty_depth import atomic, strict_json
from uncertainty_depth.calibration.half_widths import KEY
from uncertainty_depth.calibration.plot import plot
from uncertainty_depth.calibration.run import Calibration, Trial
from uncertainty_depth.calibration.strength import RECORDED
from uncertainty_depth.config import CalibrationConfig
from uncertainty_depth.figure_bytes import encoded
from uncertainty_depth.options import to_mapping


@dataclass(frozen=True)
class Provenance:
    """Where a calibration comes from.

    Attributes:
        sources: as they were named.
        model: the predictor's description.
        config: the options.
        notes: sentences on what to mind about the sources.
    """

    sources: tuple[str, ...]
    model: Mapping[str, Any]
    config: CalibrationConfig
    notes: tuple[str, ...] = ()


def record(calibration: Calibration, provenance: Provenance) -> dict[str, Any]:
    """Return the record for `model.json` beside the map: the fitted data, and the scores."""
    before, after = calibration.scores()
    half_widths = calibration.half_widths()
    content = {
        **{name: provenance.model[name] for name in RECORDED if name in provenance.model},
        "distribution": calibration.distribution,
        "fitted_to": calibration.fitted.to_mapping(),
        "not_used": strict_json.plain({"before": before, "after": after}),
    }
    if np.isfinite(half_widths).all():
        content[KEY] = half_widths.round(6).tolist()
    return content


def as_mapping(calibration: Calibration, provenance: Provenance) -> dict[str, Any]:
    """Return everything as plain values: where it comes from, the map, and all scores."""
    before, after = calibration.scores()
    return {
        "sources": provenance.sources,
        "model": provenance.model,
        "config": to_mapping(provenance.config),
        "notes": list(provenance.notes),
        "map": calibration.choice.sigma_map.to_mapping(),
        "distribution": calibration.distribution,
        "fitted_to": calibration.fitted.to_mapping(),
        "held_out": calibration.choice.held_out,
        "not_used": {"before": before, "after": after, "worse": calibration.harmed()},
        "trials": [_trial_mapping(trial) for trial in calibration.trials],
    }


def _trial_mapping(trial: Trial) -> dict[str, Any]:
    return {
        "name": trial.name,
        "kind": trial.sigma_map.name,
        "frames": trial.frames,
        "pixels": trial.pixels,
        "before": trial.before,
        "after": trial.after,
    }


def write(calibration: Calibration, folder: Path, provenance: Provenance) -> None:
    """Write `calibration.json` and `calibration.png`, each whole or not at all."""
    strict_json.write(folder / "calibration.json", as_mapping(calibration, provenance))
    atomic.write_bytes(folder / "calibration.png", encoded(plot(calibration), 110))
