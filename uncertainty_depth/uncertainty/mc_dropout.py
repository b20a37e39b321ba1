# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Stochastic passes that keep their dropout on, with noise that any process can repeat.

- `mc_dropout` (Gal and Ghahramani 2016): Bernoulli dropout of a fixed rate.
- `concrete_dropout` (Gal et al. 2017): Bernoulli dropout whose rate was learned, by the concrete
  relaxation.
- `variational_dropout` (Kingma et al. 2015): units are multiplied by N(1, alpha), alpha learned.

Noise depends on the seed, the frame's stamp, the sample's number and the type of device (the CPU,
or a GPU), and on nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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

SEED_MODULUS = 2**63

Stream = np.random.Philox | torch.Generator
Streams = Sequence[Stream]


class StochasticPasses(ABC):
    """M stochastic passes; what comes before the first dropout is computed once."""

    def __init__(self, network: DepthNetwork) -> None:
        self.networks = [network]

    @abstractmethod
    def dropouts(self, config: PredictorConfig) -> Sequence[Callable[..., Tensor]]:
        """Return the functions of maps and streams that replace the network's dropout layers."""

    @classmethod
    def load(cls, model: ModelFolder, place: Place) -> StochasticPasses:
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
        """See `Estimator`. Sample m's noise follows from (seed, stamp, m), whatever the chunk."""
        network = self.networks[0]
        dropouts = self.dropouts(config)
        moments = Moments()
        trunk = network.trunk(image)
        used = samples or SampleRange(0, config.samples)
        numbers = used.numbers(config.samples)
        for start in range(0, len(numbers), config.chunk):
            batch = numbers[start : start + config.chunk]
            streams = streams_of(config.seed, stamp_ns, batch, image.device)
            output = network.branches(trunk, dropouts, streams, image.shape[-2:])
            moments.add(output.depth_m, network.variance(output))
        return moments.estimate()


class McDropout(StochasticPasses):
    """Passes with the network's own dropout on.

    Raises:
        ModelError: the network has no dropout.
    """

    def __init__(self, network: DepthNetwork) -> None:
        if network.config.dropout == 0.0:
            raise ModelError(
                "mc_dropout needs a network with dropout, but this network's dropout rate is 0; "
                "expected another method"
            )
        super().__init__(network)
        self._dropouts = [seeded(layer) for layer in network.decoder.dropouts]

    def dropouts(self, config: PredictorConfig) -> Sequence[Callable[..., Tensor]]:
        """See `StochasticPasses`."""
        return self._dropouts


@dataclass(frozen=True)
class SeededDropout:
    """Dropout at a fixed rate, of the units that the streams choose."""

    rate: float

    def noise(self, streams: Streams, shape: Sequence[int]) -> Tensor:
        """Return (M, h, w, C): 1 where a unit is kept, 0 where it is dropped.

        Args:
            streams: one for each of the M samples. Each dropout of a network draws on from them.
            shape: (C, h, w) of the maps. The noise is in channels-last order, as the network's
                maps are in memory.
        """
        return _stacked(streams, shape, self._drawn, self._fill)

    def _drawn(self, bits: np.random.Philox, count: int) -> NDArray[np.uint8]:
        return keep_mask(bits, count, self.rate).view(np.uint8)

    def _fill(self, maps: Tensor, generator: torch.Generator) -> None:
        maps.bernoulli_(1.0 - self.rate, generator=generator)

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


def seeded(layer: nn.Module) -> SeededDropout | SeededGaussianDropout:
    """Return the function of (x, streams) that replaces a dropout layer, at its present rate."""
    if isinstance(layer, VariationalDropout):
        return SeededGaussianDropout(layer.alpha.item())
    if isinstance(layer, ConcreteDropout):
        return SeededDropout(layer.rate.item())
    return SeededDropout(cast(nn.Dropout, layer).p)


def streams_of(
    seed: int, stamp_ns: int, samples: Sequence[int], device: torch.device
) -> list[Stream]:
    """Return the random stream of each sample of one frame, for the device it is used on.

    Noise that a GPU needs is drawn there: from the CPU it would be copied, tens of megabytes a
    frame. So the same seed gives the same noise on the same type of device, and other noise on
    another.
    """
    if device.type == "cpu":
        return [random_stream(seed, stamp_ns, sample) for sample in samples]
    return [device_stream(seed, stamp_ns, sample, device) for sample in samples]


def device_stream(seed: int, stamp_ns: int, sample: int, device: torch.device) -> torch.Generator:
    """Return the generator of one sample of one frame on a GPU."""
    entropy = [seed % KEY_MODULUS, stamp_ns % KEY_MODULUS, sample]
    state = np.random.SeedSequence(entropy).generate_state(1, np.uint64)
    return torch.Generator(device).manual_seed(int(state[0]) % SEED_MODULUS)


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


def normal_maps(streams: Streams, shape: Sequence[int]) -> Tensor:
    """Return (M, h, w, C) float32 samples of N(0, 1), for M streams and maps of (C, h, w)."""
    return _stacked(streams, shape, normal_noise, lambda maps, bits: maps.normal_(generator=bits))


def _stacked(
    streams: Streams,
    shape: Sequence[int],
    draw: Callable[[np.random.Philox, int], NDArray],
    fill: Callable[[Tensor, torch.Generator], object],
) -> Tensor:
    """Return (M, h, w, C) noise of maps of shape (C, h, w), drawn where the streams are."""
    channels, height, width = shape
    first = streams[0]
    if isinstance(first, torch.Generator):
        noise = torch.empty((len(streams), height, width, channels), device=first.device)
        for maps, stream in zip(noise, streams, strict=True):
            fill(maps, cast(torch.Generator, stream))
        return noise
    count = channels * height * width
    drawn = [draw(cast(np.random.Philox, stream), count) for stream in streams]
    return torch.from_numpy(np.stack(drawn)).view(len(streams), height, width, channels)
