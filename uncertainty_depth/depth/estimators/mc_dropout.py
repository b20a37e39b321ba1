# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Passes with noise in the network: everything before its first dropout is computed once.

`mc_dropout` (Gal and Ghahramani 2016): the dropout that the network was trained with.
`mirrored_dropout`: the same, while every second pass sees the mirror image. A network treats an
image and its mirror image differently although they are equally likely, so averaging both lowers
the error, and their difference adds to sigma ("Post" of Poggi et al. 2020, section 3.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from uncertainty_depth.core.config import PredictorConfig
from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.core.records import SampleRange
from uncertainty_depth.depth.estimators.estimator import Estimate, Estimator, Moments, Samples
from uncertainty_depth.depth.estimators.noise import Draw, Noise, StratifiedNoise
from uncertainty_depth.depth.networks.depth_network import DepthNetwork
from uncertainty_depth.depth.networks.encoder import upload


class McDropout(Estimator):
    """Passes with the network's own dropout on.

    Attributes:
        dropouts: functions of maps and noise that replace the network's dropout layers.

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
        self.dropouts: Sequence[Any] = [seeded(layer) for layer in network.decoder.dropouts]
        self._noise: dict[Any, Noise] = {}

    def passes(self, config: PredictorConfig) -> int:
        """See `Estimator`."""
        return config.samples

    def views(self, numbers: Sequence[int]) -> list[tuple[bool, Sequence[int]]]:
        """Return whether to mirror the image, and the samples that see it so; it comes last."""
        return [(False, numbers)]

    def make_noise(self, shapes: Sequence[tuple[int, ...]], samples: int) -> Noise:
        """Return the noise of M samples of maps with these (C, h, w)."""
        draws = [
            Draw(shape, dropout.rate) for shape, dropout in zip(shapes, self.dropouts, strict=True)
        ]
        return StratifiedNoise(draws, samples, self.device)

    def compute(
        self,
        image: Tensor,
        stamp_ns: int,
        config: PredictorConfig,
        samples: SampleRange | None,
    ) -> Estimate:
        """See `Estimator`; noise does not depend on `at_once`, see `StratifiedNoise`."""
        size = image.shape[-2:]
        moments = Moments(in_order=not self.few_launches)
        all_numbers = range(config.samples) if samples is None else samples.numbers(config.samples)
        views = self.views(all_numbers)
        seen = [image.flip(-1) if is_mirrored else image for is_mirrored, _ in views]
        drawn = None
        for (is_mirrored, numbers), shared in zip(views, self._trunks(seen), strict=True):
            features, trunk = shared
            noise = self._noise_of(trunk, size, config.samples)
            if drawn is None:
                drawn = noise.draw(config.seed, stamp_ns)  # while a GPU encodes
            for start in range(0, len(numbers), self.at_once):
                some: Any = numbers[start : start + self.at_once]
                if self.few_launches:
                    some = upload(torch.tensor(some, dtype=torch.int32), image.device)
                moments.add(*self.run(self._samples, trunk, noise, drawn, some, size, is_mirrored))
        return moments.estimate(features)

    def _trunks(self, images: Sequence[Tensor]) -> Iterator[Any]:
        """Yield features and trunk of each image; on a GPU they are computed together."""
        trunk = self.networks[0].trunk
        if not self.few_launches or len(images) == 1:
            yield from (self.run(trunk, image) for image in images)
            return
        together = self.run(trunk, torch.cat(list(images)))
        for index in range(len(images)):
            yield pytree.tree_map_only(Tensor, itemgetter(slice(index, index + 1)), together)

    def _noise_of(self, trunk: Any, size: Sequence[int], samples: int) -> Noise:
        """Return the noise at this size, found by one pass, once."""
        key = (tuple(size), samples)
        if key not in self._noise:
            shapes = self.networks[0].noise_shapes(trunk)
            self._noise[key] = self.make_noise(shapes, samples)
        return self._noise[key]

    def _samples(
        self,
        trunk: Any,
        noise: Noise,
        drawn: Any,
        numbers: Any,
        size: Sequence[int],
        is_mirrored: bool,
    ) -> Samples:
        network = self.networks[0]
        output = network.branches(trunk, self.dropouts, noise.of(drawn, numbers), size)
        return self.samples_of(output.mirrored() if is_mirrored else output)


class MirroredDropout(McDropout):
    """`McDropout`, with the mirror image in every second pass, from the second on."""

    def views(self, numbers: Sequence[int]) -> list[tuple[bool, Sequence[int]]]:
        """See `McDropout`."""
        views = [
            (is_mirrored, [number for number in numbers if number % 2 == is_mirrored])
            for is_mirrored in (True, False)
        ]
        return [view for view in views if view[1]]


@dataclass(frozen=True)
class SeededDropout:
    """Dropout at a fixed rate, whose units the noise chooses."""

    rate: float

    def __call__(self, x: Tensor, noise: Tensor) -> Tensor:
        """Return (M, C, h, w): (1 or M, C, h, w) maps without the units that are 0 in the noise.

        Args:
            x: the maps.
            noise: (M, h, w, C), 1 for kept units, else 0.
        """
        return (x * (1.0 / (1.0 - self.rate))) * noise.permute(0, 3, 1, 2)


def seeded(layer: nn.Module) -> SeededDropout:
    """Return the function of (x, noise) that replaces a dropout layer, at its rate."""
    return SeededDropout(cast(nn.Dropout, layer).p)
