# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A network to train: its architecture, its data, and what it learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from uncertainty_depth.config import NetworkConfig, TrainingConfig
from uncertainty_depth.training.frames import TrainingFrames
from uncertainty_depth.training.objective import Objective, Targets
from uncertainty_depth.training.start import constant_guess

MakeTargets = Callable[[Path, torch.device], Targets]
"""Function of model folder and device that returns targets, once their teacher is trained."""


@dataclass(frozen=True)
class Member:
    """One network to train.

    Attributes:
        name: what its weights are called in the model folder, and its curves where there are
            several members.
        network: its architecture.
        training: how it is trained; `seed` is its own: initial weights, order, augmentation,
            dropout, bootstrap sample.
        encoder_seed: initial weights of the encoder; members that share a frozen one have the
            same.
        objective: what it is trained for.
        bootstrap: whether it is trained on a bootstrap sample of the frames instead of all.
        guess: returns the constant prediction that training starts from.
        targets: returns what it learns; None for the ground truth.
        helps: whether it only serves to train another member.
        start: model folder and member whose weights a fine-tuning starts from.
    """

    name: str
    network: NetworkConfig
    training: TrainingConfig
    encoder_seed: int
    objective: Objective
    bootstrap: bool = False
    guess: Callable[[TrainingFrames], tuple[float, float]] = constant_guess
    targets: MakeTargets | None = None
    helps: bool = False
    start: tuple[Path, str] | None = None

    def frames(self, indices: Sequence[int]) -> list[int]:
        """Return the member's training frames, sorted.

        These are all, or for bagging a bootstrap sample of the same size (Breiman 1996).
        """
        if not self.bootstrap:
            return list(indices)
        random = np.random.default_rng(self.training.seed)
        return sorted(random.choice(indices, len(indices)).tolist())

    def objective_in(self, folder: Path, device: torch.device, frames: int) -> Objective:
        """Return the objective for `frames` frames; earlier members must be in the folder.

        Pixels of a frame are not independent: for a learned dropout rate a frame counts as one
        example, its loss the mean over its pixels.
        """
        objective = self.objective
        if self.network.dropout_type != "bernoulli":
            objective = replace(objective, examples=frames)
        if self.targets is not None:
            objective = replace(objective, targets=self.targets(folder, device))
        return objective
