# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""`mc_dropout` (Gal and Ghahramani 2016): passes with the dropout that a network was trained with.

Everything before its first dropout is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.core.records import SampleRange
from uncertainty_depth.depth.estimators.estimator import Estimate, Estimator, Moments, Samples
from uncertainty_depth.depth.estimators.noise import Draw, Noise, StratifiedNoise
from uncertainty_depth.depth.networks.depth_network import DepthNetwork
from uncertainty_depth.depth.networks.encoder import upload


class McDropout(Estimator):
    """Passes with the network's own dropout on.

    `dropouts` are functions that replace the network's dropout layers, for maps and noise. A
    network without dropout is a `ModelError`.
    """

    def __init__(self, network: DepthNetwork) -> None:
        if network.config.dropout == 0.0:
            raise ModelError(
                "the method needs a network with dropout, but this network's dropout rate is 0; "
                "expected another method"
            )
        super().__init__(network)
        self.dropouts: Sequence[Any] = [seeded(layer) for layer in network.decoder.dropouts]
        self._noise: dict[Any, Noise] = {}

    def passes(self, config: PredictorConfig) -> int:
        """See `Estimator`."""
        return config.samples

    def make_noise(self, shapes: Sequence[tuple[int, ...]], samples: int) -> Noise:
        """Return the noise of M samples of maps with these (C, h, w)."""
        draws = [
            Draw(shape, dropout.rate) for shape, dropout in zip(shapes, self.dropouts, strict=True)
        ]
        return StratifiedNoise(draws, samples, self.device)

    def compute(
        self,
        image: Tensor,
        stamp_ns: int,
        config: PredictorConfig,
        samples: SampleRange | None,
    ) -> Estimate:
        """See `Estimator`; noise does not depend on `at_once`, see `StratifiedNoise`."""
        size = image.shape[-2:]
        moments = Moments(in_order=not self.few_launches)
        numbers = range(config.samples) if samples is None else samples.numbers(config.samples)
        features, trunk = self.run(self.networks[0].trunk, image)
        noise = self._noise_of(trunk, size, config.samples)
        drawn = noise.draw(config.seed, stamp_ns)  # while a GPU encodes
        for start in range(0, len(numbers), self.at_once):
            some: Any = numbers[start : start + self.at_once]
            if self.few_launches:
                some = upload(torch.tensor(some, dtype=torch.int32), image.device)
            moments.add(*self.run(self._samples, trunk, noise, drawn, some, size))
        return moments.estimate(features)

    def _noise_of(self, trunk: Any, size: Sequence[int], samples: int) -> Noise:
        """Return the noise at this size, found by one pass, once."""
        key = (tuple(size), samples)
        if key not in self._noise:
            shapes = self.networks[0].noise_shapes(trunk)
            self._noise[key] = self.make_noise(shapes, samples)
        return self._noise[key]

    def _samples(
        self, trunk: Any, noise: Noise, drawn: Any, numbers: Any, size: Sequence[int]
    ) -> Samples:
        drops = noise.of(drawn, numbers)
        return self.samples_of(self.networks[0].branches(trunk, self.dropouts, drops, size))


@dataclass(frozen=True)
class SeededDropout:
    """Dropout at a fixed rate, whose units the noise chooses."""

    rate: float

    def __call__(self, x: Tensor, noise: Tensor) -> Tensor:
        """Return (M, C, h, w): (1 or M, C, h, w) maps without the units that are 0 in the noise.

        Noise is (M, h, w, C), 1 for kept units.
        """
        return (x * (1.0 / (1.0 - self.rate))) * noise.permute(0, 3, 1, 2)


def seeded(layer: nn.Module) -> SeededDropout:
    """Return the function of (x, noise) that replaces a dropout layer, at its rate."""
    return SeededDropout(cast(nn.Dropout, layer).p)
