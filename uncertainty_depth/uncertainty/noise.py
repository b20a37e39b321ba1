# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Random numbers of stochastic passes, reproducible in any process.

They depend only on the seed, the frame's stamp, the sample's number, the number of samples, and
the device type (CPU or GPU). Noise maps are in channels-last order, as the networks' maps are in
memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from uncertainty_depth.config import PredictorConfig

CPU = torch.device("cpu")
KEY_MODULUS = 2**64
SEED_MODULUS = 2**63
UNIFORM_LEVELS = 2**16
"""Of a uniform number."""
PERMUTATIONS = 2**10
"""That units choose from, each in M rotations: with them a stratum is equally likely for all."""
FRAME = 2**32
"""In place of a sample's number: what all samples of a frame draw together."""

Stream = np.random.Philox | torch.Generator


class Streams(Protocol):
    """The random numbers of m samples; each network dropout draws the next ones."""

    def keep_masks(self, shape: Sequence[int], rate: float) -> Tensor:
        """Return (m, h, w, C) for (C, h, w) maps: 1 for kept units, 0 at the given rate."""
        ...


def frame_streams(
    config: PredictorConfig, stamp_ns: int, numbers: Sequence[int], device: torch.device
) -> Streams:
    """Return the random numbers of some of a frame's samples.

    Args:
        config: `seed` and `samples` determine the numbers.
        stamp_ns: the frame's time.
        numbers: sample numbers, from 0 to `config.samples` - 1.
        device: the device that uses the noise.
    """
    stream = random_stream(config.seed, stamp_ns, FRAME, device)
    return StratifiedStreams(stream, numbers, config.samples)


def random_stream(seed: int, stamp_ns: int, sample: int, device: torch.device = CPU) -> Stream:
    """Return the random numbers of one sample in one frame, or of `FRAME`, for the device.

    Philox (Salmon et al. 2011) is a function of key and counter. The key is (seed, stamp); the
    counter starts at 2^128 times the sample's number. So streams do not overlap or depend on
    earlier draws. A GPU draws its own numbers: copying noise from the CPU would take tens of
    megabytes per frame.
    """
    key = [seed % KEY_MODULUS, stamp_ns % KEY_MODULUS]
    if device.type == "cpu":
        counter = np.array([0, 0, sample, 0], dtype=np.uint64)
        return np.random.Philox(key=np.array(key, dtype=np.uint64), counter=counter)
    state = np.random.SeedSequence([*key, sample]).generate_state(1, np.uint64)
    return torch.Generator(device).manual_seed(int(state[0]) % SEED_MODULUS)


@dataclass(frozen=True)
class StratifiedStreams:
    """Draws noise for some of a frame's samples by Latin hypercube sampling; see `Streams`.

    Independent masks of M samples drop a unit M p times on average, and often 0 or 2 M p times.
    Here (McKay et al. 1979) the uniform numbers of a unit are (pi(m) + r) / M, m = 0 ... M - 1,
    with its own random permutation pi and uniform r. Every stratum of width 1 / M holds one
    number, so each unit is dropped M p times to within one. Each single sample is distributed as
    before. The mean over the samples is closer to the mean of many samples, because its error is a
    sum over units of the error in their drop counts. The spread is as noisy as before, but less
    biased: if the output is linear in the masks, E[biased variance] = sigma^2 - Var[mean], and the
    last term is smaller.

    Attributes:
        stream: the frame's stream, at its start.
        numbers: numbers of the samples to draw; drawing all at once or one by one gives the same.
        samples: M, the number of all samples.
    """

    stream: Stream
    numbers: Sequence[int]
    samples: int

    def keep_masks(self, shape: Sequence[int], rate: float) -> Tensor:
        """Return (m, h, w, C) masks; the rate is exact to 2^-16."""
        whole, rest = divmod(round(rate * UNIFORM_LEVELS) * self.samples, UNIFORM_LEVELS)
        strata, within = self.draw(shape)
        return (strata >= whole + (within < rest).to(strata.dtype)).view(torch.uint8)

    def draw(self, shape: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return strata pi(m), (m, h, w, C), and r within them in `UNIFORM_LEVELS`, (h, w, C)."""
        map_shape = (*shape[1:], shape[0])
        if isinstance(self.stream, torch.Generator):
            return self._draw_on_gpu(map_shape, self.stream)
        parts = np.asarray(self.stream.random_raw(math.prod(shape))).view(np.uint16)
        within, turn, row = parts.reshape(-1, 4).T[:3]
        rotation = (turn.astype(np.intp) * self.samples) >> 16
        first = (row & (PERMUTATIONS - 1)).astype(np.intp) * (2 * self.samples) + rotation
        table = _permutations(self.samples)
        strata = np.empty((len(self.numbers), len(first)), np.int16)
        for number, row_strata in zip(self.numbers, strata, strict=True):
            # All indices are inside; "wrap" is faster than a check.
            table[number:].take(first, out=row_strata, mode="wrap")
        offsets = torch.from_numpy(within.astype(np.int32)).view(*map_shape)
        return torch.from_numpy(strata).view(-1, *map_shape), offsets

    def _draw_on_gpu(self, shape: Sequence[int], stream: torch.Generator) -> tuple[Tensor, Tensor]:
        options: dict[str, Any] = {"generator": stream, "device": stream.device}
        order = torch.rand((self.samples, *shape), **options).argsort(0)
        strata = torch.stack([order[number] for number in self.numbers])
        return strata, torch.randint(UNIFORM_LEVELS, tuple(shape), **options)


@dataclass(frozen=True)
class GivenNoise:
    """One dropout's noise, drawn before; see `Streams`."""

    noise: Tensor

    def keep_masks(self, shape: Sequence[int], rate: float) -> Tensor:
        """Return the noise, (m, h, w, C) masks."""
        return self.noise


@lru_cache(maxsize=8)
def _permutations(samples: int) -> NDArray[np.int16]:
    """Return `PERMUTATIONS` permutations of M, each repeated twice so that it can be rotated."""
    words = np.random.Philox(key=samples).random_raw(PERMUTATIONS * samples)
    order = np.asarray(words).reshape(PERMUTATIONS, samples).argsort(1, kind="stable")
    return np.tile(order.astype(np.int16), 2).ravel()
