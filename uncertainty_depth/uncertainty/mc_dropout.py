# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Passes with noise in the network: everything before its first dropout is computed once.

`mc_dropout` (Gal and Ghahramani 2016): the dropout that the network was trained with.
`mirrored_dropout`: the same, while every second pass sees the mirror image. A network treats an
image and its mirror image differently although they are equally likely, so averaging both lowers
the error, and their difference adds to sigma ("Post" of Poggi et al. 2020, section 3.2).
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

    def views(self, numbers: Sequence[int]) -> list[tuple[bool, Sequence[int]]]:
        """Return whether a view is the mirror image, and the numbers of its samples."""
        return [(False, numbers)]

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
        all_numbers = range(config.samples)
        numbers = all_numbers if samples is None else samples.numbers(config.samples)
        moments = [Moments() for _ in stamps_ns]
        for is_mirrored, of_view in self.views(numbers):
            trunk = network.trunk(images.flip(-1) if is_mirrored else images)
            for index, stamp_ns in enumerate(stamps_ns):
                of_frame = frame_of(trunk, index)
                for start in range(0, len(of_view), AT_ONCE):
                    part = of_view[start : start + AT_ONCE]
                    streams = self.streams(config, stamp_ns, part, images.device)
                    output = network.branches(of_frame, dropouts, streams, images.shape[-2:])
                    if is_mirrored:
                        output = output.mirrored()
                    variance = network.variance(output)
                    for sample in range(len(part)):
                        one = slice(sample, sample + 1)
                        moments[index].add(
                            output.depth_m[one], None if variance is None else variance[one]
                        )
        return [of_frame.estimates()[0] for of_frame in moments]


class McDropout(StochasticPasses):
    """Passes with the network's own dropout on.

    Raises:
        ModelError: the network has no dropout.
    """

    def __init__(self, network: DepthNetwork) -> None:
        if network.config.dropout == 0.0:
            raise ModelError(
                "the method needs a network with dropout, but this network's dropout rate is 0; "
                "expected another method"
            )
        super().__init__(network)
        self._dropouts = [seeded(layer) for layer in network.decoder.dropouts]

    def dropouts(self, config: PredictorConfig) -> Sequence[Callable[..., Tensor]]:
        """See `StochasticPasses`."""
        return self._dropouts


class MirroredDropout(McDropout):
    """`McDropout`, with the mirror image in every second pass, from the second on.

    The image itself comes last, so that the encoder's latest features belong to it.
    """

    def views(self, numbers: Sequence[int]) -> list[tuple[bool, Sequence[int]]]:
        """See `StochasticPasses`."""
        views = [
            (is_mirrored, [number for number in numbers if number % 2 == is_mirrored])
            for is_mirrored in (True, False)
        ]
        return [view for view in views if view[1]]


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
