"""Dropout noise that depends on the seed, the frame's stamp and the sample's number, and on nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from uncertainty_depth.network.learned_dropout import ConcreteDropout, VariationalDropout

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


def normal_noise(bits: np.random.Philox, count: int) -> NDArray[np.float32]:
    """(count,) float32 of mean 0 and variance 1."""
    return np.random.Generator(bits).standard_normal(count, dtype=np.float32)


class SeededDropout:
    """Dropout for as many samples at once as there are streams; each place it is called at draws on from the samples' own streams."""

    def __init__(self, rate: float, streams: Sequence[np.random.Philox]) -> None:
        self._rate = rate
        self._streams = streams

    def __call__(self, x: Tensor) -> Tensor:
        """(1 or M, C, h, w) to (M, C, h, w), channels last in memory as the masks are: on every device an element gets the same bit."""
        keep = _drawn(x, [keep_mask(bits, x[0].numel(), self._rate) for bits in self._streams])
        return (x * (1.0 / (1.0 - self._rate))) * keep


class SeededGaussianDropout:
    """Multiplication by noise N(1, alpha), in the same way."""

    def __init__(self, alpha: float, streams: Sequence[np.random.Philox]) -> None:
        self._deviation = alpha**0.5
        self._streams = streams

    def __call__(self, x: Tensor) -> Tensor:
        """(1 or M, C, h, w) to (M, C, h, w)."""
        noise = _drawn(x, [normal_noise(bits, x[0].numel()) for bits in self._streams])
        return x * (1.0 + self._deviation * noise).to(x.dtype)


def seeded(
    layer: nn.Module,
) -> Callable[[Sequence[np.random.Philox]], SeededDropout | SeededGaussianDropout]:
    """What takes the place of a dropout layer, at its rate now, once it is given the samples' streams."""
    if isinstance(layer, VariationalDropout):
        alpha = layer.alpha.item()
        return lambda streams: SeededGaussianDropout(alpha, streams)
    rate = layer.rate.item() if isinstance(layer, ConcreteDropout) else layer.p
    return lambda streams: SeededDropout(rate, streams)


def _drawn(x: Tensor, values: Sequence[NDArray]) -> Tensor:
    """(M, C, h, w) of M flat arrays in the order of channels last, on the device of `x`."""
    _, channels, height, width = x.shape
    drawn = torch.from_numpy(np.stack(values)).to(x.device, non_blocking=True)
    return drawn.view(len(values), height, width, channels).permute(0, 3, 1, 2)
