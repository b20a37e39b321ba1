# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The training of all networks of a model: what they have in common, and what is done of them."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from uncertainty_depth.model_folder import folder as model_folder
from uncertainty_depth.training import checkpoint, record
from uncertainty_depth.training.checkpoint import History
from uncertainty_depth.training.frames import FILES, TrainingFrames
from uncertainty_depth.training.plan import Member, served

HALF_WRITTEN = (
    ".*.partial",
    *(f".*.{kind}.[0-9]*" for kind in ("json", "safetensors", "csv", "png")),
)
"""The names that files have while they are written; other hidden files are the user's."""


@dataclass(frozen=True)
class ModelRun:
    """What all members have in common. What is done of each is in its checkpoint; members may be trained in processes of their own.

    Attributes:
        folder: the model folder.
        plan: the members in the order they are trained in.
        frames: training and validation frames.
        indices: the training frames.
        held_out: the validation frames, the same for all members.
        device: where to train.
        record: what `model.json` says about the training, results aside.
    """

    folder: Path
    plan: Sequence[Member]
    frames: TrainingFrames
    indices: Sequence[int]
    held_out: Sequence[int]
    device: torch.device
    record: dict[str, Any]

    def named(self, stem: str, number: int) -> str:
        """What a file of the member `number`, from 0, is called without its ending: a single one needs no name."""
        return stem if len(self.plan) == 1 else f"{stem}_{self.plan[number].name}"

    def checkpoint(self, number: int) -> Path:
        """The checkpoint of a member."""
        return self.folder / f"{self.named(checkpoint.NAME, number)}.safetensors"

    def log(self, number: int) -> Path:
        """What a member's own process prints, where it has one."""
        return self.folder / f"{self.plan[number].name}.log"

    def unfinished(self) -> list[int]:
        """Numbers of the members that are not trained yet."""
        return [
            number
            for number in range(len(self.plan))
            if not checkpoint.read(self.checkpoint(number)).trained
        ]

    def histories(self) -> list[History]:
        """Of all members, as their checkpoints have them."""
        return [
            checkpoint.read(self.checkpoint(number)).history for number in range(len(self.plan))
        ]

    def describe(self, histories: Sequence[History], finished: bool = False) -> None:
        """Bring `model.json` up to date: with the first weights kept the model is of use."""
        content = self.record | record.results(self.plan, histories, finished)
        model_folder.set_members(
            self.folder, served(self.plan, histories), self.plan[0].training.method, content
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time changes `model.json`; the kernel gives the lock back however a process ends."""
        with (self.folder / ".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def finish(self) -> None:
        """Complete `model.json`, and leave nothing but the model."""
        self.describe(self.histories(), finished=True)
        clean(self.folder, self.plan)


def clean(folder: Path, plan: Sequence[Member]) -> None:
    """Remove what only an unfinished training needs: checkpoints, logs, the lock, shared frames, and what a kill left half written."""
    names = [
        f"{checkpoint.NAME}*.safetensors",
        *(f"{member.name}.log" for member in plan),
        ".lock",
        *FILES,
        *HALF_WRITTEN,
    ]
    for left in [path for name in names for path in folder.glob(name)]:
        left.unlink(missing_ok=True)
