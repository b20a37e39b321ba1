# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""All metrics' values by dotted name, why some are none, and their nesting in `summary.json`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from uncertainty_depth.metrics import reasons
from uncertainty_depth.metrics.metric import NOT_JUDGED, Metric, SigmaKind
from uncertainty_depth.metrics.registry import BY_NAME, BY_VALUE, METRICS
from uncertainty_depth.metrics.state import SIGMA_NAMES, Sums

BASELINES = SIGMA_NAMES[1:]


def baseline_name(baseline: str, metric: Metric) -> str:
    """Return the dotted name of a trivial baseline's metric."""
    return f"baselines.{baseline}.{metric.name.removeprefix('uncertainty.')}"


def flat_values(
    sums: Sums, kind: SigmaKind = SigmaKind.METRES, of_frame: bool = False
) -> dict[str, float]:
    """Return every metric's first row by dotted name, NaN for none.

    Args:
        sums: over all frames, or one.
        kind: sigma's; the metrics that it has not are NaN.
        of_frame: a row in the table of frames: only metrics that are one number, of the trivial
            baselines only the rankings, which are per image, and the scale and the unfamiliarity;
            none on sigma for a depth alone.
    """
    values: dict[str, float] = {}
    for metric in METRICS:
        if of_frame and (metric.groups or metric.over == "frames"):
            continue
        names = metric.names()
        if not metric.is_judged(kind):
            if not (of_frame and kind is SigmaKind.NONE):
                values |= dict.fromkeys(names, math.nan)
            continue
        row = np.atleast_1d(metric.values(sums)[0]).tolist()
        is_whole = metric.unit == "count" and not of_frame
        values |= zip(names, map(int, row) if is_whole else row, strict=True)
    for baseline in BASELINES:
        of_baseline = sums.of(baseline)
        for metric in METRICS:
            if metric.is_of_sigma and not (of_frame and metric.over != "images"):
                values[baseline_name(baseline, metric)] = float(metric.values(of_baseline)[0])
    if of_frame:
        values["scale"] = float(BY_NAME["scale.mean_factor"].values(sums)[0])
        values["unfamiliarity"] = float(BY_NAME["unfamiliarity.mean"].values(sums)[0])
    return values


def undefined(sums: Sums, kind: SigmaKind = SigmaKind.METRES) -> dict[str, str]:
    """Return why metrics over scored frames are no numbers, by each such value's dotted name."""
    found: dict[str, str] = {}
    for metric in METRICS:
        if not metric.is_judged(kind):
            found |= dict.fromkeys(metric.names(), NOT_JUDGED[kind])
            continue
        if metric.reason is None:
            continue
        values = np.atleast_1d(metric.values(sums)[0])
        unknown = np.isnan(values)
        if metric.name.startswith("by_distance."):
            unknown &= sums["distance.pixels"][0] > 0
        names = [
            name for name, is_unknown in zip(metric.names(), unknown, strict=True) if is_unknown
        ]
        found |= dict.fromkeys(names, metric.reason(sums)) if names else {}
    for baseline in BASELINES:
        of_baseline = sums.of(baseline)
        for metric in METRICS:
            if metric.is_of_sigma and np.isnan(metric.values(of_baseline)[0]):
                reason = metric.reason or reasons.size_of_baseline
                found[baseline_name(baseline, metric)] = reason(of_baseline)
    return found


def nested(values: Mapping[str, float]) -> dict[str, Any]:
    """Return values by dotted name as the nested mapping in `summary.json`."""
    result: dict[str, Any] = {}
    for name, value in values.items():
        metric = BY_VALUE.get(name)
        *path, last = metric.name.split(".") if metric and metric.groups else name.split(".")
        if metric and metric.groups:
            path = [*path, last]
            last = name.removeprefix(f"{metric.name}.")
        branch = result
        for key in path[:-1] if metric and is_numbered(metric) else path:
            branch = branch.setdefault(key, {})
        if metric and is_numbered(metric):
            branch.setdefault(path[-1], []).append(value)
        else:
            branch[last] = value
    return result


def is_numbered(metric: Metric) -> bool:
    """Return whether a metric's groups are numbers from 1: a list in `summary.json`."""
    return bool(metric.groups) and metric.groups[0].isdecimal()


def flatten(metrics: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Return nested metrics by dotted name: {"ause": {"rmse": 1}} becomes {"ause.rmse": 1}.

    Items in a list are numbered from 1.
    """
    flat: dict[str, float] = {}
    for key, value in metrics.items():
        if isinstance(value, list):
            value = {str(number): item for number, item in enumerate(value, 1)}
        flat |= (
            flatten(value, f"{prefix}{key}.")
            if isinstance(value, Mapping)
            else {prefix + key: value}
        )
    return flat
