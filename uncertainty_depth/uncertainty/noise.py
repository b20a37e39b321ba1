# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Random numbers of stochastic passes, reproducible in any process.

They depend only on the seed, the frame's stamp, the sample's number and the number of samples, so
a GPU drops the units that a CPU does. Noise maps are in channels-last order, as the networks' maps
are in memory.
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
from uncertainty_depth.network.encoder import upload

CPU = torch.device("cpu")
KEY_MODULUS = 2**64
UNIFORM_LEVELS = 2**16
"""Of a uniform number."""
PERMUTATIONS = 2**10
"""That units choose from, each in M rotations: with them a stratum is equally likely for all."""
FRAME = 2**32
"""In place of a sample's number: what all samples of a frame draw together."""

Stream = np.random.Philox
"""Random words of 64 bits, drawn on the CPU."""


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
    stream = random_stream(config.seed, stamp_ns, FRAME)
    return StratifiedStreams(stream, numbers, config.samples, device)


def random_stream(seed: int, stamp_ns: int, sample: int) -> Stream:
    """Return the random numbers of one sample in one frame, or of `FRAME`.

    Philox (Salmon et al. 2011) is a function of key and counter. The key is (seed, stamp); the
    counter starts at 2^128 times the sample's number. So streams do not overlap or depend on
    earlier draws.
    """
    key = np.array([seed % KEY_MODULUS, stamp_ns % KEY_MODULUS], dtype=np.uint64)
    counter = np.array([0, 0, sample, 0], dtype=np.uint64)
    return np.random.Philox(key=key, counter=counter)


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

    Only pi and r are drawn, once for all samples, as a place in a table. A GPU gets these places,
    four bytes a unit for any M, and looks the strata up itself.

    Attributes:
        stream: the frame's stream, at its start.
        numbers: numbers of the samples to draw; drawing all at once or one by one gives the same.
        samples: M, the number of all samples.
        device: the device that uses the noise.
    """

    stream: Stream
    numbers: Sequence[int]
    samples: int
    device: torch.device = CPU

    def keep_masks(self, shape: Sequence[int], rate: float) -> Tensor:
        """Return (m, h, w, C) masks; the rate is exact to 2^-16."""
        dropped, rest = divmod(round(rate * UNIFORM_LEVELS) * self.samples, UNIFORM_LEVELS)
        places, within = self._draw(shape)
        places += (within < rest).astype(np.int32) * (PERMUTATIONS * 2 * self.samples)
        return self._look_up(_keep_table(self.samples, dropped), places, shape)

    def draw(self, shape: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return strata pi(m), (m, h, w, C), and r within them in `UNIFORM_LEVELS`, (h, w, C)."""
        places, within = self._draw(shape)
        strata = self._look_up(_strata_table(self.samples), places, shape)
        offsets = torch.from_numpy(within.astype(np.int32)).view(*shape[1:], shape[0])
        return strata, upload(offsets, self.device)

    def _draw(self, shape: Sequence[int]) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """Return where each unit's strata begin in `_strata_table`, and r."""
        words = np.asarray(self.stream.random_raw(math.prod(shape))).view(np.uint16)
        within, turn, row = words.reshape(-1, 4).T[:3]
        rotation = (turn.astype(np.int32) * self.samples) >> 16
        first = (row & (PERMUTATIONS - 1)).astype(np.int32) * (2 * self.samples)
        return first + rotation, within

    def _look_up(
        self, values: NDArray[Any], places: NDArray[np.int32], shape: Sequence[int]
    ) -> Tensor:
        """Return the m samples' values, (m, h, w, C); sample 0's are at `places`."""
        table = torch.from_numpy(values)
        first = torch.from_numpy(places)
        if self.device.type == "cpu":  # without a place in memory for every sample
            found = torch.stack([table[number:].index_select(0, first) for number in self.numbers])
        else:
            numbers = torch.tensor(self.numbers, dtype=torch.int32)[:, None]
            every = upload(first, self.device) + upload(numbers, self.device)
            found = upload(table, self.device).index_select(0, every.flatten())
        return found.view(len(self.numbers), *shape[1:], shape[0])


@dataclass(frozen=True)
class GivenNoise:
    """One dropout's noise, drawn before; see `Streams`."""

    noise: Tensor

    def keep_masks(self, shape: Sequence[int], rate: float) -> Tensor:
        """Return the noise, (m, h, w, C) masks."""
        return self.noise


@lru_cache(maxsize=8)
def _strata_table(samples: int) -> NDArray[np.int16]:
    """Return `PERMUTATIONS` permutations of M, each repeated twice so that it can be rotated."""
    words = np.random.Philox(key=samples).random_raw(PERMUTATIONS * samples)
    order = np.asarray(words).reshape(PERMUTATIONS, samples).argsort(1, kind="stable")
    return np.tile(order.astype(np.int16), 2).ravel()


@lru_cache(maxsize=8)
def _keep_table(samples: int, dropped: int) -> NDArray[np.uint8]:
    """Return 1 for the strata from `dropped` on; then again, with one stratum more dropped."""
    strata = _strata_table(samples)
    return np.concatenate([strata >= dropped, strata > dropped]).view(np.uint8)
