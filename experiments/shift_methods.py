# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Methods of the experiment `shift`: all that the demo's model and networks of `nyu` can do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments import data_folders
from experiments.nyu_methods import PRETRAINED
from uncertainty_depth.core.model_location import SHIPPED_MODEL
from uncertainty_depth.depth.model_folder import writing
from uncertainty_depth.depth.model_folder.folder import FAMILIARITY, read_model

ROOMS = "rooms"
NYU = "NYU"
HOME_SEED = 40_000
VARIANTS = (PRETRAINED, "multi_epochs_laplace")
"""Trainings of `nyu` whose networks are looked for; the first that is there is taken."""
ENSEMBLE = "ensemble"
SNAPSHOTS = "snapshots"
DISTILLED = "distilled"
DROPOUT = "MC-dropout"
OF_ONE_NETWORK = {
    DROPOUT: "mc_dropout",
    "head alone": "deterministic",
    "test-time augmentation": "tta",
    "inference dropout": "inference_dropout",
    "feature noise": "feature_noise",
}
"""Name to the option `method`; the last three need no training."""


@dataclass(frozen=True)
class Method:
    """A model, the method it is run with, and the frames it is scored on.

    Attributes:
        domain: that the model was trained for, and whose frames are corrupted.
        name: of the method.
        folder: of the model.
        served: the option `method`.
        source: of frames like the training's.
        elsewhere: of frames unlike them; empty if there are none.
    """

    domain: str
    name: str
    folder: Path
    served: str
    source: str
    elsewhere: str = ""


def methods(models: Path, frames: int, seeds: int, data: Path | None) -> Iterator[Method]:
    """Yield the demo's model's methods, and those of networks that `nyu` left in `models`.

    Args:
        models: folder of the networks.
        frames: scored of each source.
        seeds: of the frames of the worlds.
        data: folder of the data sets; None takes the one that the environment names, if any.

    Raises:
        SourceError: there are networks of NYU, and the data are missing.
    """
    worlds = -(-frames // 2)
    rooms = f"synthetic:worlds={worlds},frames=2,rate=0.25,seed={HOME_SEED + seeds},dense=true"
    of_nyu = list(_of_nyu(models))
    is_there = data is not None or data_folders.NYU.existing(data) is not None
    nyu = f"nyu:{data_folders.NYU.find(data)}:test" if of_nyu or is_there else ""
    for name, served in OF_ONE_NETWORK.items():
        yield Method(ROOMS, name, SHIPPED_MODEL, served, rooms, nyu)
    for name, folder, served in of_nyu:
        yield Method(NYU, name, folder, served, nyu, rooms)


def _of_nyu(models: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield name, folder and method of the networks trained on NYU."""
    for variant in VARIANTS:
        folders = sorted(path.parent for path in models.glob(f"{variant}-[0-9]*/model.json"))
        if folders:
            break
    else:
        return
    if len(folders) > 1:
        joined = models / f"{variant}-ensemble-of-{len(folders)}"
        join(folders, joined)
        yield ENSEMBLE, joined, "multi_inits"
    yield SNAPSHOTS, folders[0], "multi_epochs"
    student = models / f"{variant}_distilled-0"
    if (student / "model.json").exists():
        yield DISTILLED, student, "distilled"
    for name, served in OF_ONE_NETWORK.items():
        if name != DROPOUT:
            yield name, folders[0], served
    for number, folder in enumerate(folders):  # what the ensemble joins
        yield of_network(DROPOUT, number), folder, OF_ONE_NETWORK[DROPOUT]


def of_network(name: str, number: int) -> str:
    """Return the name of a method of one network of several."""
    return f"{name} of network {number}"


def join(folders: Sequence[Path], output: Path) -> None:
    """Write an ensemble of the best network of each folder, the first folder's last.

    What is known of the training is the first folder's.
    """
    if output.exists():
        return
    first = read_model(folders[0])
    partial = output.with_name(f".{output.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    writing.create(partial, first.load(first.members[-1]), first.training)
    names = []
    for number, folder in reversed(list(enumerate(folders))):
        model = read_model(folder)
        names.append(f"seed_{number}")
        writing.write_member(partial, names[-1], model.load(model.members[-1]))
    if (first.path / FAMILIARITY).exists():
        shutil.copyfile(first.path / FAMILIARITY, partial / FAMILIARITY)
    writing.set_members(partial, names, "multi_inits")
    partial.rename(output)
