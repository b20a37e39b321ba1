# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Networks of the experiment on depth completion: sizes, trainings, and the frames they see."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm

from experiments import deep_dropout
from experiments.sparse_networks import SparsePredictor, given_pixels
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.config.training import NetworkConfig, TrainingConfig
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.depth.training.run import train
from uncertainty_depth.frames.protocol import Source
from uncertainty_depth.stream.opening import open_source

TRAINING_WORLDS = 70_000
"""Seed of the worlds that the networks are trained on."""
TEST_WORLDS = 71_000
INPUT_FRACTION = 0.05
"""Fraction of the network's pixels that is given (Gustafsson et al. 2020, section 4.2)."""
ENSEMBLE = "ensemble"
MC_DROPOUT = "mc_dropout"


@dataclass(frozen=True)
class Settings:
    """Size of a run.

    Attributes:
        shifted: network, trained on rendered worlds; it is given sparse depth too.
        shifted_training: of all; `members` is the size of the ensemble.
        dropout_networks: networks with dropout, each sampled by itself.
        worlds: rendered frames to train on, one of each world.
        test_worlds: rendered frames to score on.
        shifted_test: NYU images to score on, evenly spread.
        kitti_frames: frames of KITTI to score on.
        sizes: numbers of members, or of passes, that are compared.
        draws: max number of sets of members that are drawn for each size.
        pixels: max number of scored pixels of each frame.
    """

    shifted: NetworkConfig
    shifted_training: TrainingConfig
    dropout_networks: int
    worlds: int
    test_worlds: int
    shifted_test: int
    kitti_frames: int
    sizes: tuple[int, ...]
    draws: int
    pixels: int


FULL = Settings(
    shifted=NetworkConfig(
        backbone="tiny",
        decoder_width=64,
        dropout=0.0,
        head="gaussian",
        input_size=(128, 96),
        depth_range=(0.3, 80.0),
    ),
    shifted_training=TrainingConfig(
        method="multi_inits",
        members=17,
        epochs=10,
        patience=10,
        batch_size=8,
        final_learning_rate=0.05,
        weight_decay=5e-4,
    ),
    dropout_networks=8,
    worlds=300,
    test_worlds=64,
    shifted_test=164,
    kitti_frames=24,
    sizes=(1, 2, 4, 8, 16),
    draws=16,
    pixels=2000,
)
QUICK = replace(
    FULL,
    shifted=replace(FULL.shifted, decoder_width=16, input_size=(64, 48)),
    shifted_training=replace(
        FULL.shifted_training, members=3, epochs=2, patience=2, validation_fraction=0.2
    ),
    dropout_networks=2,
    worlds=16,
    test_worlds=4,
    shifted_test=6,
    kitti_frames=2,
    sizes=(1, 2),
    draws=3,
    pixels=500,
)


class CachedSource:
    """The frames of a source, read once, when they are needed. A `Source`."""

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self.notes: list[str] = []
        self._source = source
        self._records: list[Frame | Skipped] = []

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self._source)

    def __iter__(self) -> Iterator[Frame | Skipped]:
        """Iterate over all frames."""
        if not self._records:
            bar = tqdm(self._source, f"reading {self.name}", len(self), unit="frame")
            self._records = list(bar)
        return iter(self._records)


def rendered(worlds: int, seed: int) -> CachedSource:
    """Return one frame of each varied world: rooms, homes and streets, with dense depth."""
    options = f"worlds={worlds},frames=1,seed={seed},scenes=experiments.worlds.varied,dense=true"
    return CachedSource(open_source(f"synthetic:{options},width=160,height=120", SourceConfig()))


def shifted_trainings(settings: Settings) -> dict[str, tuple[NetworkConfig, TrainingConfig]]:
    """Return name to options of the trainings on rendered worlds.

    The networks with dropout are trained as the members of the ensemble are.
    """
    pixels = round(INPUT_FRACTION * math.prod(settings.shifted.input_size))
    network = replace(settings.shifted, backbone=given_pixels(settings.shifted.backbone, pixels))
    training = settings.shifted_training
    trainings = {ENSEMBLE: (network, training)}
    deep = given_pixels(deep_dropout.NAME, pixels)
    with_dropout = replace(network, dropout=0.5, backbone=deep)
    for number in range(settings.dropout_networks):
        of_one = replace(training, method=MC_DROPOUT, seed=number)
        trainings[f"{MC_DROPOUT}-{number}"] = (with_dropout, of_one)
    return trainings


def train_models(
    folder: Path,
    source: Source,
    trainings: Mapping[str, tuple[NetworkConfig, TrainingConfig]],
    label: str,
) -> None:
    """Train the models missing in `folder`; an interrupted training continues.

    Raises:
        ConfigError: the folder of a model holds one of other options.
        SourceError: the source cannot be read, or a training was started with other frames.
    """
    with tqdm(trainings.items(), desc=label, unit="training") as progress:
        for name, (network, training) in progress:
            progress.set_postfix_str(name)
            train(source, folder / name, network, training, resume=True)


def load(folder: Path, samples: int) -> SparsePredictor:
    """Return the predictor of a model's members or passes, with raw sigma."""
    return SparsePredictor(folder, PredictorConfig(samples=samples, calibrated=False))
