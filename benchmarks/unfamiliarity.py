# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Print how well a model tells other frames from those like its training's, by unfamiliarity.

python -m benchmarks.unfamiliarity indoor nyu:nyuv2:test kitti:DRIVE_DIR 'camvid/test/*.jpg'

The first source is like the training's; others may be image files too. Runs are so many
neighbouring frames, whose mean the verdict's line domain is about.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from experiments.classification_metrics import auroc
from experiments.corruption import CORRUPTIONS, Corruption
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.records import Frame
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.frames.image_files import read_pixels
from uncertainty_depth.stream.opening import open_source

MOST = 240
RUN = 6


def frames(notation: str) -> list[Frame]:
    """Return at most `MOST` frames of a source, or of image files, evenly spread."""
    if "*" in notation:
        paths = sorted(Path().glob(notation))
        chosen = paths[:: -(-len(paths) // MOST)]
        return [Frame(0, path.name, image=read_pixels(path)) for path in chosen]
    source = open_source(notation, SourceConfig())
    step = -(-len(source) // MOST)
    return [
        frame
        for index, frame in enumerate(source)
        if index % step == 0 and isinstance(frame, Frame)
    ]


def scores(predictor: Predictor, images: Iterable[np.ndarray]) -> np.ndarray:
    """Return the unfamiliarity of each image."""
    return np.array([predictor.predict(image).unfamiliarity for image in images], float)


def main(model: str, like: str, others: list[str]) -> None:
    """Print a row for each source, and for the first one's frames corrupted."""
    predictor = Predictor(model, PredictorConfig(method="deterministic", calibrated=False))
    home = frames(like)
    known = scores(predictor, (frame.need_image() for frame in home))
    places = predictor.describe()["familiar_places"]
    row(like, known, known, places)
    for notation in others:
        other = scores(predictor, (frame.need_image() for frame in frames(notation)))
        row(notation, known, other, places)
    for kind in CORRUPTIONS:
        corrupt = Corruption(kind, 3)
        images = (
            corrupt(frame.need_image(), frame.stamp_ns, frame.ground_truth_m) for frame in home
        )
        row(f"{kind} 3", known, scores(predictor, images), places)


def row(name: str, known: np.ndarray, other: np.ndarray, places: Sequence[float]) -> None:
    """Print AUROC, mean, fraction above 1, and of runs that are familiar, and unfamiliar."""
    runs = other[: len(other) // RUN * RUN].reshape(-1, RUN).mean(axis=1)
    cells = (
        f"{auroc(known, other):.3f}",
        f"{other.mean():.2f}",
        *(f"{share:.0%}" for share in (np.mean(other > 1), np.mean(runs <= places[0]))),
        f"{np.mean(runs > places[1]):.0%}",
    )
    print(f"| {name} | {len(other)} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
