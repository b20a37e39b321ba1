# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Stochastic passes: dropout left on, or noise in any network's feature map.

`mc_dropout` (Gal and Ghahramani 2016): the dropout that the network was trained with.

For networks trained without noise: Mi et al., AAAI 2022, "Training-free uncertainty estimation for
dense regression: sensitivity as a surrogate". They perturb an intermediate feature map; how far
the output moves ranks its errors. Their infer-dropout is `inference_dropout`, their infer-noise is
`feature_noise`.

The perturbed map is the input of the network's first dropout, inside the decoder. Everything
before it is computed once for all samples. The network's own dropouts are off.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.errors import ModelError
from uncertainty_depth.model_folder.folder import ModelFolder
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.records import SampleRange
from uncertainty_depth.uncertainty.estimator import (
    Estimate,
    Estimator,
    Moments,
    Place,
    components_of,
)
from uncertainty_depth.uncertainty.noise import Streams, frame_streams


class StochasticPasses(Estimator):
    """M stochastic passes; everything before the first dropout is computed once."""

    def __init__(self, network: DepthNetwork) -> None:
        self.networks = [network]

    @abstractmethod
    def dropouts(self, config: PredictorConfig) -> Sequence[Callable[..., Tensor]]:
        """Return the functions (of maps and streams) that replace the network's dropout layers."""

    @classmethod
    def load(cls, model: ModelFolder, place: Place) -> StochasticPasses:
        """Load the model's last member."""
        return cls(place(model.load(model.members[-1])))

    def passes(self, config: PredictorConfig) -> int:
        """See `Estimator`."""
        return config.samples

    def components(self, config: PredictorConfig) -> tuple[str, ...]:
        """See `Estimator`."""
        return components_of(self.networks, config.samples)

    @torch.inference_mode()
    def estimate_batch(
        self,
        images: Tensor,
        stamps_ns: Sequence[int],
        config: PredictorConfig,
        samples: SampleRange | None = None,
    ) -> list[Estimate]:
        """See `Estimator`; noise does not depend on the chunk, see `frame_streams`."""
        network = self.networks[0]
        dropouts = self.dropouts(config)
        trunk = network.trunk(images)
        all_numbers = range(config.samples)
        numbers = all_numbers if samples is None else samples.numbers(config.samples)
        estimates = []
        for index, stamp_ns in enumerate(stamps_ns):
            moments = Moments()
            of_frame = frame_of(trunk, index)
            for start in range(0, len(numbers), config.chunk):
                chunk = numbers[start : start + config.chunk]
                streams = frame_streams(config, stamp_ns, chunk, images.device)
                output = network.branches(of_frame, dropouts, streams, images.shape[-2:])
                moments.add(output.depth_m, network.variance(output))
            estimates.append(moments.estimate())
        return estimates


class McDropout(StochasticPasses):
    """Passes with the network's own dropout on.

    Raises:
        ModelError: the network has no dropout.
    """

    def __init__(self, network: DepthNetwork) -> None:
        if network.config.dropout == 0.0:
            raise ModelError(
                "mc_dropout needs a network with dropout, but this network's dropout rate is 0; "
                "expected another method"
            )
        super().__init__(network)
        self._dropouts = [seeded(layer) for layer in network.decoder.dropouts]

    def dropouts(self, config: PredictorConfig) -> Sequence[Callable[..., Tensor]]:
        """See `StochasticPasses`."""
        return self._dropouts


@dataclass(frozen=True)
class SeededDropout:
    """Dropout at a fixed rate; the streams choose the units."""

    rate: float

    def noise(self, streams: Streams, shape: Sequence[int]) -> Tensor:
        """Return (M, h, w, C) for (C, h, w) maps: 1 for kept units, else 0."""
        return streams.keep_masks(shape, self.rate)

    def __call__(self, x: Tensor, streams: Streams) -> Tensor:
        """Return (M, C, h, w): (1 or M, C, h, w) maps with dropped units, a sample per stream."""
        keep = streams.keep_masks(x.shape[1:], self.rate)
        return (x * (1.0 / (1.0 - self.rate))) * keep.permute(0, 3, 1, 2).to(x.dtype)


def seeded(layer: nn.Module) -> SeededDropout:
    """Return the function of (x, streams) that replaces a dropout layer, at its rate."""
    return SeededDropout(cast(nn.Dropout, layer).p)


def frame_of(trunk: Any, index: int) -> Any:
    """Return one frame of a network's batch output: maps, or tuples and lists of maps.

    Values that are not arrays, such as a grid's size, apply to every frame.
    """
    if isinstance(trunk, (Tensor, np.ndarray)):
        return trunk[index : index + 1]
    if not isinstance(trunk, (tuple, list)):
        return trunk
    parts = [frame_of(part, index) for part in trunk]
    return type(trunk)(*parts) if hasattr(trunk, "_fields") else type(trunk)(parts)


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
    """Return one function per network dropout: the first perturbs, the others do nothing."""
    others = len(network.decoder.dropouts) - 1
    return [perturbation, *[_unchanged] * others]


def _unchanged(x: Tensor, streams: Streams) -> Tensor:
    return x
