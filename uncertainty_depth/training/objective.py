# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Objective of a network: a loss and its targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from uncertainty_depth.inference.deployment import has_bfloat16
from uncertainty_depth.training.losses import Loss

Targets = Callable[[Tensor, Tensor], Tensor]
"""Function of images (B, 3, h, w) and ground truth (B, 1, h, w) that returns the targets.

These are (B, 1 or more, h, w), metres, NaN where unknown.
"""


def ground_truth(images: Tensor, depth_m: Tensor) -> Tensor:
    """Return the ground truth: the targets of a network that learns from measurements."""
    return depth_m


@dataclass(frozen=True)
class Objective:
    """Called with a network, images and ground truth: the mean loss, a scalar.

    Attributes:
        loss: of the network's maps against the targets.
        targets: makes the targets.
        examples: where not 0, the divergence of a learned dropout rate divided by this number of
            examples is added (Gal et al. 2017).
    """

    loss: Loss
    targets: Targets = ground_truth
    examples: int = 0

    def __call__(self, network: nn.Module, images: Tensor, depth_m: Tensor) -> Tensor:
        """Return the loss, a scalar, for images (B, 3, h, w) in [0, 1] and depth in metres."""
        value = self.misfit(network, images, self.targets(images, depth_m))
        if not self.examples:
            return value
        decoder: Any = network.decoder
        return value + decoder.divergence() / self.examples

    def misfit(self, network: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
        """Return the mean loss without the divergence of a learned rate."""
        with autocast(images.device):
            output = network(images)
        return self.loss(output.depth_m, output.scale_m, targets)


def autocast(device: torch.device) -> torch.autocast:
    """Return a context that computes the network in bfloat16 where that is faster.

    bfloat16 needs no loss scaling; losses are computed in float32.
    """
    return torch.autocast(device.type, torch.bfloat16, enabled=has_bfloat16(device))
