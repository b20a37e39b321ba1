# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Random numbers of stochastic passes, reproducible in any process.

They depend only on the seed, the frame's stamp, the sample's number and the number of samples, so
a GPU drops the units that a CPU does. Noise maps are in channels-last order, as the networks' maps
are in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from uncertainty_depth.core.config import PredictorConfig

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


class FrameNoise(Protocol):
    """The random numbers of a frame."""

    def of(self, numbers: Any) -> Streams:
        """Return those of the samples with these numbers, from the first dropout on."""
        ...


def frame_noise(config: PredictorConfig, stamp_ns: int, device: torch.device) -> FrameNoise:
    """Return the random numbers of a frame, for the CPU.

    Args:
        config: `seed` and `samples` determine the numbers.
        stamp_ns: the frame's time.
        device: of the network; other noise may be made there.
    """
    return StratifiedNoise(random_stream(config.seed, stamp_ns, FRAME), config.samples)


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
class StratifiedNoise:
    """A frame's noise by Latin hypercube sampling.

    Independent masks of M samples drop a unit M p times on average, and often 0 or 2 M p times.
    Here (McKay et al. 1979) the uniform numbers of a unit are (pi(m) + r) / M, m = 0 ... M - 1,
    with its own random permutation pi and uniform r. Every stratum of width 1 / M holds one
    number, so each unit is dropped M p times to within one. Each single sample is distributed as
    before. The mean over the samples is closer to the mean of many samples, because its error is a
    sum over units of the error in their drop counts. The spread is as noisy as before, but less
    biased: if the output is linear in the masks, E[biased variance] = sigma^2 - Var[mean], and the
    last term is smaller.

    Only pi and r are drawn, once for all samples, as a place in a table.

    Attributes:
        stream: the frame's stream, at its start.
        samples: M, the number of all samples.
    """

    stream: Stream
    samples: int
    _drawn: list[tuple[NDArray[np.int32], NDArray[np.uint16]]] = field(
        default_factory=list, init=False, repr=False
    )

    def of(self, numbers: Sequence[int]) -> Streams:
        """See `FrameNoise`; drawing all samples at once or one by one gives the same."""
        return StratifiedStreams(self, numbers)

    def keep_places(self, dropout: int, shape: Sequence[int], rate: float) -> NDArray[np.int32]:
        """Return where each unit's masks begin in `keep_table`; the rate is exact to 2^-16.

        Args:
            dropout: its number; those before it have been drawn.
            shape: (C, h, w) of its maps.
            rate: of dropped units.
        """
        rest = _dropped(rate, self.samples)[1]
        places, within = self.draw(dropout, math.prod(shape))
        return places + (within < rest) * np.int32(PERMUTATIONS * 2 * self.samples)

    def draw(self, dropout: int, units: int) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """Return where each unit's strata begin in `strata_table`, and r in `UNIFORM_LEVELS`."""
        if dropout == len(self._drawn):
            words = np.asarray(self.stream.random_raw(units)).view(np.uint16)
            within, turn, row = words.reshape(-1, 4).T[:3]
            rotation = (turn.astype(np.int32) * self.samples) >> 16
            first = (row & (PERMUTATIONS - 1)).astype(np.int32) * (2 * self.samples)
            self._drawn.append((first + rotation, within))
        return self._drawn[dropout]


@dataclass
class StratifiedStreams:
    """The stratified noise of some samples; see `Streams`."""

    noise: StratifiedNoise
    numbers: Sequence[int]
    _next: int = 0

    def keep_masks(self, shape: Sequence[int], rate: float) -> Tensor:
        """See `Streams`."""
        places = self.noise.keep_places(self._next, shape, rate)
        return self.look_up(keep_table(self.noise.samples, rate), places, shape)

    def look_up(self, table: Tensor, places: NDArray[np.int32], shape: Sequence[int]) -> Tensor:
        """Return the m samples' values, (m, h, w, C), for the next dropout."""
        self._next += 1
        first = torch.from_numpy(places)
        # Row by row: without a place in memory for every sample.
        found = [table[number:].index_select(0, first) for number in self.numbers]
        return torch.stack(found).view(-1, *shape[1:], shape[0])


class Draw(NamedTuple):
    """What a dropout draws for a frame: (C, h, w) of its maps, and its rate."""

    shape: tuple[int, ...]
    rate: float


def packed_noise(
    config: PredictorConfig,
    stamps_ns: Sequence[int],
    numbers: Sequence[int],
    draws: Sequence[Draw],
) -> Tensor:
    """Return the numbers of the samples, and the places of each frame's units, as int32.

    Four bytes a unit for any M. They are on the CPU, to be uploaded at once for `PackedNoise`.
    """
    values = [np.asarray(numbers, np.int32)]
    for stamp_ns in stamps_ns:
        noise = StratifiedNoise(random_stream(config.seed, stamp_ns, FRAME), config.samples)
        values += [noise.keep_places(number, *draw) for number, draw in enumerate(draws)]
    return torch.from_numpy(np.concatenate(values))


@dataclass(frozen=True)
class PackedNoise:
    """The noise of a frame, looked up where its places are; see `FrameNoise`.

    Attributes:
        places: of each dropout's units, (units,) int32.
        tables: `keep_table` of each dropout.
    """

    places: Sequence[Tensor]
    tables: Sequence[Tensor]

    def of(self, numbers: Tensor) -> PackedStreams:
        """Return the noise of samples, given (m,) int32 numbers on the device."""
        return PackedStreams(self, numbers)


@dataclass
class PackedStreams:
    """The packed noise of some samples; see `Streams`."""

    noise: PackedNoise
    numbers: Tensor
    _next: int = 0

    def keep_masks(self, shape: Sequence[int], rate: float) -> Tensor:
        """See `Streams`; shape and rate are those that were drawn for."""
        every = self.noise.places[self._next] + self.numbers[:, None]
        keep = self.noise.tables[self._next].index_select(0, every.flatten())
        self._next += 1
        return keep.view(-1, *shape[1:], shape[0])


@dataclass(frozen=True)
class GivenNoise:
    """One dropout's noise, drawn before; see `Streams`."""

    noise: Tensor

    def keep_masks(self, shape: Sequence[int], rate: float) -> Tensor:
        """Return the noise, (m, h, w, C) masks."""
        return self.noise


def _dropped(rate: float, samples: int) -> tuple[int, int]:
    """Return the strata that are dropped whole, and r in the next one up to which it is too."""
    return divmod(round(rate * UNIFORM_LEVELS) * samples, UNIFORM_LEVELS)


def strata_table(samples: int) -> Tensor:
    """Return `PERMUTATIONS` permutations of M, each repeated twice so that it can be rotated."""
    return torch.from_numpy(_strata(samples))


def keep_table(samples: int, rate: float) -> Tensor:
    """Return 1 for the strata kept whole or in part; then again, 1 for those kept whole."""
    return torch.from_numpy(_kept(samples, _dropped(rate, samples)[0]))


@lru_cache(maxsize=8)
def _strata(samples: int) -> NDArray[np.int16]:
    words = np.random.Philox(key=samples).random_raw(PERMUTATIONS * samples)
    order = np.asarray(words).reshape(PERMUTATIONS, samples).argsort(1, kind="stable")
    return np.tile(order.astype(np.int16), 2).ravel()


@lru_cache(maxsize=8)
def _kept(samples: int, dropped: int) -> NDArray[np.uint8]:
    strata = _strata(samples)
    return np.concatenate([strata >= dropped, strata > dropped]).view(np.uint8)
