# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a map gains from sigma: predicted depth with exact poses, fused in seven ways.

Each way weighs (or drops) the pixels of a frame, and nothing else differs. The truth is the same
fusion of exact depth, unweighted. Sigma proportional to depth is the weight 1/z^2 that the mapping
packages of the field use; a sigma shuffled over the pixels attacks our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import mapping_report
from experiments.mapping_grids import Area, DistanceGrid, HeightMap, Measurement
from experiments.robot_worlds import (
    View,
    drive,
    load_predictor,
    make_config,
    model_digest,
)
from experiments.runner import resume
from experiments.tables import markdown
from uncertainty_depth import atomic, strict_json
from uncertainty_depth.synthetic import furnishing

Floats = NDArray[np.float64]
ERROR_FLOOR_M = 0.02
"""Added to the true error that the oracle weighs by: no pixel decides a cell alone."""


@dataclass(frozen=True)
class Settings:
    """Size of a run, and the maps.

    Attributes:
        worlds: per repetition.
        frames: per world.
        cell_m: size of cells and voxels.
        height_m: what is higher is not mapped.
        kept_fraction: fraction of the pixels that the gates keep.
    """

    worlds: int = 6
    frames: int = 24
    cell_m: float = 0.1
    height_m: float = 1.5
    kept_fraction: float = 0.5


def weights(view: View, fraction: float, rng: np.random.Generator) -> Mapping[str, Floats]:
    """Return the weight of each pixel, (P,), of each way to fuse."""
    shuffled_m = rng.permutation(view.sigma_m)
    error_m = np.abs(view.depth_m - view.truth_m)
    return {
        "unweighted": np.ones_like(view.depth_m),
        "1 / z^2": view.depth_m**-2,
        "1 / sigma^2": view.sigma_m**-2,
        "1 / sigma^2, sigma shuffled": shuffled_m**-2,
        "gated by sigma": _keep_smallest(view.sigma_m, fraction),
        "gated by range": _keep_smallest(view.depth_m, fraction),
        "oracle: 1 / error^2": (error_m + ERROR_FLOOR_M) ** -2,
    }


def _keep_smallest(values: Floats, fraction: float) -> Floats:
    """Return 1 for this fraction of the smallest values, 0 for the others."""
    return (values <= np.quantile(values, fraction)).astype(np.float64)


def score_world(
    settings: Settings, views: list[View], extent: NDArray[np.floating], seed: int
) -> dict[str, Any]:
    """Return the counts and sums of each grid and each way to fuse, of one world."""
    area = Area.of(extent, settings.cell_m, settings.height_m)
    grids = {"height": HeightMap, "distance": DistanceGrid}
    scores: dict[str, Any] = {}
    for name, make in grids.items():
        truth = make(area)
        maps: dict[str, HeightMap | DistanceGrid] = {}
        rng = np.random.default_rng(seed)
        for view in views:
            truth.add(Measurement(view, view.truth_m, np.ones_like(view.truth_m)))
            for way, weight in weights(view, settings.kept_fraction, rng).items():
                maps.setdefault(way, make(area)).add(Measurement(view, view.depth_m, weight))
            if name == "height":
                per_pixel = maps.setdefault("1 / sigma^2 per pixel", HeightMap(area, True))
                per_pixel.add(Measurement(view, view.depth_m, view.sigma_m**-2))
        values = {way: grid.values() for way, grid in maps.items()}
        scores[name] = mapping_report.sums(name, truth.values(), values)
    return scores


def score(seed: int, settings: Settings) -> list[dict[str, Any]]:
    """Return the sums of each world of a repetition."""
    config = make_config(seed, settings.worlds, settings.frames)
    predictor = load_predictor()
    worlds = []
    for number in range(settings.worlds):
        views = list(drive(config, number, predictor))
        extent = furnishing.build(config.seed, number, config.test_objects).extent
        if views:
            worlds.append(score_world(settings, views, extent, seed))
    return worlds


def run(output: Path, seeds: int, quick: bool) -> None:
    """Map `seeds` sets of worlds and write table.md, summary.json and mapping.png."""
    settings = Settings(worlds=2, frames=6) if quick else Settings()
    results = resume(
        output / "results",
        [f"seed_{seed:03d}" for seed in range(seeds)],
        {**asdict(settings), "model": model_digest()},
        lambda name: score(int(name.removeprefix("seed_")), settings),
        "mapping",
    )
    worlds = list(chain.from_iterable(results))
    metrics = mapping_report.metrics(worlds)
    parts = []
    for grid, by_way in metrics.items():
        title = mapping_report.TITLES[grid]
        parts.append(f"{title}\n\n{markdown(*mapping_report.table(by_way))}")
    atomic.write_text(output / "table.md", "\n".join(parts))
    summary = {
        "settings": asdict(settings),
        "seeds": seeds,
        "quick": quick,
        "worlds": len(worlds),
        "metrics": mapping_report.plain(metrics),
    }
    strict_json.write(output / "summary.json", summary)
    mapping_report.plot(worlds, output / "mapping.png")
