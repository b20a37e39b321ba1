# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Test-time augmentation (`tta`): the spread of one network's depth over views of one image.

The first two views, the image and its mirror image, are "Post" in Poggi et al., CVPR 2020, "On the
uncertainty of self-supervised monocular depth estimation". The others also change light or size
(infer-transformation in Mi et al., AAAI 2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.depth.estimators.estimator import (
    Estimate,
    Estimator,
    Moments,
)
from uncertainty_depth.depth.networks.depth_network import DepthNetwork, NetworkOutput
from uncertainty_depth.depth.networks.encoder import resize_maps

COLORS = 3
"""Channels of an image; a fourth is sparse depth."""


class View(NamedTuple):
    """How an image is changed.

    Attributes:
        flip: mirrored left to right.
        gain: factor of the intensities.
        gamma: exponent of the intensities.
        scale: factor of height and width.
    """

    flip: bool = False
    gain: float = 1.0
    gamma: float = 1.0
    scale: float = 1.0


VIEWS = (
    View(),
    View(flip=True),
    View(gain=0.8),
    View(flip=True, gain=1.25),
    View(scale=0.8),
    View(flip=True, scale=1.25),
    View(gamma=0.8),
    View(flip=True, gamma=1.25),
)
"""Opposite changes are neighbours: what one does to the depth everywhere, the other undoes."""


class AugmentedViews(Estimator):
    """One pass for each of the first `samples` views, with predictions aligned to the image."""

    def passes(self, config: PredictorConfig) -> int:
        """See `Estimator`; at most the number of views."""
        return min(config.samples, len(VIEWS))

    def compute(
        self, image: Tensor, stamp_ns: int, config: PredictorConfig, numbers: Sequence[int]
    ) -> Estimate:
        """See `Estimator`; nothing is random.

        Only the length of a range of samples counts: the views are not exchangeable, and different
        views for each frame would make sigma flicker. Memory is bounded by one pass.
        """
        network = self.networks[0]
        count = min(len(numbers), self.passes(config))
        moments = Moments()
        for view in reversed(VIEWS[:count]):
            moments.add(*self.samples_of(predict_view(network, image, view)))
        return moments.estimate()


def predict_view(network: DepthNetwork, image: Tensor, view: View) -> NetworkOutput:
    """Return a view's maps at the image's pixels.

    Resizing the whole image keeps its field of view and every distance, so metres are not
    rescaled: if the network predicts different metres, sigma should show it. A network with a
    canonical focal length predicts a camera's depth at a fixed focal length in pixels. Resizing by
    `scale` multiplies the focal length by `scale` and divides the canonical depth by it, so the
    prediction is multiplied by `scale`.

    Args:
        network: the network that predicts.
        image: (1, 3 or 4, h, w), see `DepthNetwork.forward`.
        view: the change.
    """
    unit = view.scale if network.config.canonical_focal_length > 0 else 1.0
    output = network(_changed(image, view, unit))
    size = image.shape[-2:]
    depth_m = _aligned(output.depth_m, view, size) * unit
    if output.scale_m is None:
        return NetworkOutput(depth_m, None)
    return NetworkOutput(depth_m, _aligned(output.scale_m, view, size) * unit)


def _changed(image: Tensor, view: View, unit: float) -> Tensor:
    """Return the image as the view shows it; sparse depth in the units of its prediction."""
    colors = (view.gain * image[:, :COLORS] ** view.gamma).clamp(0.0, 1.0)
    size = [round(view.scale * length) for length in image.shape[-2:]]
    changed = resize_maps(colors, size)
    if image.shape[1] > COLORS:  # nearest: 0 means no depth
        sparse = functional.interpolate(image[:, COLORS:] / unit, size, mode="nearest")
        changed = torch.cat([changed, sparse], dim=1)
    return changed.flip(-1) if view.flip else changed


def _aligned(maps: Tensor, view: View, size: torch.Size) -> Tensor:
    """Return a view's maps at the image's pixels."""
    return resize_maps(maps.flip(-1) if view.flip else maps, size)
