# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a map gains from sigma: predicted depth with exact poses, fused in seven ways.

Each way weighs (or drops) the pixels of a frame, and nothing else differs. The truth is the same
fusion of exact depth, unweighted. Sigma proportional to depth is the weight 1/z^2 that the mapping
packages of the field use; a sigma shuffled over the pixels attacks our own.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import mapping_drives, mapping_report
from experiments.mapping_grids import Area, DistanceGrid, HeightMap, Measurement, weights
from experiments.robot_worlds import (
    View,
    drive,
    load_predictor,
    make_config,
    model_digest,
)
from experiments.runner import resume
from experiments.tables import markdown
from synthetic import furnishing
from uncertainty_depth.core import atomic, strict


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


def run(output: Path, seeds: int, quick: bool, data: Path | None = None) -> None:
    """Map `seeds` sets of worlds and write table.md, summary.json and mapping.png.

    The real drives in `rgbd/` of the data sets are mapped too, if there are any.
    """
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
    real = _real(output, settings, quick, data)
    for name, by_way in real.items():
        title = f"{name}, {mapping_report.TITLES['distance'].lower()}"
        parts.append(f"{title}\n\n{markdown(*mapping_report.table(by_way))}")
    atomic.write_text(output / "table.md", "\n".join(parts))
    summary = {
        "settings": asdict(settings),
        "seeds": seeds,
        "quick": quick,
        "worlds": len(worlds),
        "metrics": mapping_report.plain(metrics),
        "real": mapping_report.plain(real),
    }
    strict.write_json(output / "summary.json", summary)
    mapping_report.plot(worlds, output / "mapping.png")


def _real(output: Path, settings: Settings, quick: bool, data: Path | None) -> dict[str, Any]:
    """Return drive, way and metric to its value and replicates."""
    results = mapping_drives.resumed(
        output,
        quick,
        data,
        asdict(settings),
        lambda folder, drives: mapping_drives.score(
            folder, drives, settings.cell_m, settings.kept_fraction
        ),
    )
    return {name: mapping_report.metrics(parts)["distance"] for name, parts in results.items()}
