# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Night falls on a robot: what sigma covers with and without the online calibration.

A synthetic bag with camera and LiDAR; from its middle on the images are dark and noisy, as the
demo's model never saw any. Both ends of the loop work as in the nodes, with the nodes' options
and a delay between an image and the first sigma that it changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from experiments import figures, tables
from experiments.runner import resume
from synthetic import source as synthetic
from synthetic.config import SynthesisConfig
from synthetic.sensors import make_camera
from uncertainty_depth.core import strict
from uncertainty_depth.core.config.nodes import OnlineCorrectionConfig, OnlineEstimateConfig
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.scoring import EvaluationConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.model_location import model_path
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.core.records import Frame
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.metrics import valid_pixels
from uncertainty_depth.sigma.online.correction import OnlineCorrected
from uncertainty_depth.sigma.online.estimates import MIN_FRAMES
from uncertainty_depth.stream.opening import open_source

WORLDS = 24
QUICK_WORLDS = 8
FRAMES = 15
RATE_HZ = 2.0
"""Rate of camera and LiDAR. At a higher one, neighbouring frames are nearly the same."""
FIRST_SEED = 41_000
DELAY_FRAMES = 3
"""Frames from an image to the first whose sigma its estimate changes."""
NIGHT_LIGHT = 0.1
"""Light on the sensor, as a fraction of the day's."""
NIGHT_NOISE = 0.01
"""Standard deviation of the noise, in the day's white."""
SMOOTHING_FRAMES = 40
TOLERANCE = 0.02
MIN_REST = 60
"""Frames that a mean over the rest of the night needs."""
ESTIMATE = OnlineEstimateConfig()
CORRECTION = OnlineCorrectionConfig(use_online_calibration=True)


def night(image: NDArray[np.uint8], random: np.random.Generator) -> NDArray[np.uint8]:
    """Return the image, (H, W, 3) uint8, in a fraction of its light, with noise and no gain."""
    light = (image / 255.0) ** 2.2 * NIGHT_LIGHT
    light += NIGHT_NOISE * random.standard_normal(light.shape)
    return (255 * np.clip(light, 0, 1) ** (1 / 2.2) + 0.5).astype(np.uint8)


def write_bag(path: Path, config: SynthesisConfig) -> None:
    """Write a bag of camera and LiDAR; the second half of its worlds is at night."""
    camera = make_camera(config.width, config.height)
    random = np.random.default_rng(config.seed)
    with BagWriter(path) as bag:
        bag.static_transforms(synthetic.STATIC_TRANSFORMS)
        for number in range(config.worlds):
            world = synthetic.World(config, number)
            for frame in range(config.frames):
                stamp_ns = world.stamp_ns(frame)
                image = world.photograph(frame, world.view(frame))
                if number >= config.worlds // 2:
                    image = night(image, random)
                bag.image(synthetic.IMAGE_TOPIC, stamp_ns, synthetic.CAMERA_FRAME, image)
                bag.camera_info(synthetic.INFO_TOPIC, stamp_ns, synthetic.CAMERA_FRAME, camera)
                bag.cloud(
                    synthetic.CLOUD_TOPIC,
                    stamp_ns + synthetic.CLOUD_DELAY_NS,
                    synthetic.LIDAR_FRAME,
                    world.cloud(frame),
                )


def loop_rows(bag: Path) -> Iterator[dict[str, float]]:
    """Yield what the demo's own sigma and the corrected one cover on each frame's LiDAR."""
    predictor = Predictor(model_path("demo"), PredictorConfig(device="cpu"))
    nodes = OnlineCorrected(Frame.need_prediction, CORRECTION, delay=DELAY_FRAMES)
    half_width = nodes.estimator.of_sigma.half_width
    limits = EvaluationConfig()
    for record in open_source(str(bag), SourceConfig()):
        if isinstance(record, Frame):
            own = predictor.predict(record.need_image(), record.stamp_ns, record.camera)
            published = nodes(replace(record, prediction=own))
            row: dict[str, float] = {"stamp_ns": record.stamp_ns}
            sigma_m = {}
            for name, maps in {"own_coverage": own, "coverage": published}.items():
                depth, sigma_m[name], truth = valid_pixels(
                    maps.depth_m,
                    maps.sigma_m,
                    record.need_ground_truth(),
                    limits.min_depth,
                    limits.max_depth,
                )
                covered = np.abs(depth - truth) <= half_width * sigma_m[name]
                row[name] = float(covered.mean())
            row["factor"] = float(sigma_m["coverage"].mean() / sigma_m["own_coverage"].mean())
            yield row


def replayed(bag: Path, config: SynthesisConfig) -> list[dict[str, float]]:
    """Return the rows of the loop on the bag, which is written if it is missing."""
    if not bag.exists():
        write_bag(bag, config)
    return list(loop_rows(bag))


def frames_until_covered(coverage: NDArray[np.float64], target: float) -> int | None:
    """Return after how many frames the mean of all later ones is near the target; None if never.

    Args:
        coverage: (N,) of the frames at night.
        target: fraction to be covered.
    """
    for number in range(len(coverage) - MIN_REST + 1):
        if abs(coverage[number:].mean() - target) <= TOLERANCE:
            return number
    return None


def summary(rows: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Return coverage by day and at night, with and without, and how soon it is back."""
    change = len(rows) // 2
    published = np.array([row["coverage"] for row in rows])
    own = np.array([row["own_coverage"] for row in rows])
    back = frames_until_covered(published[change:], ESTIMATE.coverage)
    after = change + (back or 0)
    return {
        "frames": len(rows),
        "own_day": own[:change].mean(),
        "published_day": published[MIN_FRAMES:change].mean(),
        "own_night": own[change:].mean(),
        "published_night": published[change:].mean(),
        "frames_until_covered": back,
        "own_after": own[after:].mean(),
        "published_after": published[after:].mean(),
    }


def table(summaries: Sequence[Mapping[str, Any]]) -> str:
    """Return one row for each bag."""
    header = [
        "bag",
        "own sigma, day",
        "corrected, day",
        "own sigma, night",
        "corrected, night",
        "frames until within 2 points",
        "own, from then on",
        "corrected, from then on",
    ]
    rows = []
    for number, values in enumerate(summaries):
        before = [f"{values[name]:.1%}" for name in list(values)[1:5]]
        after = [f"{values[name]:.1%}" for name in list(values)[6:]]
        rows.append([number, *before, values["frames_until_covered"], *after])
    return tables.markdown(header, rows)


def plot(rows: Sequence[Mapping[str, float]], path: Path) -> None:
    """Plot coverage and factor against the frame."""
    figure, axes = figures.panels(2, 1, 8.0, 2.6, sharex=True)
    change = len(rows) // 2
    coverage, factor = axes[:, 0]
    _plot_coverage(coverage, rows)
    factor.plot([row["factor"] for row in rows], color=figures.COLORS[1])
    factor.set_ylabel("corrected / own sigma")
    factor.set_xlabel(f"frame, at {RATE_HZ:g} Hz")
    for panel in (coverage, factor):
        panel.axvline(change, color="black", linewidth=1)
        panel.grid(alpha=0.3)
    coverage.text(change + 2, 0.03, "night", transform=coverage.get_xaxis_transform())
    figures.save(figure, path)


def _plot_coverage(axes: Axes, rows: Sequence[Mapping[str, float]]) -> None:
    target = ESTIMATE.coverage
    axes.axhspan(target - TOLERANCE, target + TOLERANCE, color="grey", alpha=0.3)
    lines = {"own_coverage": "the model's own sigma", "coverage": "corrected online"}
    for color, (name, label) in zip(figures.COLORS, lines.items(), strict=False):
        values = np.array([row[name] for row in rows])
        axes.plot(values, color=color, alpha=0.2, linewidth=0.8)
        mean = np.convolve(values, np.full(SMOOTHING_FRAMES, 1 / SMOOTHING_FRAMES), "valid")
        axes.plot(np.arange(len(mean)) + SMOOTHING_FRAMES - 1, mean, color=color, label=label)
    axes.set_ylabel(f"covered by {target:.0%} interval")
    axes.legend(loc="lower left")


def run(output: Path, seeds: int, quick: bool) -> None:
    """Write bags, table, JSON and plot; see `registry.Experiment.run`."""
    worlds = QUICK_WORLDS if quick else WORLDS
    configs = {}
    for seed in range(seeds):
        configs[f"bag-{seed}"] = SynthesisConfig(
            worlds=worlds,
            frames=FRAMES,
            seed=FIRST_SEED + seed,
            width=160,
            height=120,
            rate=RATE_HZ,
        )
    model = (model_path("demo") / "model.json").read_text()
    options = {
        "estimate": asdict(ESTIMATE),
        "correction": asdict(CORRECTION),
        "delay": DELAY_FRAMES,
        "model": model,
    }
    (output / "bags").mkdir(parents=True, exist_ok=True)
    results = resume(
        output / "bags",
        configs,
        lambda name: options | {"synthesis": to_mapping(configs[name])},
        lambda name: replayed(output / "bags" / f"{name}-{worlds}", configs[name]),
        "online calibration",
    )
    summaries = [summary(rows) for rows in results]
    text = table(summaries)
    (output / "table.md").write_text(text)
    strict.write_json(output / "summary.json", summaries)
    plot(results[0], output / "online_calibration.png")
    print(text)
