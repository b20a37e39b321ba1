# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Networks that take sparse depth beside the image, which Gustafsson et al. 2020 compare.

    python -m experiments.sparse_networks TRAINING_SOURCE TEST_SOURCE --output DIR

trains one that is given 60 pixels, and scores it on 60 frames (`experiments/docs/completion.md`).

`ResidualDecoder`: a small network that predicts depth itself is less accurate than interpolation
between a few hundred known pixels, because it must learn to repeat them. Here it starts from the
interpolated depth.

`SparseEncoder`, after Ma et al. 2019, "Self-supervised sparse-to-dense", section III: image and
sparse depth go through their own convolutions, whose channels are joined before the ResNet's first
stage. In the paper each has half the channels. Here each has as many as the ResNet's first
convolution, so that a pretrained one keeps its weights, and a 1x1 convolution joins them.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from experiments import deep_dropout
from experiments.deep_dropout import AroundBackbone, DeepHourglass
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.config.training import NetworkConfig, TrainingConfig
from uncertainty_depth.core.geometry.resampling import resample_depth
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.depth.networks.decoder import Decoder, Dropout, DropoutDecoder
from uncertainty_depth.depth.networks.encoder import (
    Encoder,
    TransformersModel,
    resize_maps,
    upload,
)
from uncertainty_depth.depth.networks.hourglass import NETWORKS
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.depth.training.run import train
from uncertainty_depth.frames.protocol import MapSource, Source, Subsampled
from uncertainty_depth.report.evaluation import evaluate
from uncertainty_depth.stream.held_out import random_pixels
from uncertainty_depth.stream.opening import open_source
from uncertainty_depth.stream.stream import predicted


def log_position(depth_m: Tensor, low: float, high: float) -> Tensor:
    """Return the depth's position in the range's logarithm, in [0, 1]; 0 for unknown."""
    is_known = depth_m > 0
    metres = torch.where(is_known, depth_m, low).clamp(low, high)
    return torch.log(metres / low) / math.log(high / low) * is_known


def fill(sparse_m: Tensor) -> Tensor:
    """Return dense (B, 1, h, w) metres from sparse ones, 0 for unknown; known pixels stay.

    Each pyramid level halves the size and averages known values ("pull"). From the coarsest level
    down, a level's unknown values are interpolated from the next coarser one ("push", Gortler et
    al. 1996, "The lumigraph"). An image without known depth stays 0.
    """
    valid = (sparse_m > 0).to(sparse_m.dtype)
    levels = [(sparse_m, valid)]
    while max(levels[-1][0].shape[-2:]) > 1:
        levels.append(_halved(*levels[-1]))
    dense, _ = levels.pop()
    for values, weight in reversed(levels):
        dense = torch.where(weight > 0, values, resize_maps(dense, values.shape[-2:]))
    return dense


def _halved(values: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    """Return each 2x2 cell's mean over known values, 0 for none, and which cells have any."""
    products = torch.cat([values * valid, valid], dim=1)
    height, width = values.shape[-2:]
    even = functional.pad(products, (0, width % 2, 0, height % 2))  # OpenVINO crashes on ceil_mode
    sums = functional.avg_pool2d(even, 2)
    total, weight = sums.split(1, dim=1)
    mean = torch.where(weight > 0, total / weight.clamp_min(1e-6), 0.0)
    return mean, (weight > 0).to(values.dtype)


FRACTIONS = (1e-3, 1 - 1e-3)
"""Part of the depth range in which interpolated depth is kept: its raw value is finite."""


class SparseFeatures(NamedTuple):
    """Maps, finest first, and the interpolated depth's raw value, (B, 1, h, w), 0 for none."""

    maps: Any
    start: Tensor


def raw_start(dense_m: Tensor, low: float, high: float) -> Tensor:
    """Return the raw value for (B, 1, h, w) metres: the inverse of `geometric`; 0 for unknown."""
    valid = dense_m > 0
    fraction = torch.log(torch.where(valid, dense_m, low) / low) / math.log(high / low)
    return torch.where(valid, torch.logit(fraction.clamp(*FRACTIONS)), 0.0)


class ResidualDecoder(DropoutDecoder):
    """Adds the interpolated depth to a decoder's first output, at the image's size."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    @property
    def dropouts(self) -> nn.ModuleList:  # type: ignore[override]
        """See `DropoutDecoder`."""
        return self.decoder.dropouts

    @property
    def final(self) -> nn.Conv2d:
        """The last convolution."""
        return self.decoder.final

    def trunk(self, features: SparseFeatures) -> SparseFeatures:
        """See `DropoutDecoder`."""
        return SparseFeatures(self.decoder.trunk(features.maps), features.start)

    def branches(self, trunk: SparseFeatures, dropouts: Sequence[Dropout]) -> Tensor:
        """See `DropoutDecoder`."""
        start = trunk.start
        raw = resize_maps(self.decoder.branches(trunk.maps, dropouts).float(), start.shape[-2:])
        return torch.cat([raw[:, :1] + start, raw[:, 1:]], dim=1)


SLOPE = 0.2  # of the leaky ReLU, as in Ma et al.'s code
SPARSE_CHANNELS = 2


class JoinedStem(nn.Module):
    """The first convolutions, for image and for sparse depth, joined by a 1x1 convolution."""

    def __init__(self, image: nn.Module, channels: int) -> None:
        super().__init__()
        self.image = image
        self.sparse = nn.Sequential(
            nn.Conv2d(SPARSE_CHANNELS, channels, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(channels),
            nn.LeakyReLU(SLOPE),
        )
        self.join = nn.Sequential(
            nn.Conv2d(2 * channels, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()
        )

    def forward(self, pixels: Tensor) -> Tensor:
        """Return (B, channels, h/2, w/2) from (B, 3 + 2, h, w): image, depth, mask."""
        features = (self.image(pixels[:, :3]), self.sparse(pixels[:, 3:]))
        return self.join(torch.cat(features, dim=1))


class SparseEncoder(Encoder):
    """A ResNet behind a `JoinedStem`; it takes (B, 4, h, w): RGB in [0, 1], and metres.

    The fourth channel is 0 for unknown depth. It may be missing, which equals 0 everywhere.

    The network gets interpolated depth, scaled to [0, 1] in its logarithm from `depth_range`,
    metres, and which pixels are known.
    """

    def __init__(self, backbone: TransformersModel, depth_range: tuple[float, ...]) -> None:
        super().__init__(backbone)
        self.depth_range = depth_range
        embedder: Any = backbone.embedder
        embedder.embedder = JoinedStem(embedder.embedder, backbone.config.embedding_size)
        embedder.num_channels = 3 + SPARSE_CHANNELS  # transformers checks its input for this

    def forward(self, image: Tensor) -> SparseFeatures:
        """Return the features of (B, 3 or 4, h, w) float32 images, for a `ResidualDecoder`."""
        padded = functional.pad(image, (0, 0, 0, 0, 0, 4 - image.shape[1]))
        sparse_m = padded[:, 3:]
        normalised = (image[:, :3] - self.mean) / self.std
        depth_m = fill(sparse_m)
        valid = (sparse_m > 0).to(depth_m.dtype)
        position = log_position(depth_m, *self.depth_range)
        pixels = torch.cat([normalised, position, valid], dim=1)
        maps = self.features(pixels.to(next(self.backbone.parameters()).dtype))
        return SparseFeatures(maps, raw_start(depth_m, *self.depth_range))


EMPTY_FRACTION = 0.1
"""Fraction of the frames without any sparse depth: a sensor can fail."""
MAX_FRACTION = 0.5
"""Largest fraction of known pixels that is given: the loss needs the others."""


class SparseHourglass(AroundBackbone):
    """An hourglass that starts from interpolated depth, of as many pixels as its name says."""

    def make_encoder(self, backbone: TransformersModel) -> SparseEncoder:
        """See `Hourglass`."""
        return SparseEncoder(backbone, self.config.depth_range)

    def make_decoder(self) -> Any:
        """See `Hourglass`."""
        return ResidualDecoder(super().make_decoder())

    @torch.no_grad()
    def start_from_constant(self, depth_m: float, relative_error: float) -> None:
        """See `DepthNetwork`: it begins with the interpolated depth instead."""
        super().start_from_constant(depth_m, relative_error)
        _, bias = self.decoder.final.parameters()
        bias[0] = 0.0

    def training_input(
        self, images: Tensor, depth_m: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """See `DepthNetwork`: images with sparse depth as fourth channel, and the remaining depth.

        The input depth is not a target: the network would learn to repeat it with zero sigma,
        instead of predicting the pixels between.

        About as many pixels are given as the name says, at most half of the known ones. One frame
        in ten gets nothing. The result is (B, 4, h, w), 0 in pixels without given depth, and
        (B, 1, h, w), NaN in pixels with it.
        """
        pixels = int(self.config.backbone.rpartition(":")[2])
        valid = torch.isfinite(depth_m)
        device = depth_m.device
        chance = upload(torch.rand(depth_m.shape, generator=generator), device)
        torch.rand(len(depth_m), generator=generator)  # the documented trainings drew it too
        fraction = (pixels / valid.sum(dim=(1, 2, 3)).clamp_min(1)).clamp_max(MAX_FRACTION)
        is_empty = upload(torch.rand(len(depth_m), generator=generator) < EMPTY_FRACTION, device)
        fraction = torch.where(is_empty, 0.0, fraction)
        given = valid & (chance < fraction[:, None, None, None])
        inputs = torch.cat([images, torch.where(given, depth_m, 0.0)], dim=1)
        return inputs, torch.where(given, torch.nan, depth_m)


class DeepSparseHourglass(SparseHourglass, DeepHourglass):
    """The same with dropout in both halves."""


def given_pixels(backbone: str, pixels: int) -> str:
    """Return the name of a network around a ResNet that is given so many pixels of known depth.

    It stands in place of a backbone's; `Predictor` can read such a model after this call.
    """
    name = f"{backbone}+random:{pixels}"
    is_deep = backbone == deep_dropout.NAME
    NETWORKS[name] = DeepSparseHourglass if is_deep else SparseHourglass
    return name


class SparsePredictor(Predictor):
    """Gives the network a frame's sparse depth as a fourth channel, 0 for unknown."""

    def network_input(self, frame: Frame, factor: np.float32) -> Tensor:
        """See `Predictor`."""
        pixels = super().network_input(replace(frame, sparse_m=None), factor)
        if frame.sparse_m is None:
            return pixels
        resampled = resample_depth(frame.sparse_m, *self.model.network.input_size)
        sparse = torch.from_numpy(np.nan_to_num(resampled)[None, None]).to(self.device)
        return torch.cat([pixels, sparse / float(factor)], dim=1)


def with_known(source: Source, choose: Callable[[Frame], NDArray[np.bool_]]) -> Source:
    """Return the source with the depth of chosen pixels, (H, W), known and the rest to be scored.

    Of a chosen pixel without ground truth nothing is known. A frame without a rest is skipped.
    """

    def split(record: Frame | Skipped) -> Frame | Skipped:
        if isinstance(record, Skipped):
            return record
        depth_m = record.need_ground_truth()
        chosen = choose(record)
        truth_m = np.where(chosen, np.float32(np.nan), depth_m)
        if np.isnan(truth_m).all():
            return Skipped(record.stamp_ns, "no_depth_held_out", f"{record.name}: all is known")
        sparse_m = np.where(chosen, depth_m, np.float32(np.nan))
        return replace(record, sparse_m=sparse_m, ground_truth_m=truth_m)

    return MapSource(source, split)


def with_random(source: Source, pixels: int) -> Source:
    """Return the source with so many pixels of its ground truth known, the same in every run."""
    return with_known(
        source, lambda frame: random_pixels(frame.need_ground_truth(), frame.stamp_ns, pixels)
    )


PIXELS = 60
FRAMES = 60
NETWORK = NetworkConfig(
    backbone=given_pixels("tiny", PIXELS),
    head="laplace",
    input_size=(160, 128),
    depth_range=(0.2, 80.0),
)
TRAINING = TrainingConfig(
    method="mc_dropout",
    epochs=12,
    batch_size=8,
    learning_rate=1e-3,
    final_learning_rate=0.05,
    max_frames=500,
)


def main() -> None:
    """Train the network that the page compares with a corrected depth, and score it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("training_source")
    parser.add_argument("test_source")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    source = open_source(options.training_source, SourceConfig())
    model = train(source, options.output / "model", NETWORK, TRAINING, resume=True)
    tests = Subsampled(open_source(options.test_source, SourceConfig()), FRAMES)
    predictor = SparsePredictor(model, samples=2)
    evaluation = evaluate(predicted(with_random(tests, PIXELS), predictor))
    evaluation.write(options.output / "report", model.name, NETWORK.head)
    print(evaluation.verdict(NETWORK.head))


if __name__ == "__main__":
    main()
