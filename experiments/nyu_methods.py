# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Trainings of the NYU experiment, and rows of its table, each a training and a method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from experiments.data_folders import first_frames
from experiments.methods import SELF_TEACHING
from uncertainty_depth.core.config.predictor import METHODS, PredictorConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.config.training import NetworkConfig, TrainingConfig
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.depth.training.run import train
from uncertainty_depth.frames.protocol import Source
from uncertainty_depth.stream.opening import open_source


@dataclass(frozen=True)
class Settings:
    """Size of a run.

    Attributes:
        network: of all trainings.
        training: of all; patience equals epochs, so that none stops early.
        backbones: encoders of multi_networks.
        train_frames: images to train on and to hold out; 0 takes all.
        test_frames: test images; 0 takes all.
        rounds: predictions of each row when it is timed.
        worlds: source of the pre-training.
    """

    network: NetworkConfig
    training: TrainingConfig
    backbones: tuple[str, ...]
    train_frames: int = 0
    test_frames: int = 0
    rounds: int = 15
    worlds: str = (
        "synthetic:worlds=600,frames=2,rate=0.25,seed=1,scenes=experiments.worlds.varied,"
        "width=160,height=120,dense=true"
    )


FULL = Settings(
    NetworkConfig(
        backbone="tiny",
        decoder_width=64,
        last_activation="leaky_relu",
        head="none",
        depth_range=(0.5, 10.5),
    ),
    TrainingConfig(epochs=50, patience=50),
    ("tiny", "tiny18", "tiny34"),
)
QUICK = Settings(
    replace(FULL.network, decoder_width=16, input_size=(64, 64)),
    replace(FULL.training, epochs=2, patience=2, snapshots=2, members=2, validation_fraction=0.2),
    ("tiny", "tiny18"),
    train_frames=32,
    test_frames=8,
    rounds=5,
    worlds="synthetic:worlds=4,frames=2,scenes=experiments.worlds.varied,"
    "width=64,height=64,dense=true",
)

LAPLACE = {"head": "laplace"}
LONG = {"epochs": 3, "patience": 3}
CANONICAL = {"canonical_focal_length": 0.936}
"""NYU's own camera: depth of the varied worlds' cameras is scaled to it, and NYU's stays."""
PRETRAINING = "pretraining"
PRETRAINED = "multi_epochs_laplace_pretrained"
VARIANTS: dict[str, dict[str, Any]] = {
    "multi_epochs": {},
    "multi_epochs_laplace": LAPLACE,
    "multi_inits": {"method": "multi_inits"},
    "multi_inits_laplace": {"method": "multi_inits", **LAPLACE},
    "bagging": {"method": "bagging"},
    "multi_networks": {"method": "multi_networks"},
    "learned_error": {"method": "learned_error"},
    SELF_TEACHING: {"method": SELF_TEACHING, **LAPLACE},
    "multi_epochs_laplace_long": {**LAPLACE, **LONG},
    PRETRAINING: {
        "method": "mc_dropout",
        "final_learning_rate": 0.05,
        "epochs": 0.6,
        **LAPLACE,
        **CANONICAL,
    },
    PRETRAINED: {**LAPLACE, **CANONICAL},
}
"""Options of each training that differ from the run's; epochs and patience as multiples.

`PRETRAINING` sees synthetic worlds and no NYU; `PRETRAINED` starts from its weights.
"""


class Row(NamedTuple):
    """A row of the table.

    Attributes:
        title: its name there.
        variant: key of `VARIANTS`.
        served: the method that predicts.
        cheap: one network, trained once per seed; several networks are trained once.
        samples: passes at most, see `PredictorConfig`.
    """

    title: str
    variant: str
    served: str
    cheap: bool = True
    samples: int = PredictorConfig().samples


TRAINING_FREE = {
    "post": Row("Post (image and mirror image)", "multi_epochs", "tta", samples=2),
    "tta": Row("test-time augmentation", "multi_epochs", "tta"),
    "inference_dropout": Row("inference dropout", "multi_epochs", "inference_dropout"),
    "feature_noise": Row("feature noise", "multi_epochs", "feature_noise"),
}
"""Methods for any network: Post is of Poggi et al. 2020, the others are of Mi et al. 2022."""
TRAINING_FREE_LAPLACE = {
    f"{name}_laplace": row._replace(
        title=f"{row.title} + Laplace head", variant="multi_epochs_laplace"
    )
    for name, row in TRAINING_FREE.items()
}

ROWS: dict[str, Row] = {
    "multi_epochs": Row("Multi Epochs", "multi_epochs", "multi_epochs"),
    "mc_dropout": Row("MC-dropout", "multi_epochs", "mc_dropout"),
    "multi_inits": Row("Multi Inits", "multi_inits", "multi_inits", cheap=False),
    "bagging": Row("Bagging", "bagging", "bagging", cheap=False),
    "multi_networks": Row("Multi Networks", "multi_networks", "multi_networks", cheap=False),
    "learned_error": Row("Learned Error", "learned_error", "learned_error", cheap=False),
    "log_likelihood": Row(
        "log likelihood (Laplace head, one pass)", "multi_epochs_laplace", "deterministic"
    ),
    SELF_TEACHING: Row("self-teaching", SELF_TEACHING, "deterministic", cheap=False),
    "multi_epochs_laplace": Row(
        "Multi Epochs + Laplace head", "multi_epochs_laplace", "multi_epochs"
    ),
    "mc_dropout_laplace": Row("MC-dropout + Laplace head", "multi_epochs_laplace", "mc_dropout"),
    "multi_epochs_long": Row(
        "Multi Epochs + Laplace head, long", "multi_epochs_laplace_long", "multi_epochs"
    ),
    "mc_dropout_long": Row(
        "MC-dropout + Laplace head, long", "multi_epochs_laplace_long", "mc_dropout"
    ),
    "multi_epochs_pretrained": Row(
        "Multi Epochs + Laplace head, pre-trained", PRETRAINED, "multi_epochs"
    ),
    "multi_inits_laplace": Row(
        "Multi Inits + Laplace head", "multi_inits_laplace", "multi_inits", cheap=False
    ),
    **TRAINING_FREE,
    **TRAINING_FREE_LAPLACE,
}
"""The six methods of Moukari et al. 2019, two of Poggi et al. 2020, recipes that join both, and
methods without training, on the networks of Multi Epochs without a head and with one."""


def options(variant: str, seed: int, settings: Settings) -> tuple[NetworkConfig, TrainingConfig]:
    """Return the network and training options of a training."""
    network: dict[str, Any] = {}
    training: dict[str, Any] = {"seed": seed}
    for name, value in VARIANTS[variant].items():
        if name in NetworkConfig.__dataclass_fields__:
            network[name] = value
        elif name in ("epochs", "patience"):
            training[name] = round(value * getattr(settings.training, name))
        else:
            training[name] = value
    if variant == "multi_networks":
        network["backbone"] = ",".join(settings.backbones)
    return replace(settings.network, **network), replace(settings.training, **training)


def model_name(variant: str, seed: int) -> str:
    """Return the name of a training's folder."""
    return f"{variant}-{seed}"


def seeds_of(row: Row, seeds: int) -> range:
    """Return the seeds that a row is trained and scored with."""
    return range(seeds if row.cheap else 1)


def plan(seeds: int) -> list[tuple[str, int]]:
    """Return (variant, seed) of each training; the pre-training is first, others start from it."""
    trainings = [(PRETRAINING, 0)]
    for row in ROWS.values():
        trainings += [(row.variant, seed) for seed in seeds_of(row, seeds)]
    return list(dict.fromkeys(trainings))


def train_models(
    folder: Path, source: Source, trainings: Iterable[tuple[str, int]], settings: Settings
) -> None:
    """Train the models missing in `folder`; an interrupted training continues.

    Raises:
        ConfigError: the folder of a model holds one of other options.
        SourceError: the source cannot be read, or a training was started with other frames.
    """
    with tqdm(list(trainings), desc="nyu: trainings", unit="training") as progress:
        for variant, seed in progress:
            progress.set_postfix_str(model_name(variant, seed))
            network, training = options(variant, seed, settings)
            training_source = source
            if variant == PRETRAINING:
                training_source = open_source(settings.worlds, SourceConfig())
            elif variant == PRETRAINED:
                training = replace(training, from_model=str(folder / model_name(PRETRAINING, 0)))
            train(
                training_source, folder / model_name(variant, seed), network, training, resume=True
            )


def prediction(row: Row) -> PredictorConfig:
    """Return the options of a row: raw sigma, and independent samples as published."""
    independent = f"independent_{row.served}"
    method = independent if independent in METHODS else row.served
    return PredictorConfig(method=method, samples=row.samples, calibrated=False)


def load(folder: Path, row: Row, seed: int = 0) -> Predictor:
    """Return the predictor of a row."""
    return Predictor(folder / model_name(row.variant, seed), prediction(row))


@dataclass(frozen=True)
class Splits:
    """The two official parts: 795 training images, 654 test images."""

    train: Source
    test: Source


def open_splits(folder: Path, train_frames: int = 0, test_frames: int = 0) -> Splits:
    """Open both parts of the NYU folder, all frames if a number is 0, else the first ones.

    Raises:
        SourceError: the folder, its split files or its images are missing.
    """
    return Splits(_open(folder, "train", train_frames), _open(folder, "test", test_frames))


def _open(folder: Path, part: str, frames: int) -> Source:
    source = open_source(f"nyu:{folder}:{part}", SourceConfig())
    return first_frames(source, frames) if frames else source
