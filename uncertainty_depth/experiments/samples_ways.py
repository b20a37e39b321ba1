# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Ways to a dropout network's sigma without many samples: propagated variance, and memory."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.network.encoder import resize_maps
from uncertainty_depth.uncertainty import McDropout
from uncertainty_depth.uncertainty.mc_dropout import seeded
from uncertainty_depth.uncertainty.moments import Estimate

WEIGHT = 1 / 8
"""Of the newest frame in a memory: as noisy as the mean of 15 frames."""


class Propagated:
    """Variance of the masks taken through the decoder's layers, without samples.

    Postels et al., ICCV 2019, "Sampling-free epistemic uncertainty estimation using approximated
    variance propagation", with diagonal covariances: weights act by their squares, activations by
    their slopes at the mean. What units share of the same masks is left out.

    Args:
        network: an hourglass, prepared for inference.
    """

    def __init__(self, network: DepthNetwork) -> None:
        self._network = network
        self._decoder: Any = network.decoder

    @torch.inference_mode()
    def estimate(self, image: Tensor) -> Estimate:
        """Return the maps of (1, 3, h, w): two passes of the branches, one by squared weights."""
        size = image.shape[-2:]
        trunk = self._network.trunk(image)
        mean, variance = self._dropped(trunk.first, torch.zeros_like(trunk.first))
        for place, skip in enumerate((*trunk.skips, None)):
            mean, variance = _up_projected(self._decoder.ups[place + 1], mean, variance, skip)
            if skip is not None:
                mean, variance = self._dropped(mean, variance)
        raw = self._decoder.final(mean)
        raw_variance = _by_squares(self._decoder.final, variance)[:, :1]
        low, high = self._network.config.depth_range
        fraction = torch.sigmoid(raw[:, :1])
        depth_m = self._network.depth_of(raw[:, :1])
        slope = depth_m * math.log(high / low) * fraction * (1 - fraction)
        sigma_m = resize_maps(slope * raw_variance.sqrt(), size)[0, 0]
        output = self._network.to_metres(raw, size)
        head = self._network.variance(output)
        aleatoric = torch.zeros_like(sigma_m) if head is None else head[0, 0]
        return Estimate(output.depth_m[0, 0], sigma_m.square(), aleatoric)

    def _dropped(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """Return the moments of x m / (1 - p): Var = E[x^2] / (1 - p) - E[x]^2."""
        keep = 1 - seeded(self._decoder.dropouts[0]).rate  # type: ignore[union-attr]
        return mean, (variance + mean.square()) / keep - mean.square()


def _up_projected(
    up: Any, mean: Tensor, variance: Tensor, skip: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return mean and variance after an up-projection whose BatchNorm is folded."""
    branch, projection = up.unpool(mean).chunk(2, dim=1)
    branch_variance, projected = _by_squares(up.unpool, variance).chunk(2, dim=1)
    total = up.conv(functional.relu(branch)) + projection
    varied = _by_squares(up.conv, branch_variance * (branch > 0)) + projected
    if skip is not None:
        total = total + resize_maps(skip, total.shape[-2:])
    slope = getattr(up.activation, "negative_slope", 0.0)
    return up.activation(total), varied * torch.where(total > 0, 1.0, slope**2)


def _by_squares(layer: nn.Conv2d | nn.ConvTranspose2d, variance: Tensor) -> Tensor:
    """Return the variance of a convolution of independent inputs."""
    squares = layer.weight.square()
    options: dict[str, Any] = {"stride": layer.stride, "padding": layer.padding}
    if isinstance(layer, nn.ConvTranspose2d):
        options["output_padding"] = layer.output_padding
        return functional.conv_transpose2d(variance, squares, **options)
    return functional.conv2d(variance, squares, **options)


class Memory:
    """One sample a frame, its spread averaged over the frames of a drive with falling weights.

    Args:
        network: prepared for inference.
        seed: of the noise.
        is_centred: measure each sample from the frame's own pass without dropout, which is the
            depth, too; otherwise from the mean of the frames before.
    """

    def __init__(self, network: DepthNetwork, seed: int, is_centred: bool) -> None:
        self._network = network
        self._estimator = McDropout(network)
        self._config = PredictorConfig(samples=1, seed=seed, sampling="independent")
        self._is_centred = is_centred
        self._mean = torch.zeros(())
        self._variance = torch.zeros(())
        self._frames = 0

    @torch.inference_mode()
    def estimate(self, image: Tensor, stamp_ns: int) -> Estimate:
        """Return the maps of the next frame of the drive."""
        sample = self._estimator.estimate(image, stamp_ns, self._config)
        self._frames += 1
        weight = max(WEIGHT, 1 / self._frames)
        if self._is_centred:
            depth_m = self._network(image).depth_m[0, 0]
            squares = (sample.depth_m - depth_m).square()
            self._variance = self._variance + weight * (squares - self._variance)
            return Estimate(depth_m, self._variance, sample.aleatoric)
        step = sample.depth_m - self._mean
        self._mean = self._mean + weight * step
        self._variance = (1 - weight) * (self._variance + weight * step.square())
        return Estimate(sample.depth_m, self._variance, sample.aleatoric)
