# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How do methods hold up as the images get worse: fog, night, dirt, blur at five severities?

Every method predicts the same frames clean and corrupted, in the manner of Hendrycks and
Dietterich (2019). Scored are depth, the order and the size of sigma, and how well sigma alone, or
the frame's unfamiliarity, tells corrupted frames from clean ones.

The shipped model is scored in worlds like its own. Models that `experiment nyu` left in the same
output folder are scored on the NYU test split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from uncertainty_depth.config import PredictorConfig, SourceConfig
from uncertainty_depth.corruption.corruption import Corruption
from uncertainty_depth.corruption.names import CORRUPTIONS, SEVERITIES
from uncertainty_depth.corruption.source import corrupted
from uncertainty_depth.data.source import Source, open_source
from uncertainty_depth.experiments import shift_report
from uncertainty_depth.experiments.nyu_data import data_folder
from uncertainty_depth.experiments.nyu_methods import ROWS, model_name
from uncertainty_depth.experiments.runner import resume
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.metrics import coverage, sparsification, valid_pixels
from uncertainty_depth.metrics.distributions import distribution_of
from uncertainty_depth.records import Frame
from uncertainty_depth.shipped_model import model_path

MIN_DEPTH_M = 0.1
MAX_DEPTH_M = 80.0
THINNED = 3  # one of so many rows and columns is scored
SHIPPED = ("mc_dropout", "deterministic")
HOME_SEED = 40_000


@dataclass(frozen=True)
class Settings:
    """Size of a run.

    Attributes:
        frames: scored of each source, evenly spread.
        kinds: of corruption.
        severities: of each.
    """

    frames: int = 60
    kinds: tuple[str, ...] = CORRUPTIONS
    severities: tuple[int, ...] = SEVERITIES


FULL = Settings()
QUICK = Settings(4, ("night", "noise"), (1, 5))


@dataclass(frozen=True)
class Method:
    """A model, the method it is run with, and the frames it is scored on."""

    title: str
    folder: Path
    served: str
    source: str


def run(output: Path, seeds: int, quick: bool, data: Path | None = None) -> None:
    """Score all methods under all corruptions; write table.md, table.csv, summary.json and a plot.

    Args:
        output: of the results; NYU models are looked for in `models`.
        seeds: of the frames of the worlds.
        quick: few frames, two corruptions of two severities.
        data: folder of NYU Depth v2, see `nyu`.

    Raises:
        SourceError: there are NYU models, and the data are missing.
    """
    settings = QUICK if quick else FULL
    methods = _methods(output / "models", settings, seeds, data)
    results: dict[str, dict[str, Any]] = {}
    for method in methods:
        conditions = {_name(condition): condition for condition in _conditions(settings)}
        scorer = _Scorer(method, settings, conditions)
        pieces = resume(
            output / "results" / method.title,
            conditions,
            {"source": method.source, "frames": settings.frames, "thinned": THINNED},
            scorer,
            f"shift: {method.title}",
        )
        results[method.title] = dict(zip(conditions, pieces, strict=True))
    shift_report.write(output, results, settings.kinds, settings.severities)


def _methods(models: Path, settings: Settings, seeds: int, data: Path | None) -> Iterator[Method]:
    """Yield the shipped model's methods, and the rows of `nyu` whose model is there."""
    worlds = -(-settings.frames // 2)
    home = f"synthetic:worlds={worlds},frames=2,rate=0.25,seed={HOME_SEED + seeds},dense=true"
    for served in SHIPPED:
        yield Method(f"shipped, {served}, its worlds", model_path(Path("demo")), served, home)
    for row in ROWS.values():
        folder = models / model_name(row.variant, 0)
        if (folder / "model.json").exists():
            nyu = f"nyu:{data_folder(data)}:test"
            yield Method(f"{row.title}, NYU", folder, row.served, nyu)


def _conditions(settings: Settings) -> list[Corruption | None]:
    corruptions: list[Corruption | None] = [None]
    for kind in settings.kinds:
        corruptions += [Corruption(kind, severity) for severity in settings.severities]
    return corruptions


def _name(corruption: Corruption | None) -> str:
    return "clean" if corruption is None else f"{corruption.name}_{corruption.severity}"


class _Scorer:
    """Scores one method under a condition; model and frames are read once, when needed."""

    def __init__(
        self, method: Method, settings: Settings, conditions: Mapping[str, Corruption | None]
    ) -> None:
        self._method = method
        self._settings = settings
        self._conditions = conditions
        self._predictor: Predictor | None = None
        self._frames: list[Frame] = []

    def __call__(self, name: str) -> dict[str, list[float | None]]:
        """Return the scores of every frame under the condition."""
        if self._predictor is None:
            config = PredictorConfig(method=self._method.served, calibrated=False)
            self._predictor = Predictor(self._method.folder, config)
            self._frames = _spread(
                open_source(self._method.source, SourceConfig()), self._settings.frames
            )
        corruption = self._conditions[name]
        source = _Frames(self._frames)
        rows = []
        for frame in corrupted(source, [] if corruption is None else [corruption]):
            if isinstance(frame, Frame):
                rows.append(score(self._predictor, frame))
        return {key: list(map(itemgetter(key), rows)) for key in rows[0]}


def score(predictor: Predictor, frame: Frame) -> dict[str, float | None]:
    """Return the scores of one frame: error, AUSE, coverage, mean sigma and unfamiliarity."""
    prediction = predictor.predict(frame.image, frame.stamp_ns, frame.camera)
    every = np.s_[::THINNED, ::THINNED]
    depth, sigma, truth = valid_pixels(
        prediction.depth_m[every],
        prediction.sigma_m[every],
        frame.ground_truth_m[every],
        MIN_DEPTH_M,
        MAX_DEPTH_M,
    )
    error = np.abs(depth - truth)
    law = distribution_of(predictor.describe()["head"])
    return {
        "mae": float(error.mean()),
        "ause": sparsification(depth, sigma, truth, "rmse").ause,
        "coverage_95": float(coverage(error, sigma, 0.95, law)),
        "sigma": float(sigma.mean()),
        "unfamiliarity": prediction.unfamiliarity,
    }


def _spread(source: Source, number: int) -> list[Frame]:
    """Return so many frames of a source, evenly spread."""
    step = max(len(source) // number, 1)
    chosen: list[Frame] = []
    for index, record in enumerate(source):
        if index % step == 0 and isinstance(record, Frame) and len(chosen) < number:
            chosen.append(record)
    return chosen


class _Frames:
    """Frames in memory, as a source."""

    def __init__(self, frames: list[Frame]) -> None:
        self.name = "frames"
        self.notes: list[str] = []
        self._frames = frames

    def __len__(self) -> int:
        return len(self._frames)

    def __iter__(self) -> Iterator[Frame]:
        return iter(self._frames)
