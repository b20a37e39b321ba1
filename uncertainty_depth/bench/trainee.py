# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What the benchmarks of training share: a network on frames of noise, and a compared pair."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from uncertainty_depth.bench.rounds import Seconds, Spread
from uncertainty_depth.config import NetworkConfig, TrainingConfig
from uncertainty_depth.network.hourglass import Hourglass
from uncertainty_depth.training import losses
from uncertainty_depth.training.epoch import train_epoch
from uncertainty_depth.training.frames import TrainingFrames
from uncertainty_depth.training.objective import Objective

CHANNELS_LAST: Any = {"memory_format": torch.channels_last}  # not in torch's stubs
TRAINING = TrainingConfig(device="cpu")


class Row(NamedTuple):
    """Two ways to train the same networks: wall seconds of each, and their ratio."""

    first: str
    second: str
    first_s: Spread
    second_s: Spread
    ratio: Spread

    @classmethod
    def of(cls, seconds: Seconds, first: str, second: str) -> Row:
        """Return the comparison of two of the calls that were timed."""
        ratio = Spread.of(seconds[second] / seconds[first])
        return cls(first, second, Spread.of(seconds[first]), Spread.of(seconds[second]), ratio)


class Trainee:
    """A network, and frames of noise to train it on."""

    def __init__(self, network: NetworkConfig, frames: int) -> None:
        random = np.random.default_rng(0)
        width, height = network.input_size
        images = random.integers(0, 256, (frames, height, width, 3), np.uint8)
        self.frames = TrainingFrames(
            list(images), list(random.uniform(1, 10, images.shape[:3]).astype(np.float16))
        )
        self.network = Hourglass(network).train().to(**CHANNELS_LAST)
        self.optimizer = make_optimizer(self.network.parameters())
        self.objective = Objective(losses.choose(network, TRAINING))

    def epoch(self) -> float:
        """Show every frame once, as `train` does."""
        indices = range(len(self.frames))
        silent = tqdm(disable=True)
        return train_epoch(
            self.network, self.optimizer, self.objective, self.frames, indices, TRAINING, 0, silent
        )


def make_optimizer(weights: Iterable[Tensor]) -> torch.optim.Optimizer:
    """Return the optimizer that `train` uses by default."""
    return torch.optim.AdamW(weights, TRAINING.learning_rate, weight_decay=TRAINING.weight_decay)
