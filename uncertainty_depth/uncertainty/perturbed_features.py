# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Noise in a feature map, of a network that was trained without it.

Mi et al., AAAI 2022, "Training-free uncertainty estimation for dense regression: sensitivity as a
surrogate": how far the output moves when an intermediate feature map is perturbed ranks the errors
of the output. Their infer-dropout is `inference_dropout`, their infer-noise `feature_noise`.

The map is the one that the first dropout of the network would act on, inside the decoder: what
comes before it is computed once for all samples. The dropouts of the network are off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.uncertainty.mc_dropout import SeededDropout, StochasticPasses
from uncertainty_depth.uncertainty.noise import Streams

Perturbation = Callable[..., Tensor]


@dataclass(frozen=True)
class SeededNoise:
    """Gaussian noise added to maps, relative to their own spread: networks differ in units."""

    ratio: float

    def __call__(self, x: Tensor, streams: Streams) -> Tensor:
        """Return (M, C, h, w): (1, C, h, w) maps plus one sample of noise for each stream.

        Its standard deviation is `ratio` times that of each channel over the pixels.
        """
        deviation = x.float().std((2, 3), correction=0, keepdim=True)
        noise = streams.normal_noise(x.shape[1:]).permute(0, 3, 1, 2)
        return x + (self.ratio * deviation * noise).to(x.dtype)


class InferenceDropout(StochasticPasses):
    """Passes in which units of the feature map are dropped at `inference_dropout_rate`."""

    def dropouts(self, config: PredictorConfig) -> Sequence[Perturbation]:
        """See `StochasticPasses`."""
        return first_alone(self.networks[0], SeededDropout(config.inference_dropout_rate))


class FeatureNoise(StochasticPasses):
    """Passes with Gaussian noise in the feature map, by `feature_noise_ratio`."""

    def dropouts(self, config: PredictorConfig) -> Sequence[Perturbation]:
        """See `StochasticPasses`."""
        return first_alone(self.networks[0], SeededNoise(config.feature_noise_ratio))


def first_alone(network: DepthNetwork, perturbation: Perturbation) -> list[Perturbation]:
    """Return a function per dropout of the network: the perturbation, and none at the others."""
    others = len(network.decoder.dropouts) - 1
    return [perturbation, *[_unchanged] * others]


def _unchanged(x: Tensor, streams: Streams) -> Tensor:
    return x
