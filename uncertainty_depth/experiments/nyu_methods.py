# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What the NYU experiment trains, and how each training is served: one entry per training, one per row of the table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from uncertainty_depth.config import NetworkConfig, PredictorConfig, TrainingConfig
from uncertainty_depth.data.source import Source
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.training import train


@dataclass(frozen=True)
class Settings:
    """The size of a run.

    Attributes:
        network: what all networks are.
        training: how all are trained; patience equals epochs, so that none stops early.
        backbones: encoders of multi_networks.
        train_frames: images to train on and to hold out; 0 takes all.
        test_frames: test images; 0 takes all.
        search_every: the recipe search shows every so many-th test image.
        rounds: turns that each row has when it is timed.
    """

    network: NetworkConfig
    training: TrainingConfig
    backbones: tuple[str, ...]
    train_frames: int = 0
    test_frames: int = 0
    search_every: int = 3
    rounds: int = 15


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
    search_every=1,
    rounds=5,
)

LAPLACE = {"head": "laplace"}
LONG = {"epochs": 3, "patience": 3}
VARIANTS: dict[str, dict[str, Any]] = {
    "multi_epochs": {},
    "multi_epochs_laplace": LAPLACE,
    "multi_epochs_gaussian": {"head": "gaussian"},
    "multi_inits": {"method": "multi_inits"},
    "multi_inits_laplace": {"method": "multi_inits", **LAPLACE},
    "bagging": {"method": "bagging"},
    "multi_networks": {"method": "multi_networks"},
    "learned_error": {"method": "learned_error"},
    "self_teaching": {"method": "self_teaching", **LAPLACE},
    "multi_epochs_rate3e-3": {"learning_rate": 3e-3},
    "multi_epochs_rate3e-4": {"learning_rate": 3e-4},
    "multi_epochs_dropout0.1": {"dropout": 0.1},
    "multi_epochs_dropout0.4": {"dropout": 0.4},
    "multi_epochs_relu": {"last_activation": "relu"},
    "multi_epochs_long": LONG,
    "multi_epochs_laplace_long": {**LAPLACE, **LONG},
    "multi_epochs_laplace_resnet10": {"backbone": "resnet10", **LAPLACE},
    "multi_epochs_laplace_resnet10_long": {"backbone": "resnet10", **LAPLACE, **LONG},
}
"""Each training: what sets its options apart from the run's; epochs and patience as multiples of the run's."""


class Row(NamedTuple):
    """A row of the table.

    Attributes:
        title: what it is called there.
        variant: the training it needs.
        served: the method that makes sigma.
        cheap: one network, trained once per seed; what needs several is trained once.
    """

    title: str
    variant: str
    served: str
    cheap: bool = True


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
    "self_teaching": Row("self-teaching", "self_teaching", "self_teaching", cheap=False),
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
    "multi_inits_laplace": Row(
        "Multi Inits + Laplace head", "multi_inits_laplace", "multi_inits", cheap=False
    ),
}
"""The six methods of Moukari et al. 2019, two of Poggi et al. 2020, and recipes that join both."""


def options(variant: str, seed: int, settings: Settings) -> tuple[NetworkConfig, TrainingConfig]:
    """What a training is called with."""
    changed = VARIANTS[variant]
    own = {
        name: value
        for name, value in changed.items()
        if name in NetworkConfig.__dataclass_fields__
    }
    others = {name: value for name, value in changed.items() if name not in own}
    others |= {
        name: others[name] * getattr(settings.training, name)
        for name in ("epochs", "patience")
        if name in others
    }
    if variant == "multi_networks":
        others["backbones"] = settings.backbones
    return replace(settings.network, **own), replace(settings.training, seed=seed, **others)


def model_name(variant: str, seed: int) -> str:
    """Its folder."""
    return f"{variant}-{seed}"


def seeds_of(row: Row, seeds: int) -> range:
    """The seeds a row is trained and scored with."""
    return range(seeds if row.cheap else 1)


def plan(seeds: int) -> list[tuple[str, int]]:
    """Every training, once: of the table's rows, then what the search needs besides."""
    rows = [(row.variant, seed) for row in ROWS.values() for seed in seeds_of(row, seeds)]
    return list(dict.fromkeys([*rows, *((variant, 0) for variant in VARIANTS)]))


def trained_seeds(seeds: int) -> dict[str, list[int]]:
    """The seeds that each variant is trained with."""
    return {
        variant: [seed for other, seed in plan(seeds) if other == variant] for variant in VARIANTS
    }


def train_models(
    folder: Path, source: Source, trainings: Iterable[tuple[str, int]], settings: Settings
) -> None:
    """Train what is missing in `folder`, and go on where an earlier run was killed.

    Raises:
        ConfigError: a model of other options is in the way.
        SourceError: the source cannot be read, or a training under way was started with other frames.
    """
    with tqdm(list(trainings), desc="nyu: trainings", unit="training") as progress:
        for variant, seed in progress:
            progress.set_postfix_str(model_name(variant, seed))
            train(
                source,
                folder / model_name(variant, seed),
                *options(variant, seed, settings),
                resume=True,
            )


def load(folder: Path, row: Row, seed: int = 0) -> Predictor:
    """A row's predictor, with raw sigma."""
    return Predictor(
        folder / model_name(row.variant, seed),
        PredictorConfig(method=row.served, calibrated=False),
    )
