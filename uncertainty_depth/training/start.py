"""Where training starts from: the best constant depth and error, instead of the middle of the network's range.

A likelihood is steep where the predicted scale is far too small, and Adam remembers those first, huge gradients for thousands of steps, in which it
hardly moves.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from uncertainty_depth.network.hourglass import RELATIVE_SCALE, Hourglass
from uncertainty_depth.training.frames import TrainingFrames

FRAMES = 256
SMALL = 0.1


def start_from_constant(network: Hourglass, depth_m: float, relative_error: float) -> None:
    """Set the last layer so that the network predicts about this depth, and this relative error of it, everywhere."""
    targets = [raw_value(depth_m, *network.config.depth_range), raw_value(relative_error, *RELATIVE_SCALE)]
    final = network.decoder.final
    with torch.no_grad():
        final.weight.mul_(SMALL)
        final.bias.copy_(torch.tensor(targets[: len(final.bias)]))


def constant_guess(frames: TrainingFrames) -> tuple[float, float]:
    """Median depth of the frames, metres, and the median of its error as a share of it; of some frames where there are many."""
    depths = frames.depths_m[:: math.ceil(len(frames) / FRAMES)]
    known = np.concatenate([depth[~np.isnan(depth)] for depth in depths]).astype(np.float32)
    median = float(np.median(known))
    return median, float(np.median(np.abs(known - median))) / median


def constant_error_guess(frames: TrainingFrames) -> tuple[float, float]:
    """Median error of that median depth, metres: where a network that predicts errors starts; it has no error of its own."""
    depth_m, relative_error = constant_guess(frames)
    return depth_m * relative_error, 1.0


def raw_value(value: float, low: float, high: float) -> float:
    """The network's raw output for a value, the inverse of `geometric`; at most 0.95 of the way to either end of the range."""
    share = math.log(max(value, low) / low) / math.log(high / low)
    share = min(max(share, 0.05), 0.95)
    return math.log(share / (1 - share))
