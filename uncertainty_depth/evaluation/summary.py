# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Tables of a summary: the predicted sigma next to the trivial baselines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from uncertainty_depth.evaluation.frame_table import flatten
from uncertainty_depth.evaluation.model_facts import law_of
from uncertainty_depth.evaluation.unitless import NO_UNIT, is_sized

BASELINE_LABELS = {
    "constant": "constant",
    "proportional_to_depth": "~ depth",
    "proportional_to_depth_noisy": "~ depth, noisy",
}
"""Label of each trivial baseline: constant, proportional to depth, and the latter with noise."""
UNCERTAINTY_ROWS = {
    "ause.abs_rel": ("AUSE abs_rel", "order; mean over images, lower is better"),
    "ause.rmse": ("AUSE rmse (m)", "order; mean over images, lower is better"),
    "ause.a1": ("AUSE 1 - a1", "order; mean over images, lower is better"),
    "auce": ("AUCE (Gaussian)", "size; lower is better, baselines have their scale fitted"),
    "auce_laplace": ("AUCE (Laplace)", "size; lower is better, baselines have their scale fitted"),
    "coverage_95": ("coverage 95 % (Gaussian)", "size; best at 0.95"),
    "coverage_95_laplace": ("coverage 95 % (Laplace)", "size; best at 0.95"),
    "coverage_68": ("coverage 68 % (Gaussian)", "size; best at 0.68"),
    "coverage_68_laplace": ("coverage 68 % (Laplace)", "size; best at 0.68"),
    "nll": ("NLL (Gaussian)", "size and order; lower is better"),
    "nll_laplace": ("NLL (Laplace)", "size and order; lower is better"),
    "crps": ("CRPS (m, Gaussian)", "size and order; lower is better"),
    "crps_laplace": ("CRPS (m, Laplace)", "size and order; lower is better"),
    "interval_score_95": ("interval score 95 % (m, Gaussian)", "size and order; lower is better"),
    "interval_score_95_laplace": (
        "interval score 95 % (m, Laplace)",
        "size and order; lower is better",
    ),
    "mpiw_95": ("mean interval width 95 % (m, Gaussian)", "MPIW; to be read with coverage 95 %"),
    "mpiw_95_laplace": (
        "mean interval width 95 % (m, Laplace)",
        "MPIW; to be read with coverage 95 %",
    ),
    "n_merci": ("n-MeRCI", "lower is better, 1 = constant"),
    "n_merci_withdrawn": ("n-MeRCI withdrawn", "lower is better, 1 = constant"),
    "aurg.abs_rel": (
        "AURG abs_rel",
        "mean over images, higher is better; random removal: +1 % of the error",
    ),
    "aurg.rmse": ("AURG rmse (m)", "mean over images, higher is better"),
    "aurg.a1": ("AURG 1 - a1", "mean over images, higher is better"),
    "spearman": ("Spearman", "rank correlation of sigma and error; higher is better"),
    "n_merci_trimmed": ("n-MeRCI trimmed", "rewards noise: compare with the noisy baseline"),
}
"""Label and note of every metric of sigma, by its dotted name."""
HIGHER_IS_BETTER = ("aurg.", "spearman")


def headline_rows(law: str) -> tuple[str, ...]:
    """Return the headline metrics: order, size under the given law of the error, n-MeRCI."""
    suffix = "_laplace" if law == "laplace" else ""
    return (
        "ause.abs_rel",
        "ause.rmse",
        "ause.a1",
        f"auce{suffix}",
        f"coverage_95{suffix}",
        "n_merci",
        "n_merci_withdrawn",
    )


def other_rows(law: str) -> tuple[str, ...]:
    """Return the metrics not in the headline, those of the given law first."""
    other_names = [name for name in UNCERTAINTY_ROWS if name not in headline_rows(law)]
    own = [name for name in other_names if name.endswith("_laplace") == (law == "laplace")]
    sized = ("coverage", "nll", "auce", "crps", "interval_score", "mpiw")
    first = [name for name in own if name.startswith(sized)]
    return (*first, *(name for name in other_names if name not in first))


def row(summary: Mapping[str, Any], key: str) -> tuple[float, dict[str, float]]:
    """Return the metric `key` (dotted name) of the predicted sigma, and of each baseline."""
    method = flatten(summary["uncertainty"])[key]
    return method, {name: flatten(summary["baselines"][name])[key] for name in BASELINE_LABELS}


def method_text(summary: Mapping[str, Any], key: str) -> str:
    """Return the metric `key` of the predicted sigma as text; "no unit" for sizes without one."""
    if summary["without_size"] and is_sized(key):
        return NO_UNIT
    return f"{row(summary, key)[0]:.4f}"


def table(summary: Mapping[str, Any], model: Mapping[str, Any]) -> str:
    """Return the headline metrics as text for a terminal."""
    lines = [frame_counts(summary["frames"])]
    if not summary["frames"]["evaluated"]:
        return lines[0]
    lines += ["depth: " + "  ".join(f"{name} {value}" for name, value in depth(summary))]
    lines += [scale_text(summary["scale"]), ""]
    if summary["without_size"]:
        lines += [summary["without_size"], ""]
    titles = "".join(f"{title:>16}" for title in BASELINE_LABELS.values())
    lines.append(f"{'':26}{'sigma':>10}{'95 % interval':>20}{titles}")
    for key in headline_rows(law_of(model)):
        _, baselines = row(summary, key)
        interval = interval_text(summary, f"uncertainty.{key}")
        method = method_text(summary, key)
        cells = "".join(f"{value:16.4f}" for value in baselines.values())
        label, note = UNCERTAINTY_ROWS[key]
        lines.append(f"{label:26}{method:>10}{interval:>20}{cells}   {note}")
    return "\n".join(lines)


def interval_text(summary: Mapping[str, Any], name: str) -> str:
    """Return the 95 % interval of a metric as `0.0280 to 0.0345`; empty if it has none."""
    low, high = summary["intervals"].get(name, (math.nan, math.nan))
    return "" if math.isnan(low) else f"{low:.4f} to {high:.4f}"


def scale_text(scale: Mapping[str, float]) -> str:
    """Return how the scale of the depth wanders, as one line."""
    return (
        f"scale: {scale['scale']:.3f}, scale_drift {scale['scale_drift']:.2%} over the frames, "
        f"scale_jump {scale['scale_jump']:.2%} from frame to frame"
    )


def unfamiliarity_text(unfamiliarity: Mapping[str, Any]) -> str:
    """Return how unlike the training's the images are, as a phrase; empty where not known."""
    if not unfamiliarity["frames"]:
        return ""
    return (
        f"{unfamiliarity['mean']:.2f} in the mean, {unfamiliarity['max']:.2f} at most, above 1 in "
        f"{unfamiliarity['fraction_above_1']:.0%} of {unfamiliarity['frames']} frames "
        "(1 % of the training's)"
    )


def frame_counts(frames: Mapping[str, Any]) -> str:
    """Return how many frames were read, scored, and skipped, by reason."""
    skipped = "".join(f", {count} {reason}" for reason, count in frames["skipped"].items())
    return f"frames: {frames['read']} read, {frames['evaluated']} evaluated{skipped}"


def scored_sigma(model: Mapping[str, Any]) -> str:
    """Return which sigma was scored: raw, calibrated, or just "sigma" if not known."""
    name = model.get("calibration")
    raw = {None: "sigma", "off": "raw sigma (calibration is off)", "identity": "raw sigma"}
    return raw.get(name, f"calibrated sigma ({name})")


def depth(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the depth errors as (name, text)."""
    return [(name, f"{value:.4f}") for name, value in summary["depth"].items()]


def depth_with_intervals(summary: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the depth errors as (name, text, text of the 95 % interval)."""
    return [(*pair, interval_text(summary, f"depth.{pair[0]}")) for pair in depth(summary)]


def compared(summary: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the metric `key` as a table row: label, note, and cells of sigma and baselines."""
    method, baselines = row(summary, key)
    values = [method, *baselines.values()]
    best = _best(key, values)
    label, note = UNCERTAINTY_ROWS[key]
    cells = [{"text": f"{value:.4f}", "best": value == best} for value in values]
    cells[0]["text"] = method_text(summary, key)
    interval = interval_text(summary, f"uncertainty.{key}")
    return {"label": label, "note": note, "cells": cells, "interval": interval}


def _best(key: str, values: list[float]) -> float:
    numbers = [value for value in values if not math.isnan(value)]
    if not numbers:
        return math.nan
    if key.startswith("coverage"):
        nominal = 0.95 if "95" in key else 0.68
        return min(numbers, key=lambda value: abs(value - nominal))
    return max(numbers) if key.startswith(HIGHER_IS_BETTER) else min(numbers)
