# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""`mc_dropout` (Gal and Ghahramani 2016): passes with the dropout that a network was trained with.

Everything before its first dropout is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.depth.estimators.estimator import Estimate, Estimator, Moments, Samples
from uncertainty_depth.depth.networks.depth_network import DepthNetwork
from uncertainty_depth.depth.networks.encoder import upload

KEY_MODULUS = 2**64
UNIFORM_LEVELS = 2**16
"""Levels that a uniform number has."""
PERMUTATIONS = 2**10
"""Units choose from these, each in M rotations: with them a stratum is equally likely for all."""
FRAME = 2**32
"""Takes a sample's place in the seed of what all samples of a frame draw together."""

Stream = np.random.Philox
"""Random words of 64 bits, drawn on the CPU."""


class Noise(Protocol):
    """The random numbers of a network's dropouts."""

    def draw(self, seed: int, stamp_ns: int) -> Any:
        """Return what the samples of a frame draw together."""
        ...

    def of(self, drawn: Any, numbers: Any) -> Sequence[Any]:
        """Return the noise of the samples with these numbers, for each dropout."""
        ...


class Draw(NamedTuple):
    """What a dropout draws for a frame: (C, h, w) of its maps, and its rate."""

    shape: tuple[int, ...]
    rate: float


def random_stream(seed: int, stamp_ns: int, sample: int) -> Stream:
    """Return the random numbers of one sample in one frame, or of `FRAME`.

    Philox (Salmon et al. 2011) is a function of key and counter, so streams do not overlap or
    depend on earlier draws.
    """
    key = np.array([seed % KEY_MODULUS, stamp_ns % KEY_MODULUS], dtype=np.uint64)
    counter = np.array([0, 0, sample, 0], dtype=np.uint64)
    return np.random.Philox(key=key, counter=counter)


class StratifiedNoise:
    """The masks of dropouts by Latin hypercube sampling.

    Independent masks of M samples drop a unit M p times on average, and often 0 or 2 M p times.
    Here (McKay et al. 1979) the uniform numbers of a unit are (pi(m) + r) / M, m = 0 ... M - 1,
    with its own random permutation pi and uniform r. Every stratum of width 1 / M holds one
    number, so each unit is dropped M p times to within one. Each single sample is distributed as
    before. The mean over the samples is closer to the mean of many samples, because its error is a
    sum over units of the error in their drop counts. The spread is as noisy as before, but less
    biased: if the output is linear in the masks, E[biased variance] = sigma^2 - Var[mean], and the
    last term is smaller.

    Only pi and r are drawn, once for all samples, as a place in a table: four bytes a unit, for
    any M. The rate is exact to 2^-16.
    """

    def __init__(
        self, draws: Sequence[Draw], samples: int, device: torch.device | str = "cpu"
    ) -> None:
        self._draws = draws
        self._samples = samples
        self._device = device
        kept = [_kept(samples, _dropped(draw.rate, samples)[0]) for draw in draws]
        self._tables = [torch.from_numpy(table).to(device) for table in kept]

    def draw(self, seed: int, stamp_ns: int) -> Tensor:
        """Return where each unit's masks begin in its dropout's table, (units,) int32."""
        stream = random_stream(seed, stamp_ns, FRAME)
        drawn = []
        for shape, rate in self._draws:
            places, within = draw_strata(stream, self._samples, math.prod(shape))
            rest = _dropped(rate, self._samples)[1]
            drawn.append(places + (within < rest) * np.int32(PERMUTATIONS * 2 * self._samples))
        return upload(torch.from_numpy(np.concatenate(drawn)), self._device)

    def of(self, drawn: Tensor, numbers: Sequence[int] | Tensor) -> list[Tensor]:
        """Return (m, h, w, C) masks for each dropout from a `draw`: 1 for kept units, else 0."""
        parts = drawn.split([math.prod(draw.shape) for draw in self._draws])
        return [
            look_up(table, places, numbers, draw.shape)
            for table, places, draw in zip(self._tables, parts, self._draws, strict=True)
        ]


def draw_strata(
    stream: Stream, samples: int, units: int
) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
    """Return where each unit's strata begin in `strata_table`, and r in `UNIFORM_LEVELS`."""
    words = np.asarray(stream.random_raw(units)).view(np.uint16)
    within, turn, row = words.reshape(-1, 4).T[:3]
    rotation = (turn.astype(np.int32) * samples) >> 16
    return (row & (PERMUTATIONS - 1)).astype(np.int32) * (2 * samples) + rotation, within


def look_up(
    table: Tensor, places: Tensor, numbers: Sequence[int] | Tensor, shape: Sequence[int]
) -> Tensor:
    """Return the values of m samples, (m, h, w, C), for (C, h, w) maps."""
    if isinstance(numbers, Tensor):
        found = table.index_select(0, (places + numbers[:, None]).flatten())
    else:  # row by row: without a place in memory for every sample
        found = torch.stack([table[number:].index_select(0, places) for number in numbers])
    return found.view(-1, *shape[1:], shape[0])


def _dropped(rate: float, samples: int) -> tuple[int, int]:
    """Return the strata that are dropped whole, and r in the next one up to which it is too."""
    return divmod(round(rate * UNIFORM_LEVELS) * samples, UNIFORM_LEVELS)


def strata_table(samples: int) -> Tensor:
    """Return `PERMUTATIONS` permutations of M, each repeated twice so that it can be rotated."""
    return torch.from_numpy(_strata(samples))


@lru_cache(maxsize=8)  # arrays: a tensor would keep the mode that it was made in
def _strata(samples: int) -> NDArray[np.int16]:
    words = np.random.Philox(key=samples).random_raw(PERMUTATIONS * samples)
    order = np.asarray(words).reshape(PERMUTATIONS, samples).argsort(1, kind="stable")
    return np.tile(order.astype(np.int16), 2).ravel()


@lru_cache(maxsize=8)
def _kept(samples: int, dropped: int) -> NDArray[np.uint8]:
    """Return 1 for the strata kept whole or in part; then again, 1 for those kept whole."""
    strata = _strata(samples)
    return np.concatenate([strata >= dropped, strata > dropped]).view(np.uint8)


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
        self, image: Tensor, stamp_ns: int, config: PredictorConfig, numbers: Sequence[int]
    ) -> Estimate:
        """See `Estimator`; noise does not depend on `at_once`, see `StratifiedNoise`."""
        size = image.shape[-2:]
        moments = Moments(in_order=not self.few_launches)
        features, trunk = self.run(self.networks[0].trunk, image)
        key = (tuple(size), config.samples)
        if key not in self._noise:
            shapes = self.networks[0].noise_shapes(trunk)  # by one pass, once
            self._noise[key] = self.make_noise(shapes, config.samples)
        noise = self._noise[key]
        drawn = noise.draw(config.seed, stamp_ns)  # while a GPU encodes
        for start in range(0, len(numbers), self.at_once):
            some: Any = numbers[start : start + self.at_once]
            if self.few_launches:
                some = upload(torch.tensor(some, dtype=torch.int32), image.device)
            moments.add(*self.run(self._samples, trunk, noise, drawn, some, size))
        return moments.estimate(features)

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
        """Return (M, C, h, w) without the units that are 0 in the noise, (M, h, w, C)."""
        return (x * (1.0 / (1.0 - self.rate))) * noise.permute(0, 3, 1, 2)


def seeded(layer: nn.Module) -> SeededDropout:
    """Return the function of (x, noise) that replaces a dropout layer, at its rate."""
    return SeededDropout(cast(nn.Dropout, layer).p)
