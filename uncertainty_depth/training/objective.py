# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a network is trained for: a loss, what it is shown instead of the ground truth, and with which changes to the images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from uncertainty_depth.training.adversarial import with_adversarial_examples
from uncertainty_depth.training.losses import Loss

Targets = Callable[[Tensor, Tensor], Tensor]
"""Images (B, 3, h, w) and their ground truth (B, 1, h, w) to what the network shall give, (B, 1 or more, h, w) metres, NaN where that is unknown."""


def ground_truth(images: Tensor, depth_m: Tensor) -> Tensor:
    """The targets of a network that learns depth from measurements."""
    return depth_m


@dataclass(frozen=True)
class Objective:
    """Called with a network, images and ground truth: the mean loss, a scalar.

    Attributes:
        loss: of the network's maps against the targets.
        targets: makes the targets.
        adversarial_step: where not 0, the mean of this loss and that on adversarial examples
            (Lakshminarayanan et al. 2017, algorithm 1).
        examples: where not 0, one of so many examples' share in the divergence of a learned
            dropout rate is added (Gal et al. 2017).
    """

    loss: Loss
    targets: Targets = ground_truth
    adversarial_step: float = 0.0
    examples: int = 0

    def __call__(self, network: nn.Module, images: Tensor, depth_m: Tensor) -> Tensor:
        """(B, 3, h, w) images in [0, 1] and (B, 1, h, w) metres to a scalar."""
        misfit = (
            with_adversarial_examples(self.misfit, self.adversarial_step)
            if self.adversarial_step
            else self.misfit
        )
        value = misfit(network, images, self.targets(images, depth_m))
        return value + network.decoder.divergence() / self.examples if self.examples else value

    def misfit(self, network: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
        """The mean loss on images as they are."""
        with autocast(images.device):
            output = network(images)
        return self.loss(output.depth_m, output.scale_m, targets)


def autocast(device: torch.device) -> torch.autocast:
    """bfloat16 for the network's passes where the hardware multiplies it; it needs no loss scaling. Losses are in float32 everywhere."""
    return torch.autocast(device.type, torch.bfloat16, enabled=has_bfloat16(device))


def has_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 is faster than float32 here: on a GPU, and on a CPU with AVX-512 BF16 (twice as fast in a measured training step)."""
    return device.type == "cuda" or getattr(torch.cpu, "_is_avx512_bf16_supported", bool)()
