# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Stochastic passes that keep their dropout on, with noise that any process can repeat.

- `mc_dropout` (Gal and Ghahramani 2016): Bernoulli dropout of a fixed rate.
- `concrete_dropout` (Gal et al. 2017): Bernoulli dropout whose rate was learned, by the concrete
  relaxation.
- `variational_dropout` (Kingma et al. 2015): units are multiplied by N(1, alpha), alpha learned.

Noise depends on the seed, the frame's stamp and the sample's number, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.errors import ModelError
from uncertainty_depth.model_folder.folder import ModelFolder
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.network.learned_dropout import ConcreteDropout, VariationalDropout
from uncertainty_depth.records import SampleRange
from uncertainty_depth.uncertainty.estimator import Place, components_of
from uncertainty_depth.uncertainty.moments import Estimate, Moments

KEY_MODULUS = 2**64
THRESHOLDS = 2**16

Streams = Sequence[np.random.Philox]


class McDropout:
    """M stochastic passes; what comes before the first dropout is computed once.

    Raises:
        ModelError: the network has no dropout.
    """

    def __init__(self, network: DepthNetwork) -> None:
        if network.config.dropout == 0.0:
            raise ModelError(
                "mc_dropout needs a network with dropout, but this network's dropout rate is 0; "
                "expected another method"
            )
        self.networks = [network]
        self._dropouts = [seeded(layer) for layer in network.decoder.dropouts]

    @classmethod
    def load(cls, model: ModelFolder, place: Place) -> McDropout:
        """Load the model's last member."""
        return cls(place(model.load(model.members[-1])))

    def passes(self, config: PredictorConfig) -> int:
        """See `Estimator`."""
        return config.samples

    def components(self, config: PredictorConfig) -> tuple[str, ...]:
        """See `Estimator`."""
        return components_of(self.networks, config.samples)

    @torch.inference_mode()
    def estimate(
        self,
        image: Tensor,
        stamp_ns: int,
        config: PredictorConfig,
        samples: SampleRange | None = None,
    ) -> Estimate:
        """See `Estimator`. Sample m's masks follow from (seed, stamp, m), whatever the chunk."""
        network = self.networks[0]
        moments = Moments()
        trunk = network.decoder.trunk(network.encode(image))
        used = samples or SampleRange(0, config.samples)
        numbers = used.numbers(config.samples)
        for start in range(0, len(numbers), config.chunk):
            batch = numbers[start : start + config.chunk]
            streams = [random_stream(config.seed, stamp_ns, sample) for sample in batch]
            dropouts = [partial(dropout, streams=streams) for dropout in self._dropouts]
            raw = network.decoder.branches(trunk, dropouts)
            output = network.to_metres(raw, image.shape[-2:])
            moments.add(output.depth_m, network.variance(output))
        return moments.estimate()


def seeded(layer: nn.Module) -> Callable[..., Tensor]:
    """Return the function of (x, streams) that replaces a dropout layer, at its present rate."""
    if isinstance(layer, VariationalDropout):
        return partial(seeded_gaussian_dropout, alpha=layer.alpha.item())
    if isinstance(layer, ConcreteDropout):
        return partial(seeded_dropout, rate=layer.rate.item())
    return partial(seeded_dropout, rate=cast(nn.Dropout, layer).p)


def random_stream(seed: int, stamp_ns: int, sample: int) -> np.random.Philox:
    """Return the random bits of one sample of one frame.

    Philox (Salmon et al. 2011) is a function of key and counter: the key is (seed, stamp), the
    counter starts at 2^128 times the sample's number, so no two streams overlap and none depends
    on what was drawn before.
    """
    key = np.array([seed % KEY_MODULUS, stamp_ns % KEY_MODULUS], dtype=np.uint64)
    return np.random.Philox(key=key, counter=np.array([0, 0, sample, 0], dtype=np.uint64))


def keep_mask(bits: np.random.Philox, count: int, rate: float) -> NDArray[np.bool_]:
    """Return (count,) bool, False with probability `rate` to within 2^-17.

    16 random bits are compared with a threshold.
    """
    words = bits.random_raw(-(-count // 4))
    return np.asarray(words).view(np.uint16)[:count] >= round(rate * THRESHOLDS)


def normal_noise(bits: np.random.Philox, count: int) -> NDArray[np.float32]:
    """Return (count,) float32 samples of mean 0 and variance 1."""
    return np.random.Generator(bits).standard_normal(count, dtype=np.float32)


def seeded_dropout(x: Tensor, rate: float, streams: Streams) -> Tensor:
    """Drop units of (1 or M, C, h, w) maps; one stream for each of the M samples returned.

    Each dropout of a network draws on from the same streams.
    """
    masks = [keep_mask(bits, x[0].numel(), rate) for bits in streams]
    return (x * (1.0 / (1.0 - rate))) * _as_maps(masks, x)


def seeded_gaussian_dropout(x: Tensor, alpha: float, streams: Streams) -> Tensor:
    """Multiply (1 or M, C, h, w) maps by noise N(1, alpha), as `seeded_dropout` does by masks."""
    noise = _as_maps([normal_noise(bits, x[0].numel()) for bits in streams], x)
    return x * (1.0 + alpha**0.5 * noise).to(x.dtype)


def _as_maps(samples: Sequence[NDArray], x: Tensor) -> Tensor:
    """Return M flat arrays as (M, C, h, w) on the device of `x`.

    In channels-last order, as the network's maps are in memory, so that an element gets the same
    value on every device.
    """
    _, channels, height, width = x.shape
    flat = torch.from_numpy(np.stack(samples)).to(x.device, non_blocking=True)
    return flat.view(len(samples), height, width, channels).permute(0, 3, 1, 2)
