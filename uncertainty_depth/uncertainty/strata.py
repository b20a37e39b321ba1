# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Noise of all samples of a frame drawn together: Latin hypercube sampling (McKay et al. 1979).

Independent masks of M samples drop a unit M p times on average, and often 0 or 2 M p times. Here
the uniform numbers of a unit are (pi(m) + r) / M, m = 0 ... M - 1, with a random permutation pi
and a uniform r of its own: every stratum of width 1 / M has one of them, so each unit is dropped
M p times to within one. Each sample alone is distributed as before. The mean over the samples is
closer to that of many, because its error is a sum over units of what their numbers of drops are
off. The spread is as noisy as before, and less biased: where the output is linear in the masks,
E[biased variance] = sigma^2 - Var[mean], and the last term is smaller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

LEVELS = 2**16
"""Of a uniform number."""
PERMUTATIONS = 2**10
"""That units choose from, each in M rotations: with them a stratum is equally likely for all."""


class StratifiedStreams:
    """Draws the noise of some of a frame's samples; the same for all samples or one by one.

    Args:
        stream: of the frame, at its start.
        numbers: of the samples that are drawn.
        samples: M, of which they are some.
    """

    def __init__(
        self, stream: np.random.Philox | torch.Generator, numbers: Sequence[int], samples: int
    ) -> None:
        self._stream = stream
        self._numbers = numbers
        self._samples = samples

    def keep_masks(self, shape: Sequence[int], rate: float) -> Tensor:
        """Return (m, *shape): 1 where a unit is kept, 0 with probability `rate` to 2^-16."""
        whole, rest = divmod(round(rate * LEVELS) * self._samples, LEVELS)
        strata, within = self._draw(shape)
        return strata >= whole + (within < rest).to(strata.dtype)

    def normal_noise(self, shape: Sequence[int]) -> Tensor:
        """Return (m, *shape) float32 samples of N(0, 1), one from each stratum of probability."""
        strata, within = self._draw(shape)
        if strata.device.type != "cpu":
            uniform = (strata + (within + 0.5) / LEVELS) / self._samples
            return torch.special.ndtri(uniform)
        level = (strata.int() * LEVELS + within) // self._samples
        return torch.take(_normal_quantiles(), level.long())

    def _draw(self, shape: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return strata pi(m), (m, *shape), and r within them in `LEVELS`, (*shape)."""
        if isinstance(self._stream, torch.Generator):
            return self._draw_on_gpu(shape, self._stream)
        samples = self._samples
        parts = np.asarray(self._stream.random_raw(math.prod(shape))).view(np.uint16)
        within, turn, row = parts.reshape(-1, 4).T[:3]
        rotation = (turn.astype(np.intp) * samples) >> 16
        first = (row & (PERMUTATIONS - 1)).astype(np.intp) * (2 * samples) + rotation
        table = _permutations(samples)
        strata = np.empty((len(self._numbers), len(first)), np.int16)
        for number, one in zip(self._numbers, strata, strict=True):
            table[number:].take(first, out=one, mode="wrap")  # all are inside: no check is faster
        offsets = torch.from_numpy(within.astype(np.int32)).view(*shape)
        return torch.from_numpy(strata).view(-1, *shape), offsets

    def _draw_on_gpu(self, shape: Sequence[int], stream: torch.Generator) -> tuple[Tensor, Tensor]:
        options: dict[str, Any] = {"generator": stream, "device": stream.device}
        order = torch.rand((self._samples, *shape), **options).argsort(0)
        strata = torch.stack([order[number] for number in self._numbers])
        return strata, torch.randint(LEVELS, tuple(shape), **options)


@lru_cache(maxsize=8)
def _permutations(samples: int) -> NDArray[np.int16]:
    """Return `PERMUTATIONS` rows of a permutation of M, each twice so that it can be rotated."""
    words = np.random.Philox(key=samples).random_raw(PERMUTATIONS * samples)
    order = np.asarray(words).reshape(PERMUTATIONS, samples).argsort(1, kind="stable")
    return np.tile(order.astype(np.int16), 2).ravel()


@lru_cache(maxsize=1)
def _normal_quantiles() -> Tensor:
    """Return the quantiles of N(0, 1) in the middle of each of `LEVELS`."""
    middle = (torch.arange(LEVELS, dtype=torch.float64) + 0.5) / LEVELS
    return torch.special.ndtri(middle).float()
