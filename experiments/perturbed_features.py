# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Uncertainty of networks that were trained without noise, by perturbing a feature map.

Mi et al., AAAI 2022, "Training-free uncertainty estimation for dense regression: sensitivity as a
surrogate": how far the output moves ranks its errors. Their infer-dropout is `inference_dropout`,
their infer-noise is `feature_noise`. The perturbed map is the input of the network's first
dropout, inside the decoder; the network's own dropouts are off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.uncertainty.mc_dropout import SeededDropout, StochasticPasses
from uncertainty_depth.uncertainty.noise import Streams

DROPOUT_RATE = 0.2
NOISE_RATIO = 0.5
Perturbation = Callable[..., Tensor]


@dataclass(frozen=True)
class SeededNoise:
    """Gaussian noise added to maps, relative to their own spread, as networks' units differ."""

    ratio: float

    def __call__(self, x: Tensor, streams: Streams) -> Tensor:
        """Return (M, C, h, w): (1, C, h, w) maps plus one sample of noise for each stream.

        The noise's standard deviation is `ratio` times each channel's, over the pixels.
        """
        deviation = x.float().std((2, 3), correction=0, keepdim=True)
        noise = streams.normal_noise(x.shape[1:]).permute(0, 3, 1, 2)
        return x + (self.ratio * deviation * noise).to(x.dtype)


class InferenceDropout(StochasticPasses):
    """Passes in which units of the feature map are dropped at `DROPOUT_RATE`."""

    def dropouts(self, config: PredictorConfig) -> Sequence[Perturbation]:
        """See `StochasticPasses`."""
        return first_alone(self.networks[0], SeededDropout(DROPOUT_RATE))


class FeatureNoise(StochasticPasses):
    """Passes with Gaussian noise in the feature map, by `NOISE_RATIO`."""

    def dropouts(self, config: PredictorConfig) -> Sequence[Perturbation]:
        """See `StochasticPasses`."""
        return first_alone(self.networks[0], SeededNoise(NOISE_RATIO))


def first_alone(network: DepthNetwork, perturbation: Perturbation) -> list[Perturbation]:
    """Return one function per network dropout: the first perturbs, the others do nothing."""
    others = len(network.decoder.dropouts) - 1
    return [perturbation, *[_unchanged] * others]


def _unchanged(x: Tensor, streams: Streams) -> Tensor:
    return x
