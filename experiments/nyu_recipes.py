# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Recipes for a sigma that the search compares: what makes the spread of passes informative?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from experiments.nyu_methods import Settings

ALL_PLACES = (0, 1, 2)


@dataclass(frozen=True)
class Recipe:
    """A model's passes, and how sigma is computed from them.

    Attributes:
        variant: the training; each of its seeds is scored.
        first: index of the first member used, as in Python slices.
        stop: index to stop before; None uses all from the first on.
        order: of the members: "served" has the best validation error last, "name" is the order of
            epochs for snapshots.
        passes: passes of each member with dropout on; 0 is one with dropout off.
        rate: dropout rate of these passes; None takes the trained one.
        places: which of the decoder's three dropouts are on.
        part: total, epistemic or aleatoric.
        space: of the spread: metres, or the logarithm of the depth, then multiplied by the depth.
        weight: factor of the spread before the predicted part is added.
    """

    variant: str
    first: int = 0
    stop: int | None = None
    order: str = "served"
    passes: int = 0
    rate: float | None = None
    places: tuple[int, ...] = ALL_PLACES
    part: str = "total"
    space: str = "metres"
    weight: float = 1.0

    @property
    def key(self) -> str:
        """Return the key of its scores."""
        return " ".join(f"{name}={value}" for name, value in asdict(self).items())


@dataclass(frozen=True)
class Question:
    """A choice, the recipes compared, and whether their sigma is also calibrated."""

    title: str
    answers: dict[str, Recipe]
    calibrated: bool = False


def dropout(variant: str = "multi_epochs", passes: int = 8, **options: Any) -> Recipe:
    """Return the recipe of dropout passes of the best snapshot."""
    return Recipe(variant, first=-1, passes=passes, **options)


def questions(settings: Settings) -> list[Question]:
    """Return all comparisons, in the order of the table."""
    snapshots = settings.training.snapshots
    members = settings.training.members
    return [
        *_about_snapshots(snapshots),
        *_about_dropout(),
        *_about_the_head(),
        *_about_the_training(),
        *_about_the_parts(),
        *_about_members(members),
        _about_calibration(),
    ]


def _about_snapshots(snapshots: int) -> list[Question]:
    numbers = [number for number in (2, 4, 8) if number <= snapshots]
    none = {str(number): Recipe("multi_epochs", -number) for number in numbers}
    laplace = {str(number): Recipe("multi_epochs_laplace", -number) for number in numbers}
    half = max(snapshots // 2, 1)
    halves = {
        "earlier half": Recipe("multi_epochs", stop=half, order="name"),
        "later half": Recipe("multi_epochs", -half, order="name"),
    }
    rates = {
        "3e-4": "multi_epochs_rate3e-4",
        "1e-3 (default)": "multi_epochs",
        "3e-3": "multi_epochs_rate3e-3",
    }
    activations = _snapshots_and_passes(
        {"leaky ReLU (default)": "multi_epochs", "ReLU": "multi_epochs_relu"}
    )
    spaces = {}
    for space in ("metres", "log"):
        for name, recipe in _in_space(space).items():
            spaces[f"{name}, {space}"] = recipe
    return [
        Question("number of snapshots, no head", none),
        Question(
            "number of snapshots, Laplace head, total",
            {"1": Recipe("multi_epochs_laplace", -1), **laplace},
        ),
        Question("which snapshots, no head", halves),
        Question(
            "step size of the training, all snapshots",
            {name: Recipe(variant) for name, variant in rates.items()},
        ),
        Question("last activation, no head", activations),
        Question("space of the spread", spaces),
    ]


def _in_space(space: str) -> dict[str, Recipe]:
    return {
        "snapshots": Recipe("multi_epochs", space=space),
        "dropout": dropout(space=space),
        "snapshots + Laplace head": Recipe("multi_epochs_laplace", space=space),
    }


def _about_dropout() -> list[Question]:
    places = {
        f"after up-projection {place + 1} only": dropout(places=(place,)) for place in ALL_PLACES
    }
    trained = {
        "0.1": "multi_epochs_dropout0.1",
        "0.2 (default)": "multi_epochs",
        "0.4": "multi_epochs_dropout0.4",
    }
    together = {
        "snapshots": Recipe("multi_epochs"),
        "8 passes": dropout(),
        "snapshots x 8 passes": Recipe("multi_epochs", passes=8),
    }
    return [
        Question("place of the dropout, 8 passes", {"all three (default)": dropout(), **places}),
        Question(
            "dropout rate of the passes, trained with 0.2",
            {f"{rate:g}": dropout(rate=rate) for rate in (0.05, 0.1, 0.2, 0.4)},
        ),
        Question(
            "dropout rate of training and passes",
            {rate: dropout(variant) for rate, variant in trained.items()},
        ),
        Question(
            "dropout rate of the training, all snapshots",
            {rate: Recipe(variant) for rate, variant in trained.items()},
        ),
        Question(
            "number of dropout passes",
            {str(passes): dropout(passes=passes) for passes in (2, 4, 8, 16, 32)},
        ),
        Question("snapshots and dropout together, no head", together),
    ]


def _about_the_head() -> list[Question]:
    heads = {
        "none": "multi_epochs",
        "Gaussian": "multi_epochs_gaussian",
        "Laplace": "multi_epochs_laplace",
    }
    single = {
        "one pass": Recipe("multi_epochs_laplace", -1),
        "one pass, self-teaching": Recipe("self_teaching", -1),
    }
    spreads = {
        "snapshots": Recipe("multi_epochs_laplace"),
        "8 dropout passes": dropout("multi_epochs_laplace"),
    }
    snapshot_passes = {"snapshots x 8 passes": Recipe("multi_epochs_laplace", passes=8)}
    return [
        Question(
            "head, all snapshots, total",
            {head: Recipe(variant) for head, variant in heads.items()},
        ),
        Question("passes with the Laplace head, total", {**single, **spreads, **snapshot_passes}),
        Question("weight of the snapshots' spread beside the Laplace head", _weights(0)),
        Question("weight of the dropout passes' spread beside the Laplace head", _weights(-1)),
    ]


def _about_the_training() -> list[Question]:
    """Return the questions about the length of the training, and the encoder."""
    return [
        Question(
            "length of the training, no head",
            _snapshots_and_passes(
                {"usual": "multi_epochs", "3 times as long": "multi_epochs_long"}
            ),
        ),
        Question(
            "length of the training, Laplace head, total",
            _snapshots_and_passes({"usual": "multi_epochs_laplace", "3 times as long": LONG}),
        ),
        Question(
            "encoder, Laplace head, total",
            _snapshots_and_passes({"tiny (default)": "multi_epochs_laplace", "resnet10": RESNET}),
        ),
        Question(
            "encoder, Laplace head, 3 times as long, total",
            _snapshots_and_passes({"tiny (default)": LONG, "resnet10": f"{RESNET}_long"}),
        ),
    ]


def _about_the_parts() -> list[Question]:
    questions = []
    for name, variant, first in PARTS_OF:
        questions.append(Question(f"part of sigma, {name}", _parts(variant, first)))
    return questions


LONG = "multi_epochs_laplace_long"
RESNET = "multi_epochs_laplace_resnet10"


def _snapshots_and_passes(variants: dict[str, str]) -> dict[str, Recipe]:
    """Return snapshots and dropout passes of each training."""
    snapshots = {f"{name}, snapshots": Recipe(variant) for name, variant in variants.items()}
    passes = {f"{name}, dropout": dropout(variant) for name, variant in variants.items()}
    return snapshots | passes


def _weights(first: int) -> dict[str, Recipe]:
    passes = 8 if first else 0
    return {
        f"{weight:g}": Recipe("multi_epochs_laplace", first, passes=passes, weight=weight)
        for weight in (0.0, 1.0, 2.0, 4.0, 8.0)
    }


PARTS_OF = (
    ("snapshots, Laplace head", "multi_epochs_laplace", 0),
    ("snapshots, Gaussian head", "multi_epochs_gaussian", 0),
    ("dropout passes, Laplace head", "multi_epochs_laplace", -1),
    ("Multi Inits, Laplace head", "multi_inits_laplace", 0),
)


def _parts(variant: str, first: int) -> dict[str, Recipe]:
    return {
        part: Recipe(variant, first, passes=8 if first else 0, part=part)
        for part in ("epistemic", "aleatoric", "total")
    }


def _about_members(members: int) -> list[Question]:
    """Compare ensembles with as many snapshots; Multi Networks has one member per encoder."""
    none = {
        "Multi Epochs": Recipe("multi_epochs", -members),
        **{name: Recipe(variant) for name, variant in ENSEMBLES.items()},
    }
    laplace = {
        "Multi Epochs": Recipe("multi_epochs_laplace", -members),
        "Multi Inits": Recipe("multi_inits_laplace"),
    }
    return [
        Question(f"how {members} members differ, no head", none),
        Question(f"how {members} members differ, Laplace head, total", laplace),
    ]


ENSEMBLES = {
    "Multi Inits": "multi_inits",
    "Bagging": "bagging",
    "Multi Networks": "multi_networks",
}


def _about_calibration() -> Question:
    recipes = {
        "snapshots": Recipe("multi_epochs"),
        "dropout": dropout(),
        "snapshots + Laplace head": Recipe("multi_epochs_laplace"),
    }
    return Question("calibration", recipes, calibrated=True)
