# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Tables of a summary: the predicted sigma next to the trivial baselines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from uncertainty_depth.metrics.registry import BY_NAME, METRICS, Metric, baseline_name, flatten
from uncertainty_depth.report.model_facts import law_of

BASELINE_LABELS = {"constant": "constant", "proportional_to_depth": "~ depth"}
"""Label of each trivial baseline."""
NO_UNIT = "no unit"
MIN_PIXELS = 100
"""Pixels that a distance needs to have a row."""


def headline_names(law: str) -> tuple[str, ...]:
    """Return the headline metrics: order, size under the given law of the error, n-MeRCI."""
    suffix = "_laplace" if law == "laplace" else ""
    names = ("ause.abs_rel", "ause.rmse", "ause.a1", f"auce{suffix}", f"coverage_95{suffix}")
    return tuple(f"uncertainty.{name}" for name in (*names, "n_merci"))


def other_names(law: str) -> tuple[str, ...]:
    """Return the metrics of sigma that are not in the headline, sizes of the given law first."""
    headline = headline_names(law)
    others = [
        metric
        for metric in METRICS
        if metric.name.startswith("uncertainty.")
        and not metric.groups
        and metric.name not in headline
    ]
    others.sort(
        key=lambda metric: (
            not (metric.is_size and metric.name.endswith("_laplace") == (law == "laplace"))
        )
    )
    return tuple(metric.name for metric in others)


def row(summary: Mapping[str, Any], name: str) -> tuple[float, dict[str, float]]:
    """Return a metric, by dotted name, of the predicted sigma and of each baseline; NaN: none."""
    values = flatten({key: summary[key] for key in ("uncertainty", "baselines")})
    metric = BY_NAME[name]
    names = {baseline: baseline_name(baseline, metric) for baseline in BASELINE_LABELS}
    return values[name], {key: values.get(full, math.nan) for key, full in names.items()}


def method_text(summary: Mapping[str, Any], name: str) -> str:
    """Return a metric of the predicted sigma as text; "no unit" for sizes without one."""
    if summary["without_size"] and BY_NAME[name].is_size:
        return NO_UNIT
    return f"{row(summary, name)[0]:.4f}"


def title(metric: Metric) -> str:
    """Return the label of a metric, with its unit."""
    return f"{metric.label}, {metric.unit}" if metric.unit else metric.label


def note(metric: Metric) -> str:
    """Return what a metric means, and which value is better."""
    better = {
        "": "",
        "lower": "lower is better",
        "higher": "higher is better",
    }
    text = better.get(str(metric.better), f"best at {metric.better}")
    return "; ".join(part for part in (metric.meaning, text) if part)


def table(summary: Mapping[str, Any], model: Mapping[str, Any]) -> str:
    """Return the headline metrics as text for a terminal."""
    lines = [frame_counts(summary["frames"])]
    if not summary["frames"]["evaluated"]:
        return lines[0]
    lines += ["depth: " + "  ".join(f"{name} {value}" for name, value in depth(summary))]
    lines += [scale_text(summary["scale"]), ""]
    if summary["without_size"]:
        lines += [summary["without_size"], ""]
    titles = "".join(f"{label:>16}" for label in BASELINE_LABELS.values())
    lines.append(f"{'':26}{'sigma':>10}{'95 % interval':>20}{titles}")
    for name in headline_names(law_of(model)):
        _, baselines = row(summary, name)
        interval = interval_text(summary, name)
        method = method_text(summary, name)
        cells = "".join(f"{value:16.4f}" for value in baselines.values())
        metric = BY_NAME[name]
        lines.append(f"{title(metric):26}{method:>10}{interval:>20}{cells}   {note(metric)}")
    return "\n".join(lines)


def interval_text(summary: Mapping[str, Any], name: str) -> str:
    """Return the 95 % interval of a metric as `0.0280 to 0.0345`; empty if it has none."""
    low, high = summary["intervals"].get(name, (math.nan, math.nan))
    return "" if math.isnan(low) else f"{low:.4f} to {high:.4f}"


def scale_text(scale: Mapping[str, float]) -> str:
    """Return how the scale of the depth wanders, as one line."""
    return (
        f"scale: {scale['scale']:.3f}, scale_deviation {scale['scale_deviation']:.2%} over the "
        f"frames, scale_jump {scale['scale_jump']:.2%} from frame to frame"
    )


def unfamiliarity_text(unfamiliarity: Mapping[str, Any]) -> str:
    """Return how much the images differ from the training's, as a phrase; empty if unknown."""
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


def compared(summary: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a metric as a table row: label, note, and cells of sigma and baselines."""
    metric = BY_NAME[name]
    method, baselines = row(summary, name)
    values = [method, *baselines.values()]
    best = _best(metric, values)
    cells = [
        {"text": "" if math.isnan(value) else f"{value:.4f}", "best": value == best}
        for value in values
    ]
    cells[0]["text"] = method_text(summary, name)
    interval = interval_text(summary, name)
    return {"label": title(metric), "note": note(metric), "cells": cells, "interval": interval}


def _best(metric: Metric, values: list[float]) -> float:
    numbers = [value for value in values if not math.isnan(value)]
    if not numbers or metric.better == "":
        return math.nan
    if isinstance(metric.better, float):
        target = metric.better
        return min(numbers, key=lambda value: abs(value - target))
    return max(numbers) if metric.better == "higher" else min(numbers)


def by_group(summary: Mapping[str, Any], prefix: str, law: str) -> tuple[list[str], list[Any]]:
    """Return the metrics that are lists, as a table: titles, and rows of (name, texts).

    Args:
        summary: as `report.summarize` makes it.
        prefix: of their dotted names.
        law: distribution of the error, whose coverage is shown.
    """
    values = flatten({key: summary[key] for key in ("uncertainty", "by_distance")})
    metrics = [
        metric
        for metric in METRICS
        if metric.groups and metric.name.startswith(prefix) and _is_of_law(metric, law)
    ]
    pixels = [values.get(f"{prefix}pixels.{group}", MIN_PIXELS) for group in metrics[0].groups]
    rows = []
    for group, number in zip(metrics[0].groups, pixels, strict=True):
        if number >= MIN_PIXELS:
            of_group = [(metric, values[f"{metric.name}.{group}"]) for metric in metrics]
            rows.append((_group_text(group), [_cell(*pair) for pair in of_group]))
    return [title(metric) for metric in metrics], rows


def _is_of_law(metric: Metric, law: str) -> bool:
    is_laplace = "_laplace" in metric.name
    return is_laplace == (law == "laplace") or "coverage" not in metric.name


def _group_text(group: str) -> str:
    return group.replace("_", " ", 1) if group[0].isalpha() else group.replace("_", " to ")


def _cell(metric: Metric, value: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value:,}" if metric.unit == "count" else f"{value:.3f}"
