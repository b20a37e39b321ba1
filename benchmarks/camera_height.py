# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How far does a camera's known height over the floor tell the scale of its depth?

python -m benchmarks.camera_height [--worlds 8] [--frames 12] [--model demo indoor]

In rendered rooms, of which a model has seen none: a flat floor at an exact height, the best case.
The floor's depth is known at each pixel below the horizon, and the mode of ln(that / predicted
depth) is the frame's scale: pixels of things that stand on the floor spread to one side of it.
Beside it the scale that a LiDAR gives: of the same frame, and followed from the frames before.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from experiments.robot_worlds import Floats, View, drive, make_config
from experiments.tables import markdown
from synthetic.sensors import CAMERA_HEIGHT
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.model_location import NAMES
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.sigma.online.depth_scale import ScaleEstimate, frame_log_scale

RATE = 2.0
LATE = 2
"""Frames until a LiDAR's estimate is in force."""
FARTHEST_FLOOR_M = 5.0
MIN_PIXELS = 100
BINS = np.arange(-1.0, 1.0, 0.02)
SMOOTHED = 5


def height_log_scale(rays: Floats, depth_m: Floats) -> float | None:
    """Return ln of the floor's depth over the predicted one, None if too little is below.

    Args:
        rays: (P, 3) of the pixels, z up, 1 m of depth long.
        depth_m: (P,) predicted.
    """
    below = rays[:, 2] < -CAMERA_HEIGHT / FARTHEST_FLOOR_M
    ratios = np.log(-CAMERA_HEIGHT / rays[below, 2] / depth_m[below])
    counts = np.convolve(np.histogram(ratios, BINS)[0], np.ones(SMOOTHED), "same")
    if counts.max() < MIN_PIXELS:
        return None
    return float(BINS[np.argmax(counts)] + 0.01)


def rows_of(
    views: list[View], lidar: ScaleEstimate
) -> list[dict[str, tuple[float, float, float]]]:
    """Return for each frame and source of scale: MAE, share within 1.25, error of the scale."""
    waiting: list[float] = []
    found = []
    for view in views:
        true = frame_log_scale(view.depth_m, view.truth_m)
        assert true is not None
        assert view.lidar_m is not None
        height = height_log_scale(view.rays, view.depth_m)
        known = np.isfinite(view.lidar_m)
        scanned = frame_log_scale(view.depth_m[known], view.lidar_m[known])
        scales = {
            "nothing": 0.0,
            "camera height": height or 0.0,
            "LiDAR, followed": waiting[-LATE] if len(waiting) >= LATE else 0.0,
            "LiDAR of the frame": scanned or 0.0,
            "true scale": true,
        }
        found.append({name: _scores(view, scale, true) for name, scale in scales.items()})
        estimate = lidar.add(view.depth_m[known], view.lidar_m[known])
        waiting.append(np.log(estimate.factor) if estimate else 0.0)
    return found


def _scores(view: View, log_scale: float, true: float) -> tuple[float, float, float]:
    depth_m = view.depth_m * np.exp(log_scale)
    ratio = np.maximum(depth_m / view.truth_m, view.truth_m / depth_m)
    error_m = np.abs(depth_m - view.truth_m)
    return float(error_m.mean()), float((ratio < 1.25).mean()), log_scale - true


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=8)
    parser.add_argument("--frames", type=int, default=12)
    parser.add_argument("--model", nargs="+", choices=NAMES, default=["demo", "indoor"])
    arguments = parser.parse_args()
    config = replace(make_config(900, arguments.worlds, arguments.frames), rate=RATE)
    table = []
    for model in arguments.model:
        predictor = Predictor(model, PredictorConfig(device="cpu"))
        found = []
        for number in range(arguments.worlds):
            views = list(drive(config, number, predictor, lidar=True))
            found += rows_of(views, ScaleEstimate())
        for name in found[0]:
            mae, a1, off = np.array([frame[name] for frame in found]).T
            rms = np.sqrt(np.mean(off**2))
            table.append([model, name, f"{mae.mean():.3f}", f"{a1.mean():.3f}", f"{rms:.3f}"])
        print(f"{model}: {len(found)} frames", flush=True)
    print(markdown(["model", "scale by", "MAE (m)", "a1", "scale off (rms of ln)"], table))


if __name__ == "__main__":
    main()
