# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth completion: whose sigma survives a change of domain.

Gustafsson et al. 2020, section 4.2 and appendix C: networks trained on rendered worlds alone
complete real depth; ensembles against MC-dropout by number of members or passes. What differs from
the paper is in `experiments/docs/completion.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments import completion_report
from experiments.completion_data import (
    interpolation_errors,
    test_sources,
)
from experiments.completion_models import (
    ENSEMBLE,
    FULL,
    MC_DROPOUT,
    QUICK,
    TRAINING_WORLDS,
    Settings,
    load,
    rendered,
    shifted_trainings,
    train_models,
)
from experiments.completion_sets import (
    drawn_sets,
    predicted_pixels,
    score_sets,
)
from experiments.runner import resume
from uncertainty_depth.core import strict
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.frames.protocol import Source
from uncertainty_depth.stream.predicting import predict_frame

FORMAT = 1
"""Version of the stored scores."""


def run(output: Path, seeds: int, quick: bool, data: Path | None = None) -> None:
    """Train and score; write table.md, CSV files, summary.json and plots.

    Finished trainings and scores of an earlier run are used.

    Args:
        output: of the results, with models in `models` and scores in `results`.
        seeds: not used; how many networks there are is part of the settings.
        quick: few frames, small networks, two epochs: only a test that the run works.
        data: folder of the data sets, with `nyuv2` and, if KITTI is to be scored too, `kitti_raw`;
            None takes the one that UNCERTAINTY_DEPTH_DATA names.

    Raises:
        SourceError: the data are missing.
        ConfigError: the output folder has models of other options.
    """
    settings = QUICK if quick else FULL
    worlds = rendered(settings.worlds, TRAINING_WORLDS)
    models = output / "models"
    sources = test_sources(data, settings)
    train_models(models, worlds, shifted_trainings(settings), "completion: trainings")
    shifted = shifted_scores(output, sources, settings)
    strict.write_json(
        output / "summary.json",
        {"quick": quick, "settings": asdict(settings), "shifted": shifted},
    )
    pictured = examples(models / ENSEMBLE, sources)
    completion_report.write(output, shifted, pictured, settings, quick)


def examples(
    model: Path, sources: Mapping[str, Source]
) -> dict[str, tuple[Frame, DepthPrediction]]:
    """Return the first frame of each test set, and the prediction of the ensemble."""
    predictor = load(model, 1)
    predicted = {}
    for name, source in sources.items():
        frame = next(record for record in source if isinstance(record, Frame))
        predicted[name] = (frame, predict_frame(predictor, frame))
    return predicted


def shifted_scores(
    output: Path, sources: Mapping[str, Source], settings: Settings
) -> dict[str, dict[str, Any]]:
    """Return the scores of all test sets.

    Returns:
        Name of a test set to "interpolation" and the two methods, and these to number of members
        or passes to the scores of each set, or of each network with dropout.
    """
    return {name: _scores_on(output, name, source, settings) for name, source in sources.items()}


def _scores_on(output: Path, name: str, source: Source, settings: Settings) -> dict[str, Any]:
    """Return the scores on one test set."""
    folder = output / "results" / name.replace(" ", "_")
    models = list(shifted_trainings(settings))
    results = resume(
        folder,
        models,
        _stored_with(output / "models", source, settings),
        lambda model: _scores_by_size(output / "models" / model, source, settings),
        f"completion: {name}",
    )
    by_model = dict(zip(models, results, strict=True))
    plain = resume(
        folder,
        ["interpolation"],
        {"source": source.name, "frames": len(source)},
        lambda _: interpolation_errors(source, "interpolation"),
        f"completion: {name}, interpolation",
    )
    return {
        "interpolation": plain[0],
        ENSEMBLE: by_model.pop(ENSEMBLE),
        MC_DROPOUT: _joined(by_model),
    }


def _stored_with(models: Path, source: Source, settings: Settings) -> Any:
    def stored_with(name: str) -> dict[str, Any]:
        return {
            "scores": FORMAT,
            "training": read_model(models / name).training,
            "source": source.name,
            "frames": len(source),
            "pixels": settings.pixels,
            "sizes": settings.sizes,
            "draws": settings.draws,
        }

    return stored_with


def _scores_by_size(model: Path, source: Source, settings: Settings) -> dict[str, Any]:
    """Return number of members or passes to the scores of the drawn sets.

    Of one network with dropout, whose passes are all alike, the first passes are the only set.
    """
    predictor = load(model, max(settings.sizes) if MC_DROPOUT in model.name else 1024)
    pixels = predicted_pixels(predictor, source, settings.pixels, model.name)
    by_size = {}
    for size in settings.sizes:
        sets = [tuple(range(size))]
        if predictor.method != MC_DROPOUT:
            sets = drawn_sets(predictor.passes, size, settings.draws)
        by_size[str(size)] = score_sets(pixels, sets)
    return by_size


def _joined(by_model: Mapping[str, Mapping[str, list[Any]]]) -> dict[str, list[Any]]:
    """Return size to the scores of all networks."""
    joined: dict[str, list[Any]] = {}
    for by_size in by_model.values():
        for size, of_sets in by_size.items():
            joined.setdefault(size, []).extend(of_sets)
    return joined
