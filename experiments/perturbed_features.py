# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Uncertainty of networks that were trained without noise, by perturbing a feature map.

Mi et al., AAAI 2022, "Training-free uncertainty estimation for dense regression: sensitivity as a
surrogate": how far the output moves ranks its errors. Their infer-dropout is `inference_dropout`,
their infer-noise is `feature_noise`. The perturbed map is the input of the network's first
dropout, inside the decoder; the network's own dropouts are off.

The package relates the samples of a frame; `Independent...` draw each for itself, as published.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from uncertainty_depth.depth.estimators.estimator import Estimator
from uncertainty_depth.depth.estimators.mc_dropout import (
    FRAME,
    UNIFORM_LEVELS,
    Draw,
    McDropout,
    Noise,
    SeededDropout,
    StratifiedNoise,
    Stream,
    draw_strata,
    look_up,
    random_stream,
    strata_table,
)
from uncertainty_depth.depth.networks.depth_network import DepthNetwork
from uncertainty_depth.depth.networks.encoder import upload

DROPOUT_RATE = 0.2
NOISE_RATIO = 0.5
Shapes = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class SeededNoise:
    """Gaussian noise added to maps, relative to their own spread, as networks' units differ."""

    ratio: float

    def __call__(self, x: Tensor, noise: Tensor) -> Tensor:
        """Return (M, C, h, w): (1, C, h, w) maps plus (M, h, w, C) samples of N(0, 1).

        The noise's standard deviation is `ratio` times each channel's, over the pixels.
        """
        deviation = x.float().std((2, 3), correction=0, keepdim=True)
        return x + (self.ratio * deviation * noise.permute(0, 3, 1, 2)).to(x.dtype)


class NormalNoise:
    """Samples of N(0, 1) for (C, h, w) maps, one a stratum; see `StratifiedNoise`."""

    def __init__(
        self, shape: tuple[int, ...], samples: int, device: torch.device | str = "cpu"
    ) -> None:
        self._shape = shape
        self._samples = samples
        self._device = device

    def draw(self, seed: int, stamp_ns: int) -> tuple[Tensor, Tensor]:
        """See `Noise`."""
        stream = random_stream(seed, stamp_ns, FRAME)
        places, within = draw_strata(stream, self._samples, math.prod(self._shape))
        return torch.from_numpy(places), torch.from_numpy(within.astype(np.int32))

    def of(self, drawn: tuple[Tensor, Tensor], numbers: Sequence[int]) -> list[Tensor]:
        """See `Noise`: (m, h, w, C) float32."""
        places, within = drawn
        strata = look_up(strata_table(self._samples), places, numbers, self._shape)
        offsets = within.view(*self._shape[1:], self._shape[0])
        level = (strata.int() * UNIFORM_LEVELS + offsets) // self._samples
        return [upload(torch.take(_normal_quantiles(), level.long()), self._device)]


@lru_cache(maxsize=1)
def _normal_quantiles() -> Tensor:
    """Return the N(0, 1) quantile at the middle of each of the `UNIFORM_LEVELS`."""
    middle = (torch.arange(UNIFORM_LEVELS, dtype=torch.float64) + 0.5) / UNIFORM_LEVELS
    return torch.special.ndtri(middle).float()


def keep_mask(stream: Stream, shape: Sequence[int], rate: float) -> Tensor:
    """Return uint8, 1 for kept units, and 0 with probability `rate` to within 2^-17.

    16 random bits are compared with a threshold.
    """
    count = math.prod(shape)
    words = np.asarray(stream.random_raw(-(-count // 4))).view(np.uint16)[:count]
    mask = words >= round(rate * UNIFORM_LEVELS)
    return torch.from_numpy(mask.view(np.uint8)).view(*shape)


def normal_noise(stream: Stream, shape: Sequence[int]) -> Tensor:
    """Return float32 samples of N(0, 1)."""
    generator = np.random.Generator(stream)
    return torch.from_numpy(generator.standard_normal(tuple(shape), dtype=np.float32))


@dataclass(frozen=True)
class IndependentNoise:
    """Noise drawn for each sample from its own stream; sample m is the same for every M.

    Attributes:
        draws: draw a dropout's noise, (h, w, C).
        device: of the noise.
    """

    draws: Sequence[Callable[[Stream], Tensor]]
    device: torch.device | str = "cpu"

    def draw(self, seed: int, stamp_ns: int) -> tuple[int, int]:
        """See `Noise`."""
        return seed, stamp_ns

    def of(self, drawn: tuple[int, int], numbers: Sequence[int]) -> list[Tensor]:
        """See `Noise`."""
        streams = [random_stream(*drawn, number) for number in numbers]
        return [
            upload(torch.stack([draw(stream) for stream in streams]), self.device)
            for draw in self.draws
        ]


class PerturbedFeatures(McDropout):
    """Passes in which one feature map is perturbed, by one function; the dropouts are off.

    Attributes:
        perturbation: function of maps and noise.
    """

    few_launches = False
    perturbation: Any

    def __init__(self, network: DepthNetwork) -> None:
        Estimator.__init__(self, network)  # without a check that there is dropout
        others = len(network.decoder.dropouts) - 1
        self.dropouts = [self.perturbation, *[_unchanged] * others]
        self._noise = {}

    def make_noise(self, shapes: Shapes, samples: int) -> Noise:
        """See `McDropout`."""
        return _FirstAlone(self.noise_of_first(shapes[0], samples), len(shapes))

    def noise_of_first(self, shape: tuple[int, ...], samples: int) -> Noise:
        """Return the noise of the perturbed map, (C, h, w)."""
        raise NotImplementedError


@dataclass(frozen=True)
class _FirstAlone:
    """Noise for the first of some dropouts."""

    noise: Noise
    dropouts: int

    def draw(self, seed: int, stamp_ns: int) -> Any:
        return self.noise.draw(seed, stamp_ns)

    def of(self, drawn: Any, numbers: Sequence[int]) -> list[Any]:
        return [*self.noise.of(drawn, numbers), *[None] * (self.dropouts - 1)]


class InferenceDropout(PerturbedFeatures):
    """Passes in which units of the feature map are dropped at `DROPOUT_RATE`."""

    perturbation = SeededDropout(DROPOUT_RATE)

    def noise_of_first(self, shape: tuple[int, ...], samples: int) -> Noise:
        """See `PerturbedFeatures`."""
        return StratifiedNoise([Draw(shape, DROPOUT_RATE)], samples, self.device)


class FeatureNoise(PerturbedFeatures):
    """Passes with Gaussian noise in the feature map, by `NOISE_RATIO`."""

    perturbation = SeededNoise(NOISE_RATIO)

    def noise_of_first(self, shape: tuple[int, ...], samples: int) -> Noise:
        """See `PerturbedFeatures`."""
        return NormalNoise(shape, samples, self.device)


class IndependentMcDropout(McDropout):
    """`mc_dropout` as published."""

    few_launches = False

    def make_noise(self, shapes: Shapes, samples: int) -> Noise:
        """See `McDropout`."""
        draws = [
            partial(keep_mask, shape=channels_last(shape), rate=dropout.rate)
            for shape, dropout in zip(shapes, self.dropouts, strict=True)
        ]
        return IndependentNoise(draws, self.device)


class IndependentInferenceDropout(InferenceDropout):
    """`inference_dropout` as published."""

    def noise_of_first(self, shape: tuple[int, ...], samples: int) -> Noise:
        """See `PerturbedFeatures`."""
        draw = partial(keep_mask, shape=channels_last(shape), rate=DROPOUT_RATE)
        return IndependentNoise([draw], self.device)


class IndependentFeatureNoise(FeatureNoise):
    """`feature_noise` as published."""

    def noise_of_first(self, shape: tuple[int, ...], samples: int) -> Noise:
        """See `PerturbedFeatures`."""
        return IndependentNoise([partial(normal_noise, shape=channels_last(shape))], self.device)


def channels_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return (h, w, C) from (C, h, w)."""
    return (*shape[1:], shape[0])


def _unchanged(x: Tensor, noise: Any) -> Tensor:
    return x
