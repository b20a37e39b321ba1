# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Errors of fused maps: sums per world, metrics with intervals over worlds, table and plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import figures
from experiments.robot_worlds import replicate_weights

Floats = NDArray[np.floating]
TITLES = {
    "height": "Height map, cells of 10 cm",
    "distance": "Truncated signed distance, voxels of 10 cm",
}
THRESHOLDS: dict[str, Floats] = {
    "height": np.linspace(0.02, 1.2, 60),
    "distance": np.linspace(-0.25, 0.25, 51),
}
"""Heights above which a cell, and distances below which a voxel, is called an obstacle."""
OBSTACLE = {"height": 0.2, "distance": 0.0}
"""The threshold of the truth, and of the reference 1 / z^2."""
ACCURATE_M = 0.1
REFERENCE = "1 / z^2"


def sums(grid: str, truth: Floats, maps: Mapping[str, Floats]) -> dict[str, Any]:
    """Return the sums that all metrics of a world are made of, by way to fuse.

    Args:
        grid: key of `TITLES`.
        truth: (cells,) the fused exact depth, NaN where unseen.
        maps: (cells,) of each way to fuse.
    """
    valid = np.isfinite(truth)
    is_obstacle = _is_obstacle(grid, truth[valid], OBSTACLE[grid])
    # RMSE is of the cells that every way has seen: no way wins by what it left out.
    common = np.logical_and.reduce([np.isfinite(values[valid]) for values in maps.values()])
    result: dict[str, Any] = {}
    for way, values in maps.items():
        error = np.abs(values[valid] - truth[valid])
        false = []
        missed = []
        for threshold in THRESHOLDS[grid]:
            is_predicted = _is_obstacle(grid, values[valid], threshold)
            false.append(int((is_predicted & ~is_obstacle).sum()))
            missed.append(int((~is_predicted & is_obstacle).sum()))
        result[way] = {
            "cells": int(valid.sum()),
            "obstacles": int(is_obstacle.sum()),
            "common": int(common.sum()),
            "square_error": float((error[common] ** 2).sum()),
            "accurate": int((error <= ACCURATE_M).sum()),
            "false": false,
            "missed": missed,
        }
    return result


def _is_obstacle(grid: str, values: Floats, threshold: float) -> NDArray[np.bool_]:
    """Return which cells are called obstacles; an unseen cell is not."""
    return values > threshold if grid == "height" else values < threshold


def metrics(worlds: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, dict[str, Floats]]]:
    """Return grid, way and metric to its value over all worlds and in replicates, (1 + R,)."""
    weight = replicate_weights(len(worlds))
    result: dict[str, dict[str, dict[str, Floats]]] = {}
    for grid in worlds[0]:
        totals = {way: _totals(worlds, grid, way, weight) for way in worlds[0][grid]}
        place = int(np.argmin(np.abs(THRESHOLDS[grid] - OBSTACLE[grid])))
        allowed = totals[REFERENCE]["missed"][:, place]
        result[grid] = {way: _metrics(total, place, allowed) for way, total in totals.items()}
    return result


def _totals(
    worlds: Sequence[Mapping[str, Any]], grid: str, way: str, weight: Floats
) -> dict[str, Floats]:
    totals = {}
    for name in worlds[0][grid][way]:
        sums = [world[grid][way][name] for world in worlds]
        totals[name] = weight @ np.array(sums, dtype=np.float64)
    return totals


def _metrics(total: Mapping[str, Floats], place: int, allowed: Floats) -> dict[str, Floats]:
    """Return the metrics of a way to fuse.

    Args:
        total: sums of `sums` over the worlds of each replicate.
        place: of the truth's threshold among `THRESHOLDS`.
        allowed: (1 + R,) missed obstacles of the reference.
    """
    free = total["cells"] - total["obstacles"]
    at_equal = np.empty(len(allowed))
    for row, missed in enumerate(total["missed"]):
        # Along the thresholds missed obstacles fall as false ones rise, or the other way round.
        order = np.argsort(missed, kind="stable")
        false = total["false"][row][order]
        at_equal[row] = np.interp(allowed[row], missed[order], false, right=np.nan)
        if allowed[row] < missed.min():
            at_equal[row] = np.nan
    return {
        "rmse": np.sqrt(total["square_error"] / total["common"]),
        "complete": total["accurate"] / total["cells"],
        "false": total["false"][:, place] / free,
        "missed": total["missed"][:, place] / total["obstacles"],
        "false_at_equal_missed": at_equal / free,
    }


def _bounds(values: Floats) -> tuple[float, float]:
    if not np.isfinite(values[1:]).any():
        return np.nan, np.nan
    low, high = np.nanpercentile(values[1:], (2.5, 97.5))
    return float(low), float(high)


def table(by_way: Mapping[str, Mapping[str, Floats]]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of one grid; changes are against 1 / z^2, with 95 % intervals."""
    header = [
        "fused",
        "RMSE (m)",
        "change",
        f"within {ACCURATE_M:g} m",
        "false obstacles",
        "missed",
        f"false at as many missed as {REFERENCE}",
        "change",
    ]
    reference = by_way[REFERENCE]
    rows = []
    for way, values in by_way.items():
        rows.append(
            [
                way,
                f"{values['rmse'][0]:.3f}",
                _change(values["rmse"], reference["rmse"], way),
                f"{values['complete'][0]:.1%}",
                f"{values['false'][0]:.2%}",
                f"{values['missed'][0]:.1%}",
                _percent(values["false_at_equal_missed"][0]),
                _change(values["false_at_equal_missed"], reference["false_at_equal_missed"], way),
            ]
        )
    return header, rows


def _percent(value: float) -> str:
    return f"{value:.2%}" if np.isfinite(value) else "not reached"


def _change(values: Floats, reference: Floats, way: str) -> str:
    change = 100 * (values / reference - 1)
    if way == REFERENCE or not np.isfinite(change[0]):
        return "–"
    low, high = _bounds(change)
    return f"{change[0]:+.0f} % ({low:+.0f} to {high:+.0f})"


def plain(metrics: Mapping[str, Mapping[str, Mapping[str, Floats]]]) -> dict[str, Any]:
    """Return value and 95 % interval of each metric, as plain lists."""
    result: dict[str, Any] = {}
    for grid, by_way in metrics.items():
        result[grid] = {}
        for way, values in by_way.items():
            result[grid][way] = {
                name: [float(rows[0]), *_bounds(rows)] for name, rows in values.items()
            }
    return result


def plot(worlds: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Plot false against missed obstacles over the thresholds, a panel per grid."""
    figure, panels = figures.panels(1, len(TITLES), width=5.0, height=4.0)
    weight = np.ones((1, len(worlds)))
    for axes, (grid, title) in zip(panels[0], TITLES.items(), strict=True):
        for way, color in zip(worlds[0][grid], figures.COLORS, strict=False):
            total = _totals(worlds, grid, way, weight)
            free = total["cells"] - total["obstacles"]
            false = 100 * total["false"][0] / free[0]
            missed = 100 * total["missed"][0] / total["obstacles"][0]
            axes.plot(missed, false, color=color, label=way)
        axes.set_title(title)
        axes.set_xlabel("missed obstacle cells (%)")
        axes.set_ylabel("false obstacle cells (%)")
        axes.set_yscale("log")
    panels[0, 0].legend(fontsize=7)
    figures.save(figure, path)
