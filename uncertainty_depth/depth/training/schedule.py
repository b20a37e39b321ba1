# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Choose the epochs whose weights are saved, the learning rate, and when to stop.

All are pure functions of the options and the validation errors so far.

By default the learning rate is never changed. Once the validation error has stopped improving, a
constant rate keeps the weights moving among about equally good solutions; from then on
multi_epochs takes one snapshot per epoch. A single network gains from a falling rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from uncertainty_depth.core.config.training import TrainingConfig


def validation_errors(history: Sequence[Mapping[str, float]]) -> list[float]:
    """Return each epoch's rmse_log: abs_rel would fall if all depths shrank."""
    return [row["rmse_log"] for row in history]


def plateau(errors: Sequence[float], patience: int) -> int | None:
    """Return the epoch at which `patience` epochs in a row were no better; None if none."""
    best = np.inf
    stale = 0
    for epoch, error in enumerate(errors, 1):
        stale = 0 if error < best else stale + 1
        best = min(best, error)
        if stale == patience:
            return epoch
    return None


def first_snapshot(errors: Sequence[float], training: TrainingConfig) -> int:
    """Return the first snapshot's index: after the plateau, or early enough that all are taken."""
    latest = max(training.epochs - training.snapshots, 0)
    reached = plateau(errors, training.patience)
    return latest if reached is None else min(reached, latest)


def keeps(errors: Sequence[float], training: TrainingConfig) -> bool:
    """Return whether the last epoch's weights are saved: a snapshot, or the best so far."""
    if training.method == "multi_epochs":
        return len(errors) > first_snapshot(errors[:-1], training)
    return errors[-1] < min(errors[:-1], default=np.inf)


def is_finished(errors: Sequence[float], training: TrainingConfig) -> bool:
    """Return whether the training is finished."""
    if len(errors) >= training.epochs:
        return True
    if training.method == "multi_epochs":
        return len(errors) >= first_snapshot(errors, training) + training.snapshots
    return plateau(errors, training.patience) is not None


def saved_epochs(errors: Sequence[float], training: TrainingConfig) -> list[int]:
    """Return the epochs, from 0, whose weights are in the model: the best one, or snapshots."""
    epochs = [epoch for epoch in range(len(errors)) if keeps(errors[: epoch + 1], training)]
    return epochs if training.method == "multi_epochs" else epochs[-1:]


def member_name(epoch: int, training: TrainingConfig, name: str) -> str:
    """Return the file name stem of an epoch's weights, counted from 0."""
    return f"epoch_{epoch + 1:04d}" if training.method == "multi_epochs" else name


def fraction_of_rate(epoch: int, training: TrainingConfig) -> float:
    """Return an epoch's learning rate as a fraction of the first's: half a cosine."""
    progress = epoch / max(training.epochs - 1, 1)
    final = training.final_learning_rate
    return final + (1 - final) * (1 + math.cos(math.pi * progress)) / 2
