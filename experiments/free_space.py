# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Free distance that a robot must give away to drive safely by a predicted depth.

For each frame the distance to the nearest obstacle in the robot's corridor is estimated from the
lower bound of the predicted depth: depth - m (constant), depth (1 - m) (relative), depth - m
sigma, and the same with the sigma that the robot's LiDAR corrects as it drives. A frame is
dangerous if this overestimates the true distance by more than `DANGER_M`. What each margin
gives away at `DANGEROUS` dangerous frames is the one number. Two attacks on our own sigma are
scored like it: shuffled over the pixels, and replaced by its mean over the frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import figures
from experiments.robot_worlds import (
    View,
    drive,
    load_predictor,
    make_config,
    model_digest,
    replicate_weights,
)
from experiments.runner import resume
from experiments.tables import markdown
from uncertainty_depth import atomic, strict_json
from uncertainty_depth.calibration.correction_in_force import CorrectionInForce
from uncertainty_depth.calibration.online import OnlineEstimate
from uncertainty_depth.calibration.online_loop import LoopFrame, OnlineLoop
from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.config.nodes import OnlineCorrectionConfig
from uncertainty_depth.metrics import valid_pixels
from uncertainty_depth.synthetic.sensors import CAMERA_HEIGHT

Floats = NDArray[np.float64]
DANGER_M = 0.2
"""A frame is dangerous if the free distance is overestimated by more than this."""
DANGEROUS = 0.01
"""Fraction of dangerous frames that the one number allows."""
MARGINS: dict[str, NDArray[np.floating]] = {
    "constant": np.linspace(0.0, 3.0, 61),
    "relative": np.linspace(0.0, 0.95, 61),
    "sigma": np.concatenate([[0.0], np.geomspace(0.1, 20.0, 60)]),
    "sigma calibrated online": np.concatenate([[0.0], np.geomspace(0.1, 20.0, 60)]),
    "sigma, shuffled": np.concatenate([[0.0], np.geomspace(0.1, 20.0, 60)]),
    "sigma, mean of the frame": np.concatenate([[0.0], np.geomspace(0.1, 20.0, 60)]),
}
"""Sizes of each margin: metres, fraction of the depth, and multiples of sigma."""


@dataclass(frozen=True)
class Settings:
    """Size of a run, and the robot.

    Attributes:
        worlds: per repetition.
        frames: per world.
        half_width_m: of the corridor.
        floor_m: height above the floor from which a point is an obstacle.
        height_m: of the robot; anything higher is not an obstacle.
        horizon_m: largest distance reported.
        pixels: min number of an obstacle's pixels; its distance is that of this many nearest ones.
    """

    worlds: int = 10
    frames: int = 24
    half_width_m: float = 0.3
    floor_m: float = 0.1
    height_m: float = 1.2
    horizon_m: float = 5.0
    pixels: int = 20


class Corridor:
    """The pixels of a frame that a depth map places on obstacles in the robot's corridor."""

    def __init__(self, rays: Floats, depth_m: Floats, settings: Settings) -> None:
        points = rays * depth_m[:, None]
        height = points[:, 2] + CAMERA_HEIGHT
        is_ahead = (points[:, 0] > 0) & (np.abs(points[:, 1]) < settings.half_width_m)
        is_obstacle = (height > settings.floor_m) & (height < settings.height_m)
        self._settings = settings
        self._pixels = np.flatnonzero(is_ahead & is_obstacle)
        self._ahead_per_depth = rays[self._pixels, 0]
        self._depth_m = depth_m[self._pixels]

    def free_m(self, margin_m: Floats | None = None) -> float:
        """Return the free distance ahead, by the lower bound depth - margin of each pixel.

        Args:
            margin_m: (P,) of all pixels of the frame, metres; None for none.
        """
        count = self._settings.pixels
        horizon = self._settings.horizon_m
        if len(self._pixels) < count:
            return horizon
        bound = self._depth_m
        if margin_m is not None:
            bound = np.maximum(bound - margin_m[self._pixels], 0.0)
        nearest = np.partition(self._ahead_per_depth * bound, count - 1)[count - 1]
        return min(float(nearest), horizon)


class OnlineSigma:
    """Sigma as the depth node publishes it while the evaluator corrects it by the LiDAR."""

    def __init__(self) -> None:
        config = OnlineCorrectionConfig(use_online_calibration=True)
        self._loop = OnlineLoop(OnlineEstimate(), CorrectionInForce(config))

    def __call__(self, view: View) -> Floats:
        """Return corrected sigma, (P,) metres, and learn from the frame for those after it."""
        correction = self._loop.correction(view.stamp_ns)
        if view.lidar_m is not None:
            limits = EvaluationConfig()
            depth_m, sigma_m, lidar_m = valid_pixels(
                view.depth_m, view.sigma_m, view.lidar_m, limits.min_depth, limits.max_depth
            )
            if len(depth_m):
                error_m = np.abs(depth_m - lidar_m)
                self._loop.add(LoopFrame(view.stamp_ns, error_m, sigma_m), correction)
        return np.asarray(correction(view.sigma_m), dtype=np.float64)


def distances(
    view: View, online_sigma_m: Floats, settings: Settings, rng: np.random.Generator
) -> dict[str, Any]:
    """Return the true free distance of a frame, and those of each margin at its sizes."""
    true_m = Corridor(view.rays, view.truth_m, settings).free_m()
    predicted = Corridor(view.rays, view.depth_m, settings)
    units: Mapping[str, Floats] = {
        "constant": np.ones_like(view.depth_m),
        "relative": view.depth_m,
        "sigma": view.sigma_m,
        "sigma calibrated online": online_sigma_m,
        "sigma, shuffled": rng.permutation(view.sigma_m),
        "sigma, mean of the frame": np.full_like(view.sigma_m, view.sigma_m.mean()),
    }
    estimates = {}
    for name, unit in units.items():
        estimates[name] = [predicted.free_m(size * unit) for size in MARGINS[name]]
    return {"true": true_m, **estimates}


def score(seed: int, settings: Settings) -> list[list[dict[str, Any]]]:
    """Return the distances of each frame of each world of a repetition."""
    config = make_config(seed, settings.worlds, settings.frames)
    predictor = load_predictor()
    rng = np.random.default_rng(seed)
    online_sigma = OnlineSigma()
    worlds = []
    for number in range(settings.worlds):
        views = drive(config, number, predictor, lidar=True)
        worlds.append([distances(view, online_sigma(view), settings, rng) for view in views])
    return worlds


@dataclass(frozen=True, eq=False)
class Curve:
    """Danger and waste of one margin over its sizes; row 0 is the sample, the rest replicates.

    Attributes:
        sizes: (S,) of the margin.
        dangerous: (1 + R, S) fraction of frames.
        given_away_m: (1 + R, S) mean free distance given away.
    """

    sizes: NDArray[np.floating]
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
    weights = replicate_weights(len(worlds))
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


def run(output: Path, seeds: int, quick: bool) -> None:
    """Drive through `seeds` sets of worlds and write table.md, summary.json and free_space.png."""
    settings = Settings(worlds=2, frames=6) if quick else Settings()
    results = resume(
        output / "results",
        [f"seed_{seed:03d}" for seed in range(seeds)],
        {
            **asdict(settings),
            "model": model_digest(),
            "margins": {name: sizes.tolist() for name, sizes in MARGINS.items()},
        },
        lambda name: score(int(name.removeprefix("seed_")), settings),
        "free-space",
    )
    worlds = [world for world in chain.from_iterable(results) if world]
    by_margin = curves(worlds)
    header, rows = table(by_margin)
    atomic.write_text(output / "table.md", markdown(header, rows))
    summary = {
        "settings": asdict(settings),
        "seeds": seeds,
        "quick": quick,
        "worlds": len(worlds),
        "frames": sum(map(len, worlds)),
        "margins": {name: curve.summary() for name, curve in by_margin.items()},
    }
    strict_json.write(output / "summary.json", summary)
    plot(by_margin, output / "free_space.png")
