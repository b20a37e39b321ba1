# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Which epochs' weights are kept, and when to stop: pure functions of the validation errors so far.

The learning rate is never changed. Once the validation error has stopped improving, a constant
rate keeps the weights moving among solutions that are about as good; multi_epochs takes one
snapshot of each epoch from there on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from uncertainty_depth.config import TrainingConfig


def validation_errors(history: Sequence[Mapping[str, float]]) -> list[float]:
    """The validation error of each epoch: rmse_log, for which too far and too near weigh alike. abs_rel falls when all depth shrinks."""
    return [row["rmse_log"] for row in history]


def plateau(errors: Sequence[float], patience: int) -> int | None:
    """How many epochs it took until `patience` epochs in a row brought no better error; None when that has not happened."""
    best = np.inf
    stale = 0
    for epoch, error in enumerate(errors, 1):
        stale = 0 if error < best else stale + 1
        best = min(best, error)
        if stale == patience:
            return epoch
    return None


def first_snapshot(errors: Sequence[float], training: TrainingConfig) -> int:
    """Index of the first epoch that multi_epochs keeps: after the plateau is reached, or early enough that the last epochs give all snapshots."""
    latest = max(training.epochs - training.snapshots, 0)
    reached = plateau(errors, training.patience)
    return latest if reached is None else min(reached, latest)


def keeps(errors: Sequence[float], training: TrainingConfig) -> bool:
    """Whether the weights of the last epoch are kept: as a snapshot for multi_epochs, as the best so far for the other methods."""
    if training.method == "multi_epochs":
        return len(errors) > first_snapshot(errors[:-1], training)
    return errors[-1] < min(errors[:-1], default=np.inf)


def is_finished(errors: Sequence[float], training: TrainingConfig) -> bool:
    """Whether no further epoch is needed."""
    if len(errors) >= training.epochs:
        return True
    if training.method == "multi_epochs":
        return len(errors) >= first_snapshot(errors, training) + training.snapshots
    return plateau(errors, training.patience) is not None


def kept_epochs(errors: Sequence[float], training: TrainingConfig) -> list[int]:
    """The epochs, counted from 0, whose weights are in the model after all of `errors`; the best epoch alone overwrites its forerunners."""
    kept = [epoch for epoch in range(len(errors)) if keeps(errors[: epoch + 1], training)]
    return kept if training.method == "multi_epochs" else kept[-1:]


def member_name(epoch: int, training: TrainingConfig, name: str) -> str:
    """File name stem of the weights of an epoch, counted from 0, of the member `name`."""
    return f"epoch_{epoch + 1:04d}" if training.method == "multi_epochs" else name
