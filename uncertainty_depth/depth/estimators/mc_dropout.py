# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Passes with noise in the network: everything before its first dropout is computed once.

`mc_dropout` (Gal and Ghahramani 2016): the dropout that the network was trained with.
`mirrored_dropout`: the same, while every second pass sees the mirror image. A network treats an
image and its mirror image differently although they are equally likely, so averaging both lowers
the error, and their difference adds to sigma ("Post" of Poggi et al. 2020, section 3.2).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from uncertainty_depth.core.config import PredictorConfig
from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.core.records import SampleRange
from uncertainty_depth.depth.estimators.estimator import (
    Estimate,
    Estimator,
    Moments,
    packed,
    unpacked,
)
from uncertainty_depth.depth.estimators.noise import (
    Draw,
    FrameNoise,
    PackedNoise,
    Streams,
    frame_noise,
    keep_table,
    packed_noise,
)
from uncertainty_depth.depth.networks.depth_network import DepthNetwork
from uncertainty_depth.depth.networks.encoder import upload


class View(NamedTuple):
    """The image or its mirror image, and the samples that see it.

    Attributes:
        is_mirrored: left to right.
        numbers: of the samples; on a device (m,) int32.
    """

    is_mirrored: bool
    numbers: Any


class StochasticPasses(Estimator):
    """M stochastic passes; everything before the first dropout is computed once."""

    noise = staticmethod(frame_noise)
    """Gives a frame's noise."""

    @abstractmethod
    def dropouts(self, config: PredictorConfig) -> Sequence[Callable[..., Tensor]]:
        """Return the functions (of maps and streams) that replace the network's dropout layers."""

    def passes(self, config: PredictorConfig) -> int:
        """See `Estimator`."""
        return config.samples

    def views(self, numbers: Sequence[int]) -> list[View]:
        """Return the views of an image that the samples see; the image itself is the last."""
        return [View(False, numbers)]

    def compute(
        self,
        images: Tensor,
        stamps_ns: Sequence[int],
        config: PredictorConfig,
        samples: SampleRange | None,
    ) -> list[Estimate]:
        """See `Estimator`; noise does not depend on `at_once`, see `StratifiedNoise`."""
        network = self.networks[0]
        noise = [self.noise(config, stamp_ns, images.device) for stamp_ns in stamps_ns]
        moments = [Moments() for _ in stamps_ns]
        for view in self.views(numbers_of(config, samples)):
            trunk = network.trunk(images.flip(-1) if view.is_mirrored else images)
            for index in range(len(stamps_ns)):
                of_frame = frame_of(trunk, index)
                self.add_samples(moments[index], of_frame, noise[index], view, config, images)
        return [of_frame.estimates()[0] for of_frame in moments]

    def add_samples(
        self,
        moments: Moments,
        trunk: Any,
        noise: FrameNoise,
        view: View,
        config: PredictorConfig,
        images: Tensor,
    ) -> None:
        """Add the samples of one view of one frame, from its trunk."""
        network = self.networks[0]
        dropouts = self.dropouts(config)
        for start in range(0, len(view.numbers), self.at_once):
            streams = noise.of(view.numbers[start : start + self.at_once])
            output = network.branches(trunk, dropouts, streams, images.shape[-2:])
            if view.is_mirrored:
                output = output.mirrored()
            moments.add(output.depth_m, network.variance(output))


def numbers_of(config: PredictorConfig, samples: SampleRange | None) -> Sequence[int]:
    """Return the numbers of the samples to use; None uses all."""
    return range(config.samples) if samples is None else samples.numbers(config.samples)


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
        self._draws: dict[Sequence[int], list[Draw]] = {}
        self._tables: dict[tuple[int, float], Tensor] = {}

    def dropouts(self, config: PredictorConfig) -> Sequence[Callable[..., Tensor]]:
        """See `StochasticPasses`."""
        return self._dropouts

    def compute(
        self,
        images: Tensor,
        stamps_ns: Sequence[int],
        config: PredictorConfig,
        samples: SampleRange | None,
    ) -> list[Estimate]:
        """See `Estimator`."""
        if not self.few_launches:
            return super().compute(images, stamps_ns, config, samples)
        views = self.views(numbers_of(config, samples))
        seen = [images.flip(-1) if view.is_mirrored else images for view in views]
        graphs = self.graphs
        features = self.networks[0].encode(seen[0] if len(seen) == 1 else torch.cat(seen))
        draws = self._draws_of(features, images)
        numbers = [number for view in views for number in view.numbers]
        # Drawn while the GPU encodes.
        noise = upload(packed_noise(config, stamps_ns, numbers, draws), images.device)
        tables = [self._table(config.samples, draw.rate, images.device) for draw in draws]

        def compute(features: Any, noise: Tensor) -> Tensor:
            trunk = self.networks[0].decoder.trunk(features)
            lengths = [math.prod(draw.shape) for draw in draws]
            parts = noise.split([*(len(view.numbers) for view in views), *lengths * len(images)])
            moments = [Moments(in_order=False) for _ in stamps_ns]
            for number, view in enumerate(views):
                on_device = View(view.is_mirrored, parts[number])
                for index, of_frame in enumerate(moments):
                    start = len(views) + index * len(draws)
                    places = parts[start : start + len(draws)]
                    self.add_samples(
                        of_frame,
                        frame_of(trunk, number * len(images) + index),
                        PackedNoise(places, tables),
                        on_device,
                        config,
                        images,
                    )
            return packed([of_frame.estimates()[0] for of_frame in moments])

        kind = tuple((view.is_mirrored, len(view.numbers)) for view in views)
        name = (kind, config.samples, self.at_once, tuple(images.shape))
        return unpacked(graphs.run(name, compute, features, noise))

    def _draws_of(self, features: Any, images: Tensor) -> list[Draw]:
        """Return what the dropouts draw at this size; found by one pass, once."""
        size = images.shape[-2:]
        if size not in self._draws:
            decoder = self.networks[0].decoder
            shapes = decoder.noise_shapes(frame_of(decoder.trunk(features), 0))
            self._draws[size] = [
                Draw(shape, dropout.rate)
                for shape, dropout in zip(shapes, self._dropouts, strict=True)
            ]
        return self._draws[size]

    def _table(self, samples: int, rate: float, device: torch.device) -> Tensor:
        if (samples, rate) not in self._tables:
            self._tables[samples, rate] = keep_table(samples, rate).to(device)
        return self._tables[samples, rate]


class MirroredDropout(McDropout):
    """`McDropout`, with the mirror image in every second pass, from the second on.

    The image itself comes last, so that the encoder's latest features belong to it.
    """

    def views(self, numbers: Sequence[int]) -> list[View]:
        """See `StochasticPasses`."""
        views = [
            View(is_mirrored, [number for number in numbers if number % 2 == is_mirrored])
            for is_mirrored in (True, False)
        ]
        return [view for view in views if view.numbers]


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
        return (x * (1.0 / (1.0 - self.rate))) * keep.permute(0, 3, 1, 2)


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
