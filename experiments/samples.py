# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What fewer samples cost in quality, and which noise needs the fewest.

MC dropout with M samples whose noise is independent, antithetic or stratified, variance propagated
without samples, one pass, a distilled student, and one sample or member a frame with a memory;
scored against ground truth, and against many samples of other noise. On the demo's model in
worlds it never saw, of its total sigma and of the spread alone, on the same model on NYU, and on a
network without a head on NYU, where there is one.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch

from experiments import samples_report
from experiments.data_folders import NYU
from experiments.runner import resume
from experiments.samples_drives import RATES_HZ, score_dropout, score_members
from experiments.samples_frames import (
    Scene,
    Settings,
    load_network,
    scenes,
    worlds,
)
from experiments.samples_scores import score
from experiments.samples_ways import many, one_pass, ways_of
from uncertainty_depth.errors import ModelError
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.model_location import SHIPPED_MODEL

NYU_MODEL = "multi_epochs-0"
STUDENT = "distilled"
SNAPSHOTS = "snapshots"
FULL = Settings()
QUICK = Settings(frames=2, reference=32, before=4)


class Setup(NamedTuple):
    """A model, the frames it is scored on, and a student of it, if there is one."""

    model: Path
    source: str
    student: Path | None = None


def run(output: Path, seeds: int, quick: bool, data: Path | None = None) -> None:
    """Score all ways with noise of several seeds; write tables, summary.json and a plot.

    Args:
        output: of the results; a NYU network, and a student and snapshots of the demo's model,
            are looked for in `models`.
        seeds: of the noise.
        quick: few frames, few samples of the reference.
        data: folder of the data sets, see `nyu`.

    Raises:
        SourceError: there is a NYU network, and the data are missing.
        ModelError: the student takes images of another size than the demo's model.
    """
    torch.set_num_threads(1)
    settings = QUICK if quick else FULL
    folder = output / "results"
    results: dict[str, list[Any]] = {}
    for name, setup in _setups(output / "models", settings, data).items():
        pieces = [f"{name} {seed}" for seed in range(seeds)]
        options = _options(settings, setup.model, setup.student) | {"source": setup.source}
        results[name] = resume(folder, pieces, options, _Scorer(setup, settings), name)
    drives = [f"{speed}, {seed}" for speed, seed in product(RATES_HZ, range(seeds))]
    of_dropout = partial(score_dropout, settings=settings)
    options = _options(settings, SHIPPED_MODEL)
    results["drives"] = resume(folder, drives, options, of_dropout, "drives")
    snapshots = _existing(output / "models" / SNAPSHOTS)
    if snapshots is not None:
        drives = [f"{speed}, snapshots" for speed in RATES_HZ]
        of_members = partial(score_members, snapshots, settings=settings)
        options = _options(settings, snapshots)
        results["snapshots"] = resume(folder, drives, options, of_members, "snapshots")
    samples_report.write(output, results, list(RATES_HZ))


def _setups(models: Path, settings: Settings, data: Path | None) -> dict[str, Setup]:
    """Return what is scored frame by frame, by name."""
    student = _existing(models / STUDENT)
    nyu_model = _existing(models / NYU_MODEL)
    setups = {"shipped": Setup(SHIPPED_MODEL, worlds(settings.frames // 2, 2, 0.5), student)}
    if nyu_model is None and NYU.existing(data) is None:
        return setups
    source = f"nyu:{NYU.find(data)}:test"
    setups["shipped on NYU"] = Setup(SHIPPED_MODEL, source, student)
    if nyu_model is not None:
        setups["nyu"] = Setup(nyu_model, source)
    return setups


def _options(settings: Settings, *models: Path | None) -> dict[str, Any]:
    """Return what results depend on: the size of the run, and how the models were trained."""
    trainings = [None if model is None else read(model).training for model in models]
    return {**vars(settings), "trainings": trainings}


def _existing(folder: Path) -> Path | None:
    return folder if (folder / "model.json").exists() else None


class _Scorer:
    """Scores all ways with noise of one seed."""

    def __init__(self, setup: Setup, settings: Settings) -> None:
        self._setup = setup
        self._settings = settings
        self._scenes: list[Scene] = []

    def __call__(self, piece: str) -> dict[str, Any]:
        """Return scores by way and part of sigma, for a name that ends with the seed."""
        network = load_network(self._setup.model)
        if not self._scenes:
            self._scenes = scenes(network, self._setup.source, self._settings.frames)
        ways = ways_of(network, int(piece.split()[-1]))
        if self._setup.student is not None:
            student = load_network(self._setup.student)
            if student.config.input_size != network.config.input_size:
                raise ModelError(
                    f"the student in {self._setup.student} has input_size "
                    f"{student.config.input_size}; expected that of its teacher, "
                    f"{network.config.input_size}"
                )
            ways["distilled student"] = one_pass(student)
        return score(network, self._scenes, ways, many(network, self._settings.reference))
