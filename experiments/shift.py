# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How do methods hold up as the images get worse: fog, night, dirt, blur at five severities?

Every method predicts the same frames clean and corrupted, in the manner of Hendrycks and
Dietterich (2019). Scored are depth, the order and the size of sigma, and how well sigma alone, or
the frame's unfamiliarity, tells corrupted frames from clean ones.

Scored is also another domain, without corruption: the demo's model, which is of rendered rooms,
on NYU, and networks that `experiment nyu` left in the same output folder, in the rooms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from experiments import shift_report
from experiments.corruption import CORRUPTIONS, SEVERITIES, Corruption, corrupted
from experiments.runner import resume
from experiments.shift_methods import Method, methods
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.records import Frame
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.frames.protocol import Source
from uncertainty_depth.metrics import coverage, sparsification, valid_pixels
from uncertainty_depth.metrics.calibration import distribution_of
from uncertainty_depth.stream.opening import open_source

MIN_DEPTH_M = 0.1
MAX_DEPTH_M = 80.0
THINNED = 3  # every third row and column is scored
CLEAN = "clean"
ELSEWHERE = "elsewhere"


@dataclass(frozen=True)
class Settings:
    """Size of a run.

    Attributes:
        frames: scored of each source, evenly spread.
        corruptions: by name.
        severities: of each.
    """

    frames: int = 20
    corruptions: tuple[str, ...] = CORRUPTIONS
    severities: tuple[int, ...] = SEVERITIES


FULL = Settings()
QUICK = Settings(4, ("night", "noise"), (1, 5))


def run(output: Path, seeds: int, quick: bool, data: Path | None = None) -> None:
    """Score all methods under all corruptions; write table.md, table.csv, summary.json and a plot.

    Args:
        output: of the results; NYU models are looked for in `models`.
        seeds: of the frames of the worlds.
        quick: few frames, two corruptions of two severities.
        data: folder of the data sets, see `nyu`.

    Raises:
        SourceError: there are NYU models, and the data are missing.
    """
    settings = QUICK if quick else FULL
    results: dict[str, dict[str, Any]] = {}
    for method in methods(output / "models", settings.frames, seeds, data):
        conditions = _conditions(settings)
        if not method.elsewhere:
            del conditions[ELSEWHERE]
        pieces = resume(
            output / "results" / f"{method.domain}, {method.name}",
            conditions,
            {**_settings(method), "frames": settings.frames, "thinned": THINNED},
            _Scorer(method, settings, conditions),
            f"shift: {method.domain}, {method.name}",
        )
        of_domain = results.setdefault(method.domain, {})
        of_domain[method.name] = dict(zip(conditions, pieces, strict=True))
    shift_report.write(output, results, settings.corruptions, settings.severities)


def _settings(method: Method) -> dict[str, Any]:
    return {
        "source": method.source,
        "elsewhere": method.elsewhere,
        "training": read_model(method.folder).training,
    }


def _conditions(settings: Settings) -> dict[str, Corruption | None]:
    conditions: dict[str, Corruption | None] = {CLEAN: None, ELSEWHERE: None}
    for corruption in settings.corruptions:
        for severity in settings.severities:
            conditions[f"{corruption}_{severity}"] = Corruption(corruption, severity)
    return conditions


class _Scorer:
    """Scores one method under a condition; model and frames are read once, when needed."""

    def __init__(
        self, method: Method, settings: Settings, conditions: Mapping[str, Corruption | None]
    ) -> None:
        self._method = method
        self._settings = settings
        self._conditions = conditions
        self._predictor: Predictor | None = None
        self._frames: dict[str, list[Frame]] = {}

    def __call__(self, name: str) -> dict[str, list[float | None]]:
        """Return the scores of every frame under the condition."""
        if self._predictor is None:
            config = PredictorConfig(method=self._method.served, calibrated=False)
            self._predictor = Predictor(self._method.folder, config)
        is_elsewhere = name == ELSEWHERE
        notation = self._method.elsewhere if is_elsewhere else self._method.source
        if notation not in self._frames:
            source = open_source(notation, SourceConfig())
            self._frames[notation] = _spread(source, self._settings.frames)
        corruption = self._conditions[name]
        frames = _Frames(self._frames[notation])
        rows = []
        for frame in corrupted(frames, [] if corruption is None else [corruption]):
            if isinstance(frame, Frame):
                rows.append(score(self._predictor, frame))
        return {key: list(map(itemgetter(key), rows)) for key in rows[0]}


def score(predictor: Predictor, frame: Frame) -> dict[str, float | None]:
    """Return the scores of one frame: error, AUSE, coverage, mean sigma and unfamiliarity."""
    prediction = predictor.predict(frame.need_image(), frame.stamp_ns, frame.camera)
    subsampling = np.s_[::THINNED, ::THINNED]
    depth, sigma, truth = valid_pixels(
        prediction.depth_m[subsampling],
        prediction.sigma_m[subsampling],
        frame.need_ground_truth()[subsampling],
        MIN_DEPTH_M,
        MAX_DEPTH_M,
    )
    error = np.abs(depth - truth)
    distribution = distribution_of(predictor.describe()["head"])
    return {
        "mae": float(error.mean()),
        "ause": sparsification(depth, sigma, truth, "rmse").ause,
        "coverage_95": float(coverage(error, sigma, 0.95, distribution)),
        "sigma": float(sigma.mean()),
        "unfamiliarity": prediction.unfamiliarity,
    }


def _spread(source: Source, number: int) -> list[Frame]:
    """Return `number` frames of a source, evenly spread."""
    step = max(len(source) // number, 1)
    selection: list[Frame] = []
    for index, record in enumerate(source):
        if index % step == 0 and isinstance(record, Frame) and len(selection) < number:
            selection.append(record)
    return selection


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
