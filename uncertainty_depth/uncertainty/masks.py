"""Dropout masks that depend on the seed, the frame's stamp and the sample's number, and on nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

WORD = 2**64
LEVELS = 2**16


def stream(seed: int, stamp_ns: int, sample: int) -> np.random.Philox:
    """The random bits of one sample of one frame.

    Philox (Salmon et al. 2011) is a function of key and counter: the key is (seed, stamp), the counter starts at 2^128 times the sample's
    number, so no two streams ever overlap, and none depends on what was drawn before.
    """
    key = np.array([seed % WORD, stamp_ns % WORD], dtype=np.uint64)
    return np.random.Philox(key=key, counter=np.array([0, 0, sample, 0], dtype=np.uint64))


def keep_mask(bits: np.random.Philox, count: int, rate: float) -> NDArray[np.bool_]:
    """(count,) bool, False with probability `rate`, to within 2^-17: 16 random bits against a threshold."""
    words = bits.random_raw(-(-count // 4))
    return np.asarray(words).view(np.uint16)[:count] >= round(rate * LEVELS)


class SeededDropout:
    """Dropout for as many samples at once as there are streams; each place it is called at draws on from the samples' own streams."""

    def __init__(self, rate: float, streams: Sequence[np.random.Philox]) -> None:
        self._rate = rate
        self._streams = streams

    def __call__(self, x: Tensor) -> Tensor:
        """(1 or M, C, h, w) to (M, C, h, w), channels last in memory as the masks are: on every device an element gets the same bit."""
        _, channels, height, width = x.shape
        masks = np.stack([keep_mask(bits, channels * height * width, self._rate) for bits in self._streams])
        keep = torch.from_numpy(masks).to(x.device, non_blocking=True).view(len(masks), height, width, channels).permute(0, 3, 1, 2)
        return (x * (1.0 / (1.0 - self._rate))) * keep
