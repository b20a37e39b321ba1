# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""State shared by all networks of a model in training, and its files."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from uncertainty_depth.model_folder import writing
from uncertainty_depth.training import checkpoint, record
from uncertainty_depth.training.checkpoint import History
from uncertainty_depth.training.frames import FILES, TrainingFrames
from uncertainty_depth.training.member import Member
from uncertainty_depth.training.plan import served

HALF_WRITTEN = (
    ".*.partial",
    *(f".*.{ending}.[0-9]*" for ending in ("json", "safetensors", "csv", "png")),
)
"""The names that files have while they are written; other hidden files are the user's."""


@dataclass(frozen=True)
class ModelRun:
    """State shared by all ensemble members.

    The progress of each is in its checkpoint; members may be trained in processes of their own.

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
        """Return a file's stem, with the member's name if the model has several members."""
        return stem if len(self.plan) == 1 else f"{stem}_{self.plan[number].name}"

    def checkpoint(self, number: int) -> Path:
        """Return the path of a member's checkpoint."""
        return self.folder / f"{self.named(checkpoint.NAME, number)}.safetensors"

    def log(self, number: int) -> Path:
        """Return the path of the log of a member's own process."""
        return self.folder / f"{self.plan[number].name}.log"

    def unfinished(self) -> list[int]:
        """Return the numbers of the members that are not trained yet."""
        return [
            number
            for number in range(len(self.plan))
            if not checkpoint.read(self.checkpoint(number)).trained
        ]

    def histories(self) -> list[History]:
        """Return the histories of all members from their checkpoints."""
        return [
            checkpoint.read(self.checkpoint(number)).history for number in range(len(self.plan))
        ]

    def describe(self, histories: Sequence[History], finished: bool = False) -> None:
        """Update `model.json`; the model can be used once it has the first weights."""
        content = self.record | record.results(self.plan, histories, finished)
        writing.set_members(
            self.folder, served(self.plan, histories), self.plan[0].training.method, content
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock `model.json` against other processes; the kernel unlocks it if this one dies."""
        with (self.folder / ".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def finish(self) -> None:
        """Complete `model.json` and remove all temporary files."""
        self.describe(self.histories(), finished=True)
        clean(self.folder, self.plan)


def clean(folder: Path, plan: Sequence[Member]) -> None:
    """Remove checkpoints, logs, the lock, shared frames and partly written files."""
    names = [
        f"{checkpoint.NAME}*.safetensors",
        *(f"{member.name}.log" for member in plan),
        ".lock",
        *FILES,
        *HALF_WRITTEN,
    ]
    for name in names:
        for path in list(folder.glob(name)):
            path.unlink(missing_ok=True)
