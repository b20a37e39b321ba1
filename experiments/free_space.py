# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Free distance that a robot must give away to drive safely by a predicted depth.

For each frame the distance to the nearest obstacle in the robot's corridor is estimated from the
lower bound of the predicted depth: depth - m (constant), depth (1 - m) (relative), depth - m
sigma, and the same with the sigma that the robot's LiDAR corrects as it drives. A frame is
dangerous if this overestimates the true distance by more than `DANGER_M`. What each margin gives
away at `ALLOWED` fractions of dangerous frames is its score. Two attacks on our own sigma are
scored like it: shuffled over the pixels, and replaced by its mean over the frame.

Which pixels are obstacles is decided by the depth itself, by depth - sigma / 2 in a wider
corridor, or by the same bound as the distance, as in a costmap that is fed with the points of the
lower bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from experiments import figures, mapping_drives
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
from synthetic.sensors import CAMERA_HEIGHT
from uncertainty_depth.core import atomic, strict
from uncertainty_depth.core.config.nodes import OnlineCorrectionConfig
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.sigma.online.correction import OnlineCorrected

Floats = NDArray[np.float64]
DANGER_M = 0.2
"""A frame is dangerous if the free distance is overestimated by more than this."""
ALLOWED = (0.01, 0.02)
"""Fractions of dangerous frames at which margins are compared."""
WIDER_M = 0.1
"""Added to the width of the wider corridor."""
_FRACTIONS = np.linspace(0.0, 0.95, 61)
_SIGMAS = np.concatenate([[0.0], np.geomspace(0.1, 20.0, 60)])


@dataclass(frozen=True, eq=False)
class Margin:
    """A way to be careful.

    Attributes:
        unit: what the margin is a multiple of: constant, depth, or one of the sigmas.
        sizes: (S,) multiples, from none upwards.
        obstacles: what decides which pixels are obstacles: the depth, depth - sigma / 2, or the
            bound itself.
        wider: whether the corridor is `WIDER_M` wider.
    """

    unit: str
    sizes: NDArray[np.floating]
    obstacles: Literal["depth", "half a sigma", "bound"] = "depth"
    wider: bool = False


MARGINS: dict[str, Margin] = {
    "constant": Margin("constant", np.linspace(0.0, 3.0, 61)),
    "relative": Margin("depth", _FRACTIONS),
    "sigma": Margin("sigma", _SIGMAS),
    "sigma calibrated online": Margin("online sigma", _SIGMAS),
    "sigma, shuffled": Margin("shuffled sigma", _SIGMAS),
    "sigma, mean of the frame": Margin("mean sigma", _SIGMAS),
    "relative, wider corridor": Margin("depth", _FRACTIONS, wider=True),
    "sigma, wider corridor": Margin("sigma", _SIGMAS, wider=True),
    "sigma, wider, obstacles at d - sigma / 2": Margin("sigma", _SIGMAS, "half a sigma", True),
    "relative, one bound": Margin("depth", _FRACTIONS, "bound"),
    "sigma, one bound": Margin("sigma", _SIGMAS, "bound"),
    "sigma, one bound, shuffled": Margin("shuffled sigma", _SIGMAS, "bound"),
}


REAL_MARGINS = (
    "constant",
    "relative",
    "sigma",
    "sigma, shuffled",
    "sigma, mean of the frame",
    "relative, one bound",
    "sigma, one bound",
    "sigma, one bound, shuffled",
)
"""Margins tried on real drives, which have no LiDAR to correct sigma."""
SCALED_MARGINS = ("relative", "sigma", "relative, one bound", "sigma, one bound")
"""Margins tried on real drives with depth at one of `SCALES`."""
SCALES = ("online scale, ", mapping_drives.MOTION)
DRAWN = (
    "constant",
    "relative",
    "sigma",
    "sigma, shuffled",
    "relative, one bound",
    "sigma, one bound",
)


@dataclass(frozen=True)
class Settings:
    """Size of a run, and the robot.

    Attributes:
        worlds: per repetition.
        frames: per world.
        half_width_m: of the corridor.
        low_m: height from which a point is an obstacle, above the camera.
        high_m: height above which it is none, above the camera.
        horizon_m: largest distance reported.
        pixels: min number of an obstacle's pixels; its distance is that of this many nearest ones.
    """

    worlds: int = 20
    frames: int = 24
    half_width_m: float = 0.3
    low_m: float = 0.1 - CAMERA_HEIGHT
    high_m: float = 1.2 - CAMERA_HEIGHT
    horizon_m: float = 5.0
    pixels: int = 20


SLAB = replace(Settings(), half_width_m=5.0, low_m=-0.3, high_m=0.3)
"""A real drive's floor is not known: what counts is at the camera's height."""
RAYS = 16
"""Sectors of equal azimuth in a real drive's frame, like those of a costmap's sensor."""


def obstacle_pixels(
    rays: Floats, depth_m: Floats, settings: Settings, wider_m: float = 0.0
) -> NDArray[np.intp]:
    """Return the pixels that a depth places on obstacles in the corridor.

    A depth of zero, behind which nothing is known, is an obstacle at the camera.

    Args:
        rays: (P, 3) of the pixels, x ahead and z up, 1 m of depth long.
        depth_m: (P,) metres.
        settings: the corridor.
        wider_m: added to its width, metres.
    """
    points = rays * depth_m[:, None]
    is_ahead = (rays[:, 0] > 0) & (np.abs(points[:, 1]) < settings.half_width_m + wider_m / 2)
    is_obstacle = (points[:, 2] > settings.low_m) & (points[:, 2] < settings.high_m)
    return np.flatnonzero(is_ahead & is_obstacle)


def free_m(ahead_m: Floats, settings: Settings) -> float:
    """Return the free distance to the obstacle whose pixels are this far ahead, (N,) metres."""
    if len(ahead_m) < settings.pixels:
        return settings.horizon_m
    nearest = np.partition(ahead_m, settings.pixels - 1)[settings.pixels - 1]
    return min(float(nearest), settings.horizon_m)


class OnlineSigma:
    """Sigma as the depth node publishes it while the evaluator corrects it by the LiDAR."""

    def __init__(self) -> None:
        config = OnlineCorrectionConfig(use_online_calibration=True)
        self._publish = OnlineCorrected(Frame.need_prediction, config, delay=3)

    def __call__(self, view: View) -> Floats:
        """Return corrected sigma, (P,) metres, and learn from the frame for those after it."""
        depth_m = view.depth_m.astype(np.float32)
        prediction = DepthPrediction(depth_m, view.sigma_m.astype(np.float32))
        lidar_m = None if view.lidar_m is None else view.lidar_m.astype(np.float32)
        frame = Frame(view.stamp_ns, "", ground_truth_m=lidar_m, prediction=prediction)
        return np.asarray(self._publish(frame).sigma_m, dtype=np.float64)


def distances(
    view: View,
    online_sigma_m: Floats,
    settings: Settings,
    rng: np.random.Generator,
    names: Sequence[str] = tuple(MARGINS),
    sectors: int = 1,
) -> list[dict[str, Any]]:
    """Return the true free distance, and those of each margin at its sizes, by sector.

    Args:
        view: the frame; pixels whose depth or truth is not known count as free.
        online_sigma_m: (P,) metres, sigma as corrected by the LiDAR.
        settings: the corridor.
        rng: shuffles sigma over the pixels of the frame.
        names: of the margins.
        sectors: number of parts of equal azimuth that the frame is cut into.
    """
    units: Mapping[str, Floats] = {
        "constant": np.ones_like(view.depth_m),
        "depth": view.depth_m,
        "sigma": view.sigma_m,
        "online sigma": online_sigma_m,
        "shuffled sigma": rng.permutation(view.sigma_m),
        "mean sigma": np.full_like(view.sigma_m, np.nanmean(view.sigma_m)),
    }
    known = np.isfinite(view.truth_m) & np.isfinite(view.depth_m)
    azimuths = np.arctan2(view.rays[:, 1], view.rays[:, 0])
    edges = np.linspace(azimuths.min(), azimuths.max(), sectors + 1)[1:-1]
    sector_of = np.digitize(azimuths, edges)
    return [
        _of_sector(view, units, settings, names, known & (sector_of == sector))
        for sector in range(sectors)
    ]


def _of_sector(
    view: View,
    units: Mapping[str, Floats],
    settings: Settings,
    names: Sequence[str],
    known: NDArray[np.bool_],
) -> dict[str, Any]:
    """Return the distances by those pixels alone that are known, (P,)."""
    rays = view.rays[known]
    depth_m = view.depth_m[known]
    true_m = view.truth_m[known]
    pixels = obstacle_pixels(rays, true_m, settings)
    result: dict[str, Any] = {"true": free_m(rays[pixels, 0] * true_m[pixels], settings)}
    for name in names:
        margin = MARGINS[name]
        unit = units[margin.unit][known]
        wider_m = WIDER_M if margin.wider else 0.0
        by_depth = depth_m
        if margin.obstacles == "half a sigma":
            by_depth = np.maximum(depth_m - 0.5 * view.sigma_m[known], 0.0)
        pixels = obstacle_pixels(rays, by_depth, settings, wider_m)
        estimates = []
        for size in margin.sizes:
            bound_m = np.maximum(depth_m - size * unit, 0.0)
            if margin.obstacles == "bound":
                pixels = obstacle_pixels(rays, bound_m, settings, wider_m)
            estimates.append(free_m(rays[pixels, 0] * bound_m[pixels], settings))
        result[name] = estimates
    return result


def score_drive(folder: Path, drives: mapping_drives.Drives) -> list[list[dict[str, Any]]]:
    """Return the distances along the rays of each part of a real drive, by scale and margin.

    Margins of the depth at the followed scale, and of the depth that motion has corrected, are
    named `SCALES` and the margin.
    """
    rng = np.random.default_rng(0)
    parts = []
    for moments in mapping_drives.parts(folder, drives):
        rays = []
        for _, views in moments:
            own = _thinned(views[""])
            of_frame = distances(own, own.sigma_m, SLAB, rng, REAL_MARGINS, RAYS)
            for scale in SCALES:
                view = _thinned(views[scale])
                scaled = distances(view, view.sigma_m, SLAB, rng, SCALED_MARGINS, RAYS)
                for ray, by_scaled in zip(of_frame, scaled, strict=True):
                    ray |= {scale + name: by_scaled[name] for name in SCALED_MARGINS}
            rays += of_frame
        parts.append(rays)
    return parts


def _thinned(view: View) -> View:
    """Return every third row and column of a view."""
    kept = np.zeros((view.camera.height, view.camera.width), bool)
    kept[::3, ::3] = True
    pixels = np.flatnonzero(kept)
    return replace(
        view,
        rays=view.rays[pixels],
        truth_m=view.truth_m[pixels],
        depth_m=view.depth_m[pixels],
        sigma_m=view.sigma_m[pixels],
    )


def score(seed: int, settings: Settings) -> list[list[dict[str, Any]]]:
    """Return the distances of each frame of each world of a repetition."""
    config = make_config(seed, settings.worlds, settings.frames)
    predictor = load_predictor()
    rng = np.random.default_rng(seed)
    online_sigma = OnlineSigma()
    worlds = []
    for number in range(settings.worlds):
        views = drive(config, number, predictor, lidar=True)
        frames = (distances(view, online_sigma(view), settings, rng) for view in views)
        worlds.append(list(chain.from_iterable(frames)))
    return worlds


@dataclass(frozen=True, eq=False)
class Curve:
    """Danger and waste of one margin over its sizes, of each world.

    Attributes:
        sizes: (S,) of the margin.
        frames: (W,) number of frames of each world.
        dangerous: (W, S) number of dangerous frames.
        given_away_m: (W, S) sum of the free distance given away.
    """

    sizes: NDArray[np.floating]
    frames: Floats
    dangerous: Floats
    given_away_m: Floats

    def given_away_at(self, allowed: float) -> Floats:
        """Return the mean distance given away at this fraction of dangerous frames, (1 + R,).

        By the smallest margin that is at most as dangerous; NaN without such a margin. Row 0 is
        the sample, the others are replicates: worlds are resampled whole, as their frames are
        alike.
        """
        weights = replicate_weights(len(self.frames))
        frames = (weights @ self.frames)[:, None]
        safe = weights @ self.dangerous / frames <= allowed
        given_away_m = weights @ self.given_away_m / frames
        first = np.argmax(safe, axis=1)
        values: Floats = np.where(
            safe.any(axis=1), given_away_m[np.arange(len(safe)), first], np.nan
        )
        return values

    def chosen_elsewhere(self, allowed: float) -> tuple[float, float]:
        """Return dangerous fraction and mean distance given away, each world's size by the others.

        The size is the smallest at which the frames of all other worlds, and one dangerous frame
        more, are at most as dangerous: the conformal factor of a robot that has driven there.
        The largest size is taken if none is.
        """
        others = self.frames.sum() - self.frames
        dangerous = self.dangerous.sum(axis=0) - self.dangerous
        safe = (dangerous + 1) / (others[:, None] + 1) <= allowed
        chosen = np.where(safe.any(axis=1), np.argmax(safe, axis=1), len(self.sizes) - 1)
        worlds = np.arange(len(self.frames))
        total = self.frames.sum()
        return (
            float(self.dangerous[worlds, chosen].sum() / total),
            float(self.given_away_m[worlds, chosen].sum() / total),
        )

    def summary(self) -> dict[str, Any]:
        """Return the curve over all worlds and its scores as plain values."""
        total = self.frames.sum()
        scores = {}
        for allowed in ALLOWED:
            values = self.given_away_at(allowed)
            scores[f"{allowed:g}"] = {
                "given_away_m": [float(values[0]), *_bounds(values)],
                "chosen_elsewhere": self.chosen_elsewhere(allowed),
            }
        return {
            "sizes": self.sizes.tolist(),
            "dangerous": (self.dangerous.sum(axis=0) / total).tolist(),
            "given_away_m": (self.given_away_m.sum(axis=0) / total).tolist(),
            "at_dangerous_fraction": scores,
        }


def _bounds(values: Floats) -> tuple[float, float]:
    """Return the 95 % interval of replicates, NaN if no replicate has a value."""
    if not np.isfinite(values[1:]).any():
        return np.nan, np.nan
    low, high = np.nanpercentile(values[1:], (2.5, 97.5))
    return float(low), float(high)


def curves(worlds: Sequence[Sequence[dict[str, Any]]]) -> dict[str, Curve]:
    """Return the curve of each margin that the worlds were scored by."""
    frames = np.array([len(world) for world in worlds], float)
    result = {}
    for name in worlds[0][0]:
        if name == "true":
            continue
        margin = name
        for scale in SCALES:
            margin = margin.removeprefix(scale)
        sizes = MARGINS[margin].sizes
        dangerous = np.zeros((len(worlds), len(sizes)))
        given_away_m = np.zeros((len(worlds), len(sizes)))
        for number, world in enumerate(worlds):
            true_m = np.array([frame["true"] for frame in world])[:, None]
            estimate_m = np.array([frame[name] for frame in world])
            dangerous[number] = (estimate_m - true_m > DANGER_M).sum(axis=0)
            given_away_m[number] = np.maximum(true_m - estimate_m, 0.0).sum(axis=0)
        result[name] = Curve(sizes, frames, dangerous, given_away_m)
    return result


def table(curves: dict[str, Curve]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: the distance given away at the allowed fractions."""
    header = ["margin"]
    for allowed in ALLOWED:
        header += [
            f"given away at {allowed:.0%} dangerous, m",
            "against a relative margin, m",
            "size by the other worlds: dangerous, m given away",
        ]
    rows = []
    for name, curve in curves.items():
        row = [name]
        for allowed in ALLOWED:
            values = curve.given_away_at(allowed)
            low, high = _bounds(values)
            difference = values - curves["relative"].given_away_at(allowed)
            text = "–"
            if name != "relative" and np.isfinite(difference[0]):
                bounds = _bounds(difference)
                text = f"{difference[0]:+.2f} ({bounds[0]:+.2f} to {bounds[1]:+.2f})"
            dangerous, given_away_m = curve.chosen_elsewhere(allowed)
            value = f"{values[0]:.2f} ({low:.2f} to {high:.2f})"
            if not np.isfinite(values[0]):
                value = "not reached"
            row += [value, text, f"{dangerous:.1%}, {given_away_m:.2f}"]
        rows.append(row)
    return header, rows


def plot(curves: dict[str, Curve], path: Path) -> None:
    """Plot dangerous frames against the free distance given away, of margins without a comma."""
    figure, panels = figures.panels(1, 1, width=6.0, height=4.0)
    axes = panels[0, 0]
    drawn = {name: curve for name, curve in curves.items() if name in DRAWN}
    for (name, curve), color in zip(drawn.items(), figures.COLORS, strict=False):
        style = "--" if "shuffled" in name or "mean" in name else "-"
        total = curve.frames.sum()
        axes.plot(
            curve.given_away_m.sum(axis=0) / total,
            100 * curve.dangerous.sum(axis=0) / total,
            style,
            color=color,
            label=name,
        )
    for allowed in ALLOWED:
        axes.axhline(100 * allowed, color="grey", linewidth=0.8)
    axes.set_xlim(0.0, 2.5)
    axes.set_yscale("symlog", linthresh=1.0)
    axes.set_ylim(0.0, 30.0)
    axes.set_xlabel("mean free distance given away (m)")
    axes.set_ylabel(f"frames overestimated by > {DANGER_M} m (%)")
    axes.legend(title="margin")
    figures.save(figure, path)


def run(output: Path, seeds: int, quick: bool, data: Path | None = None) -> None:
    """Drive through `seeds` sets of worlds and write table.md, summary.json and free_space.png.

    The real drives in `rgbd/` of the data sets are scored too, if there are any.
    """
    settings = Settings(worlds=2, frames=6) if quick else Settings()
    margins = {name: asdict(margin) for name, margin in MARGINS.items()}
    results = resume(
        output / "results",
        [f"seed_{seed:03d}" for seed in range(seeds)],
        {**asdict(settings), "model": model_digest(), "margins": margins},
        lambda name: score(int(name.removeprefix("seed_")), settings),
        "free-space",
    )
    worlds = [world for world in chain.from_iterable(results) if world]
    by_margin = curves(worlds)
    tables = [markdown(*table(by_margin))]
    summary = {
        "settings": asdict(settings),
        "seeds": seeds,
        "quick": quick,
        "worlds": len(worlds),
        "frames": sum(map(len, worlds)),
        "margins": {name: curve.summary() for name, curve in by_margin.items()},
    }
    real = mapping_drives.resumed(
        output, quick, data, {"slab": asdict(SLAB), "rays": RAYS, "margins": margins}, score_drive
    )
    for name, parts in real.items():
        by_margin_there = curves([part for part in parts if part])
        tables.append(f"{name}\n\n{markdown(*table(by_margin_there))}")
        summary[name] = {margin: curve.summary() for margin, curve in by_margin_there.items()}
    atomic.write_text(output / "table.md", "\n".join(tables))
    strict.write_json(output / "summary.json", summary)
    plot(by_margin, output / "free_space.png")
