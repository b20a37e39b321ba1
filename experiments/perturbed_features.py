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
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from uncertainty_depth.core.config import PredictorConfig
from uncertainty_depth.depth.estimators.mc_dropout import (
    McDropout,
    SeededDropout,
    StochasticPasses,
)
from uncertainty_depth.depth.estimators.noise import (
    FRAME,
    UNIFORM_LEVELS,
    FrameNoise,
    StratifiedNoise,
    StratifiedStreams,
    Stream,
    random_stream,
    strata_table,
)
from uncertainty_depth.depth.networks.depth_network import DepthNetwork
from uncertainty_depth.depth.networks.encoder import upload

CPU = torch.device("cpu")
DROPOUT_RATE = 0.2
NOISE_RATIO = 0.5
Perturbation = Callable[..., Tensor]


@dataclass(frozen=True)
class SeededNoise:
    """Gaussian noise added to maps, relative to their own spread, as networks' units differ."""

    ratio: float

    def __call__(self, x: Tensor, streams: Any) -> Tensor:
        """Return (M, C, h, w): (1, C, h, w) maps plus one sample of noise for each stream.

        The noise's standard deviation is `ratio` times each channel's, over the pixels.
        """
        deviation = x.float().std((2, 3), correction=0, keepdim=True)
        noise = streams.normal_noise(x.shape[1:]).permute(0, 3, 1, 2)
        return x + (self.ratio * deviation * noise).to(x.dtype)


@dataclass(frozen=True)
class NoiseOnDevice(StratifiedNoise):
    """The package's noise, which is Gaussian too, copied to a device."""

    device: torch.device = field(kw_only=True)

    def of(self, numbers: Sequence[int]) -> StreamsOnDevice:
        """See `FrameNoise`."""
        return StreamsOnDevice(self, numbers)


@dataclass
class StreamsOnDevice(StratifiedStreams):
    """The package's streams, which draw Gaussian noise too."""

    noise: NoiseOnDevice

    def keep_masks(self, shape: Sequence[int], rate: float) -> Tensor:
        """See `Streams`."""
        return upload(super().keep_masks(shape, rate), self.noise.device)

    def normal_noise(self, shape: Sequence[int]) -> Tensor:
        """Return (m, h, w, C) float32 samples of N(0, 1) for (C, h, w) maps, one a stratum."""
        samples = self.noise.samples
        places, within = self.noise.draw(self._next, math.prod(shape))
        strata = self.look_up(strata_table(samples), places, shape)
        offsets = torch.from_numpy(within.astype(np.int32)).view(*shape[1:], shape[0])
        level = (strata.int() * UNIFORM_LEVELS + offsets) // samples
        return upload(torch.take(_normal_quantiles(), level.long()), self.noise.device)


@lru_cache(maxsize=1)
def _normal_quantiles() -> Tensor:
    """Return the N(0, 1) quantile at the middle of each of the `UNIFORM_LEVELS`."""
    middle = (torch.arange(UNIFORM_LEVELS, dtype=torch.float64) + 0.5) / UNIFORM_LEVELS
    return torch.special.ndtri(middle).float()


@dataclass(frozen=True)
class IndependentStreams:
    """Draws each sample's noise from its own stream; sample m is the same for every M."""

    streams: Sequence[Stream]
    device: torch.device = CPU

    def keep_masks(self, shape: Sequence[int], rate: float) -> Tensor:
        """Return (m, h, w, C) masks for (C, h, w) maps, see `keep_mask`."""
        map_shape = (*shape[1:], shape[0])
        masks = torch.stack([keep_mask(stream, map_shape, rate) for stream in self.streams])
        return upload(masks, self.device)

    def normal_noise(self, shape: Sequence[int]) -> Tensor:
        """Return (m, h, w, C) float32 samples of N(0, 1) for (C, h, w) maps."""
        map_shape = (*shape[1:], shape[0])
        noise = torch.stack([normal_noise(stream, map_shape) for stream in self.streams])
        return upload(noise, self.device)


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
    """A frame's noise, drawn for each sample by itself; see `FrameNoise`."""

    seed: int
    stamp_ns: int
    device: torch.device

    def of(self, numbers: Sequence[int]) -> IndependentStreams:
        """See `FrameNoise`."""
        streams = [random_stream(self.seed, self.stamp_ns, number) for number in numbers]
        return IndependentStreams(streams, self.device)


def stratified(config: PredictorConfig, stamp_ns: int, device: torch.device) -> NoiseOnDevice:
    """Return the noise of `frame_noise` for a device."""
    stream = random_stream(config.seed, stamp_ns, FRAME)
    return NoiseOnDevice(stream, config.samples, device=device)


def independent(config: PredictorConfig, stamp_ns: int, device: torch.device) -> IndependentNoise:
    """Return a stream for each sample, in place of `frame_noise`."""
    return IndependentNoise(config.seed, stamp_ns, device)


class InferenceDropout(StochasticPasses):
    """Passes in which units of the feature map are dropped at `DROPOUT_RATE`."""

    noise: Callable[..., FrameNoise] = staticmethod(stratified)

    def dropouts(self, config: PredictorConfig) -> Sequence[Perturbation]:
        """See `StochasticPasses`."""
        return first_alone(self.networks[0], SeededDropout(DROPOUT_RATE))


class FeatureNoise(StochasticPasses):
    """Passes with Gaussian noise in the feature map, by `NOISE_RATIO`."""

    noise: Callable[..., FrameNoise] = staticmethod(stratified)

    def dropouts(self, config: PredictorConfig) -> Sequence[Perturbation]:
        """See `StochasticPasses`."""
        return first_alone(self.networks[0], SeededNoise(NOISE_RATIO))


class IndependentMcDropout(McDropout):
    """`mc_dropout` as published."""

    few_launches = False
    noise = staticmethod(independent)


class IndependentInferenceDropout(InferenceDropout):
    """`inference_dropout` as published."""

    noise = staticmethod(independent)


class IndependentFeatureNoise(FeatureNoise):
    """`feature_noise` as published."""

    noise = staticmethod(independent)


def first_alone(network: DepthNetwork, perturbation: Perturbation) -> list[Perturbation]:
    """Return one function per network dropout: the first perturbs, the others do nothing."""
    others = len(network.decoder.dropouts) - 1
    return [perturbation, *[_unchanged] * others]


def _unchanged(x: Tensor, streams: Any) -> Tensor:
    return x
