"""Reading a summary: the method beside the trivial baselines, as sentences and as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from uncertainty_depth.evaluation.frame_table import flatten

BASELINES = {"constant": "constant sigma", "proportional_to_depth": "sigma = depth"}
# What each figure of the table is called, whether a small value is good, and what a reader should know of it.
UNCERTAINTY_ROWS = {
    "ause.abs_rel": ("AUSE abs_rel", "lower is better"),
    "ause.rmse": ("AUSE rmse (m)", "lower is better"),
    "ause.a1": ("AUSE 1 - a1", "lower is better"),
    "n_merci_trimmed": (
        "n-MeRCI trimmed",
        "lower is better, 1 = constant; divided by the largest error kept, so a few pixels move it",
    ),
    "n_merci": (
        "n-MeRCI",
        "lower is better, 1 = constant; ruled by the pixels with the largest error / sigma",
    ),
    "aurg.abs_rel": (
        "AURG abs_rel",
        "higher is better; random removal has +1 % of the full error",
    ),
    "aurg.rmse": ("AURG rmse (m)", "higher is better"),
    "aurg.a1": ("AURG 1 - a1", "higher is better"),
    "auce": ("AUCE", "lower is better; calibration of the size of sigma"),
    "nll": ("NLL (Gaussian)", "lower is better"),
    "spearman": ("Spearman", "rank correlation of sigma and error; higher is better"),
}
HIGHER_IS_BETTER = ("aurg.", "spearman")
MARGIN = 0.01  # a figure less than this share below a baseline is no better than it


def row(summary: Mapping[str, Any], key: str) -> tuple[float, dict[str, float]]:
    """The figure `key` (dotted name) of the method, and of each baseline."""
    method = flatten(summary["uncertainty"])[key]
    return method, {name: flatten(summary["baselines"][name])[key] for name in BASELINES}


def table(summary: Mapping[str, Any]) -> str:
    """The figures as text for a terminal."""
    frames = summary["frames"]
    lines = [
        f"frames: {frames['read']} read, {frames['evaluated']} evaluated"
        + "".join(f", {n} {why}" for why, n in frames["skipped"].items())
    ]
    lines += ["depth: " + "  ".join(f"{name} {value}" for name, value in depth(summary)), ""]
    lines.append(
        f"{'':18}{'method':>14}" + "".join(f"{label:>16}" for label in BASELINES.values())
    )
    for key, (label, note) in UNCERTAINTY_ROWS.items():
        method, baselines = row(summary, key)
        lines.append(
            f"{label:18}{method:14.4f}"
            + "".join(f"{value:16.4f}" for value in baselines.values())
            + f"   {note}"
        )
    return "\n".join(lines)


def scored_sigma(model: Mapping[str, Any]) -> str:
    """Which sigma the figures are of, raw or calibrated, by the description of the predictor; just "sigma" where it does not say."""
    kind = model.get("calibration")
    raw = {None: "sigma", "off": "raw sigma (calibration is off)", "identity": "raw sigma"}
    return raw.get(kind, f"calibrated sigma ({kind})")


def depth(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The depth errors as (name, text)."""
    return [(name, f"{value:.4f}") for name, value in summary["depth"].items()]


def compared(summary: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The figure `key` as a row to be drawn: its label, its note, and one cell each for method and baselines, the best marked."""
    method, baselines = row(summary, key)
    values = [method, *baselines.values()]
    known = [value for value in values if not math.isnan(value)]
    best = (max if key.startswith(HIGHER_IS_BETTER) else min)(known) if known else math.nan
    label, note = UNCERTAINTY_ROWS[key]
    return {
        "label": label,
        "note": note,
        "cells": [{"text": f"{value:.4f}", "best": value == best} for value in values],
    }
