# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Passes with noise in the network: everything before its first dropout is computed once.

`mc_dropout` (Gal and Ghahramani 2016): the dropout that the network was trained with.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.errors import ModelError
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.records import SampleRange
from uncertainty_depth.uncertainty.estimator import (
    Estimate,
    Estimator,
    Moments,
)
from uncertainty_depth.uncertainty.noise import Streams, frame_streams

AT_ONCE = 8
"""Samples computed in one batch: more take more memory, and change nothing."""


class StochasticPasses(Estimator):
    """M stochastic passes; everything before the first dropout is computed once."""

    streams = staticmethod(frame_streams)
    """Gives the noise of some of a frame's samples."""

    @abstractmethod
    def dropouts(self, config: PredictorConfig) -> Sequence[Callable[..., Tensor]]:
        """Return the functions (of maps and streams) that replace the network's dropout layers."""

    def passes(self, config: PredictorConfig) -> int:
        """See `Estimator`."""
        return config.samples

    @torch.inference_mode()
    def estimate_batch(
        self,
        images: Tensor,
        stamps_ns: Sequence[int],
        config: PredictorConfig,
        samples: SampleRange | None = None,
    ) -> list[Estimate]:
        """See `Estimator`; noise does not depend on `AT_ONCE`, see `frame_streams`."""
        network = self.networks[0]
        dropouts = self.dropouts(config)
        trunk = network.trunk(images)
        all_numbers = range(config.samples)
        numbers = all_numbers if samples is None else samples.numbers(config.samples)
        estimates = []
        for index, stamp_ns in enumerate(stamps_ns):
            moments = Moments()
            of_frame = frame_of(trunk, index)
            for start in range(0, len(numbers), AT_ONCE):
                part = numbers[start : start + AT_ONCE]
                streams = self.streams(config, stamp_ns, part, images.device)
                output = network.branches(of_frame, dropouts, streams, images.shape[-2:])
                variance = network.variance(output)
                for sample in range(len(part)):
                    one = slice(sample, sample + 1)
                    moments.add(output.depth_m[one], None if variance is None else variance[one])
            estimates += moments.estimates()
        return estimates


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
    """Dropout at a fixed rate; the streams choose the units."""

    rate: float

    def noise(self, streams: Streams, shape: Sequence[int]) -> Tensor:
        """Return (M, h, w, C) for (C, h, w) maps: 1 for kept units, else 0."""
        return streams.keep_masks(shape, self.rate)

    def __call__(self, x: Tensor, streams: Streams) -> Tensor:
        """Return (M, C, h, w): (1 or M, C, h, w) maps with dropped units, a sample per stream."""
        keep = streams.keep_masks(x.shape[1:], self.rate)
        return (x * (1.0 / (1.0 - self.rate))) * keep.permute(0, 3, 1, 2).to(x.dtype)


def seeded(layer: nn.Module) -> SeededDropout:
    """Return the function of (x, streams) that replaces a dropout layer, at its rate."""
    return SeededDropout(cast(nn.Dropout, layer).p)


def frame_of(trunk: Any, index: int) -> Any:
    """Return one frame of a network's batch output: maps, or tuples and lists of maps.

    Values that are not arrays, such as a grid's size, apply to every frame.
    """
    if isinstance(trunk, (Tensor, np.ndarray)):
        return trunk[index : index + 1]
    if not isinstance(trunk, (tuple, list)):
        return trunk
    parts = [frame_of(part, index) for part in trunk]
    return type(trunk)(*parts) if hasattr(trunk, "_fields") else type(trunk)(parts)
