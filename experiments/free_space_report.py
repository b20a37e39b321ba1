# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Danger against free distance given away: curves, the one number, and its intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import figures

Floats = NDArray[np.floating]
DANGER_M = 0.2
"""A frame is dangerous where the free distance is overestimated by more than this."""
DANGEROUS = 0.01
"""Fraction of dangerous frames that the one number allows."""
REPLICATES = 1000
MARGINS: dict[str, Floats] = {
    "constant": np.linspace(0.0, 3.0, 61),
    "relative": np.linspace(0.0, 0.95, 61),
    "sigma": np.concatenate([[0.0], np.geomspace(0.1, 20.0, 60)]),
    "sigma calibrated online": np.concatenate([[0.0], np.geomspace(0.1, 20.0, 60)]),
    "sigma, shuffled": np.concatenate([[0.0], np.geomspace(0.1, 20.0, 60)]),
    "sigma, mean of the frame": np.concatenate([[0.0], np.geomspace(0.1, 20.0, 60)]),
}
"""Sizes of each margin: metres, fraction of the depth, and multiples of sigma."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Danger and waste of one margin over its sizes; row 0 is the sample, the rest replicates.

    Attributes:
        sizes: (S,) of the margin.
        dangerous: (1 + R, S) fraction of frames.
        given_away_m: (1 + R, S) mean free distance given away.
    """

    sizes: Floats
    dangerous: Floats
    given_away_m: Floats

    def given_away_at(self, allowed: float) -> Floats:
        """Return the distance given away at this fraction of dangerous frames, (1 + R,).

        By the smallest margin that is at most as dangerous; NaN without such a margin.
        """
        values = np.full(len(self.dangerous), np.nan)
        for row, dangerous in enumerate(self.dangerous):
            safe = np.flatnonzero(dangerous <= allowed)
            if safe.size:
                values[row] = self.given_away_m[row, safe[0]]
        return values

    def interval(self, allowed: float) -> tuple[float, float, float]:
        """Return value, and 95 % interval, of the distance given away."""
        values = self.given_away_at(allowed)
        low, high = (
            np.nanpercentile(values, (2.5, 97.5))
            if np.isfinite(values).any()
            else (
                np.nan,
                np.nan,
            )
        )
        return float(values[0]), float(low), float(high)

    def summary(self) -> dict[str, Any]:
        """Return the curve and its one number as plain values."""
        value, low, high = self.interval(DANGEROUS)
        return {
            "sizes": self.sizes.tolist(),
            "dangerous": self.dangerous[0].tolist(),
            "given_away_m": self.given_away_m[0].tolist(),
            "given_away_at_1_percent_m": [value, low, high],
        }


def curves(worlds: Sequence[Sequence[dict[str, Any]]]) -> dict[str, Curve]:
    """Return the curve of each margin; worlds are resampled whole, as their frames are alike."""
    weights = _replicate_weights(len(worlds))
    frames = weights @ np.array([len(world) for world in worlds], float)
    result = {}
    for name, sizes in MARGINS.items():
        dangerous = np.zeros((len(worlds), len(sizes)))
        given_away = np.zeros((len(worlds), len(sizes)))
        for number, world in enumerate(worlds):
            true_m = np.array([frame["true"] for frame in world])[:, None]
            estimate_m = np.array([frame[name] for frame in world])
            dangerous[number] = (estimate_m - true_m > DANGER_M).sum(axis=0)
            given_away[number] = np.maximum(true_m - estimate_m, 0.0).sum(axis=0)
        result[name] = Curve(
            sizes, weights @ dangerous / frames[:, None], weights @ given_away / frames[:, None]
        )
    return result


def _replicate_weights(worlds: int) -> Floats:
    """Return how often each world is drawn: once each in row 0, at random in the others."""
    random = np.random.default_rng(0)
    draws = random.multinomial(worlds, np.full(worlds, 1 / worlds), size=REPLICATES)
    return np.vstack([np.ones((1, worlds)), draws]).astype(np.float64)


def table(curves: dict[str, Curve]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: danger without a margin, and the distance given away with it."""
    header = [
        "margin",
        "dangerous frames at 0.5 m given away",
        "given away at 1 % dangerous frames, m",
        "against a relative margin, m",
    ]
    relative = curves["relative"].given_away_at(DANGEROUS)
    rows = []
    for name, curve in curves.items():
        value, low, high = curve.interval(DANGEROUS)
        difference = curve.given_away_at(DANGEROUS) - relative
        text = "–"
        if name != "relative" and np.isfinite(difference[0]):
            bounds = np.nanpercentile(difference[1:], (2.5, 97.5))
            text = f"{difference[0]:+.2f} ({bounds[0]:+.2f} to {bounds[1]:+.2f})"
        dangerous = np.interp(0.5, curve.given_away_m[0], curve.dangerous[0])
        interval = f"{value:.2f} ({low:.2f} to {high:.2f})"
        rows.append([name, f"{dangerous:.1%}", interval, text])
    return header, rows


def plot(curves: dict[str, Curve], path: Path) -> None:
    """Plot dangerous frames against the free distance given away."""
    figure, panels = figures.panels(1, 1, width=6.0, height=4.0)
    axes = panels[0, 0]
    for (name, curve), color in zip(curves.items(), figures.COLORS, strict=False):
        style = "--" if "," in name else "-"
        axes.plot(curve.given_away_m[0], 100 * curve.dangerous[0], style, color=color, label=name)
    axes.axhline(100 * DANGEROUS, color="grey", linewidth=0.8)
    axes.set_xlim(0.0, 2.5)
    axes.set_yscale("symlog", linthresh=1.0)
    axes.set_ylim(0.0, 30.0)
    axes.set_xlabel("mean free distance given away (m)")
    axes.set_ylabel(f"frames overestimated by > {DANGER_M} m (%)")
    axes.legend(title="margin")
    figures.save(figure, path)
