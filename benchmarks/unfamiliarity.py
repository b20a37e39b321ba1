# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Print how well a model tells other frames from those like its training's, by unfamiliarity.

python -m benchmarks.unfamiliarity demo nyu:nyuv2:test kitti:DRIVE_DIR
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import numpy as np

from experiments.classification_metrics import auroc
from experiments.corruption import Corruption
from uncertainty_depth.config import PredictorConfig, SourceConfig
from uncertainty_depth.config.choices import CORRUPTIONS
from uncertainty_depth.frames.source import open_source
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.records import Frame

HOME = "synthetic:worlds=60,frames=2,rate=0.25,seed=30000,dense=true"
MOST = 218


def frames(notation: str) -> list[Frame]:
    """Return at most `MOST` frames of a source, evenly spread."""
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


def main(model: str, others: list[str]) -> None:
    """Print a row for the corrupted home frames and for each other source."""
    predictor = Predictor(model, PredictorConfig(method="deterministic", calibrated=False))
    home = frames(HOME)
    known = scores(predictor, (frame.image for frame in home))
    print(f"| home | | {known.mean():.2f} | {(known > 1).mean():.0%} |")
    for notation in others:
        row(notation, known, scores(predictor, (frame.image for frame in frames(notation))))
    for kind in CORRUPTIONS:
        corrupt = Corruption(kind, 3)
        images = (corrupt(frame.image, frame.stamp_ns, frame.ground_truth_m) for frame in home)
        row(f"{kind} 3", known, scores(predictor, images))


def row(name: str, known: np.ndarray, other: np.ndarray) -> None:
    """Print AUROC, mean, and the fraction above 1."""
    print(
        f"| {name} | {auroc(known, other):.3f} | {other.mean():.2f} | {(other > 1).mean():.0%} |",
        flush=True,
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
