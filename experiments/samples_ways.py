# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Ways to a sigma: samples of dropout, and what needs fewer passes of the network a frame."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments.samples_frames import Scene
from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.network.encoder import resize_maps
from uncertainty_depth.uncertainty import Deterministic, Ensemble, Estimator, McDropout
from uncertainty_depth.uncertainty.estimator import Estimate
from uncertainty_depth.uncertainty.mc_dropout import seeded

Way = Callable[[Scene], Estimate]
COUNTS = {
    "independent": (1, 2, 4, 8, 16, 32, 64),
    "antithetic": (2, 4, 8, 16),
    "stratified": (2, 4, 8, 16, 32),
}
REFERENCE_SEED = 10_000
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
        sample: makes the sample of a frame.
        centre: makes the depth from which samples are measured, and which is the depth; None
            measures from the mean of the samples before.
    """

    def __init__(self, sample: Way, centre: Way | None = None) -> None:
        self._sample = sample
        self._centre = centre
        self._mean = torch.zeros(())
        self._variance = torch.zeros(())
        self._frames = 0

    @torch.inference_mode()
    def __call__(self, scene: Scene) -> Estimate:
        """Return the maps of the next frame of the drive."""
        sample = self._sample(scene)
        self._frames += 1
        weight = max(WEIGHT, 1 / self._frames)
        if self._centre is not None:
            depth_m = self._centre(scene).depth_m
            squares = (sample.depth_m - depth_m).square()
            self._variance = self._variance + weight * (squares - self._variance)
            return Estimate(depth_m, self._variance, sample.aleatoric)
        step = sample.depth_m - self._mean
        self._mean = self._mean + weight * step
        self._variance = (1 - weight) * (self._variance + weight * step.square())
        return Estimate(sample.depth_m, self._variance, sample.aleatoric)


class RoundRobin:
    """One member of an ensemble a frame, in turn."""

    def __init__(self, members: Sequence[DepthNetwork]) -> None:
        self._turns = cycle([one_pass(network) for network in members])

    def __call__(self, scene: Scene) -> Estimate:
        """Return the maps of the next frame by the next member."""
        return next(self._turns)(scene)


def one_pass(network: DepthNetwork) -> Way:
    """Return the way of one pass without noise."""
    return partial(_estimate, Deterministic(network), PredictorConfig())


def all_members(members: Sequence[DepthNetwork]) -> Way:
    """Return the way of one pass of each member."""
    return partial(_estimate, Ensemble(members), PredictorConfig(samples=len(members)))


def sampled(network: DepthNetwork, samples: int, seed: int, sampling: str) -> Way:
    """Return the way of `samples` passes of dropout."""
    config = PredictorConfig(samples=samples, seed=seed, sampling=sampling)
    return partial(_estimate, McDropout(network), config)


def many(network: DepthNetwork, samples: int) -> Way:
    """Return the reference: many samples of noise that no other way has."""
    return sampled(network, samples, REFERENCE_SEED, "independent")


def ways_of(network: DepthNetwork, seed: int) -> dict[str, Way]:
    """Return every way to a frame's sigma by its name; all use the same network."""
    propagated = Propagated(network)

    def propagated_way(scene: Scene) -> Estimate:
        return propagated.estimate(scene.pixels)

    ways: dict[str, Way] = {
        "one pass": one_pass(network),
        "propagated": propagated_way,
    }
    for sampling, counts in COUNTS.items():
        for count in counts:
            ways[f"{sampling} {count}"] = sampled(network, count, seed, sampling)
    return ways


def _estimate(estimator: Estimator, config: PredictorConfig, scene: Scene) -> Estimate:
    return estimator.estimate(scene.pixels, scene.frame.stamp_ns, config)
