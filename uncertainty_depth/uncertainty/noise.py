# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Noise of stochastic passes, which any process can repeat.

It depends on the seed, the frame's stamp, the sample's number, how samples are related, and the
type of device (the CPU, or a GPU), and on nothing else. Maps of noise are in channels-last order,
as those of the networks are in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from uncertainty_depth.config import RawPredictorConfig
from uncertainty_depth.network.learned_dropout import ConcreteDropout, VariationalDropout
from uncertainty_depth.uncertainty.strata import StratifiedStreams

CPU = torch.device("cpu")
KEY_MODULUS = 2**64
SEED_MODULUS = 2**63
THRESHOLDS = 2**16
FRAME = 2**32
"""In place of a sample's number: what all samples of a frame draw together."""

Plain = np.random.Philox | torch.Generator


class Mirrored(NamedTuple):
    """A stream whose uniform numbers u are taken as 1 - u."""

    stream: Plain


Stream = Plain | Mirrored
Streams = Sequence[Stream] | StratifiedStreams


def frame_streams(
    config: RawPredictorConfig, stamp_ns: int, numbers: Sequence[int], device: torch.device
) -> Streams:
    """Return the random numbers of some samples of a frame, as `config.sampling` relates them.

    Args:
        config: `seed`, `sampling` and, for stratified, `samples` decide what is drawn.
        stamp_ns: time of the frame.
        numbers: of the samples, of 0 to `config.samples` - 1.
        device: where the noise is used.
    """
    if config.sampling == "stratified":
        stream = random_stream(config.seed, stamp_ns, FRAME, device)
        return StratifiedStreams(stream, numbers, config.samples)
    if config.sampling == "antithetic":
        return [_one_of_pair(config.seed, stamp_ns, number, device) for number in numbers]
    return [random_stream(config.seed, stamp_ns, number, device) for number in numbers]


def _one_of_pair(seed: int, stamp_ns: int, number: int, device: torch.device) -> Stream:
    """Return the stream of an even sample, or that of the one before it, mirrored."""
    stream = random_stream(seed, stamp_ns, number - number % 2, device)
    return Mirrored(stream) if number % 2 else stream


def random_stream(seed: int, stamp_ns: int, sample: int, device: torch.device = CPU) -> Plain:
    """Return the random numbers of one sample of one frame, for the device they are used on.

    Philox (Salmon et al. 2011) is a function of key and counter: the key is (seed, stamp), the
    counter starts at 2^128 times the sample's number, so no two streams overlap and none depends
    on what was drawn before. A GPU draws its own: from the CPU noise would be copied, tens of
    megabytes a frame.
    """
    key = [seed % KEY_MODULUS, stamp_ns % KEY_MODULUS]
    if device.type == "cpu":
        counter = np.array([0, 0, sample, 0], dtype=np.uint64)
        return np.random.Philox(key=np.array(key, dtype=np.uint64), counter=counter)
    state = np.random.SeedSequence([*key, sample]).generate_state(1, np.uint64)
    return torch.Generator(device).manual_seed(int(state[0]) % SEED_MODULUS)


def keep_mask(stream: Stream, shape: Sequence[int], rate: float) -> Tensor:
    """Return 1 where a unit is kept, 0 with probability `rate` to within 2^-17.

    On the CPU (uint8), 16 random bits are compared with a threshold.
    """
    plain = stream.stream if isinstance(stream, Mirrored) else stream
    if isinstance(plain, torch.Generator):
        uniform = torch.empty(tuple(shape), device=plain.device).uniform_(generator=plain)
        return (1.0 - uniform if isinstance(stream, Mirrored) else uniform).ge_(rate)
    count = math.prod(shape)
    words = np.asarray(plain.random_raw(-(-count // 4))).view(np.uint16)[:count]
    mask = (~words if isinstance(stream, Mirrored) else words) >= round(rate * THRESHOLDS)
    return torch.from_numpy(mask.view(np.uint8)).view(*shape)


def normal_noise(stream: Stream, shape: Sequence[int]) -> Tensor:
    """Return float32 samples of N(0, 1)."""
    if isinstance(stream, Mirrored):
        return -normal_noise(stream.stream, shape)
    if isinstance(stream, torch.Generator):
        return torch.empty(tuple(shape), device=stream.device).normal_(generator=stream)
    generator = np.random.Generator(stream)
    return torch.from_numpy(generator.standard_normal(tuple(shape), dtype=np.float32))


@dataclass(frozen=True)
class SeededDropout:
    """Dropout at a fixed rate, of the units that the streams choose."""

    rate: float

    def noise(self, streams: Streams, shape: Sequence[int]) -> Tensor:
        """Return (M, h, w, C): 1 where a unit is kept, 0 where it is dropped.

        Args:
            streams: one for each of the M samples. Each dropout of a network draws on from them.
            shape: (C, h, w) of the maps.
        """
        channels, height, width = shape
        mask_shape = (height, width, channels)
        if isinstance(streams, StratifiedStreams):
            return streams.keep_masks(mask_shape, self.rate).view(torch.uint8)
        return torch.stack([keep_mask(stream, mask_shape, self.rate) for stream in streams])

    def apply(self, x: Tensor, noise: Tensor) -> Tensor:
        """Return (M, C, h, w): (1 or M, C, h, w) maps with the noise's units dropped."""
        return (x * (1.0 / (1.0 - self.rate))) * noise.permute(0, 3, 1, 2).to(x.dtype)

    def __call__(self, x: Tensor, streams: Streams) -> Tensor:
        """Return the maps with units dropped, one sample for each stream."""
        return self.apply(x, self.noise(streams, x.shape[1:]))


@dataclass(frozen=True)
class SeededGaussianDropout:
    """Multiplication by N(1, alpha), drawn from the streams."""

    alpha: float

    def noise(self, streams: Streams, shape: Sequence[int]) -> Tensor:
        """Return (M, h, w, C) float32 samples of N(0, 1); as `SeededDropout.noise`."""
        return normal_maps(streams, shape)

    def apply(self, x: Tensor, noise: Tensor) -> Tensor:
        """Return (M, C, h, w): (1 or M, C, h, w) maps times 1 + sqrt(alpha) noise."""
        return x * (1.0 + self.alpha**0.5 * noise.permute(0, 3, 1, 2)).to(x.dtype)

    def __call__(self, x: Tensor, streams: Streams) -> Tensor:
        """Return the maps times the noise, one sample for each stream."""
        return self.apply(x, self.noise(streams, x.shape[1:]))


@dataclass(frozen=True)
class SeededNoise:
    """Gaussian noise added to maps, relative to their own spread: networks differ in units."""

    ratio: float

    def __call__(self, x: Tensor, streams: Streams) -> Tensor:
        """Return (M, C, h, w): (1, C, h, w) maps plus one sample of noise for each stream.

        Its standard deviation is `ratio` times that of each channel over the pixels.
        """
        deviation = x.float().std((2, 3), correction=0, keepdim=True)
        noise = normal_maps(streams, x.shape[1:]).permute(0, 3, 1, 2)
        return x + (self.ratio * deviation * noise).to(x.dtype)


def normal_maps(streams: Streams, shape: Sequence[int]) -> Tensor:
    """Return (M, h, w, C) float32 samples of N(0, 1), for M streams and maps of (C, h, w)."""
    channels, height, width = shape
    map_shape = (height, width, channels)
    if isinstance(streams, StratifiedStreams):
        return streams.normal_noise(map_shape)
    return torch.stack([normal_noise(stream, map_shape) for stream in streams])


def seeded(layer: nn.Module) -> SeededDropout | SeededGaussianDropout:
    """Return the function of (x, streams) that replaces a dropout layer, at its present rate."""
    if isinstance(layer, VariationalDropout):
        return SeededGaussianDropout(layer.alpha.item())
    if isinstance(layer, ConcreteDropout):
        return SeededDropout(layer.rate.item())
    return SeededDropout(cast(nn.Dropout, layer).p)
