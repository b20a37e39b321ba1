# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Sigma learned from a depth image alone: its variation, its holes, and the pixel's place.

Stereo cameras and networks err at edges, isolated pixels, the surroundings of holes, and the
image's borders. A small network on the depth image's features predicts the expected error of log
depth. A robot's LiDAR teaches it. Whatever made the depth stays a black box.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import cv2
import numpy as np

from uncertainty_depth.core.array_types import Floats32
from uncertainty_depth.core.config.scoring import CalibrationConfig
from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.core.process import deferred_interrupt
from uncertainty_depth.core.records import Frame
from uncertainty_depth.frames.protocol import Source
from uncertainty_depth.metrics.depth import scorable
from uncertainty_depth.sigma.calibration.sample import MAX_PIXELS, collect

WINDOWS = (1 / 64, 1 / 21, 1 / 7)
"""Square windows' widths, as fractions of the image's."""
FEATURES = 4 + 3 * len(WINDOWS)
HIDDEN = 32
LAYERS = (FEATURES, HIDDEN, HIDDEN, 1)
LOG_RANGE = (-8.0, 2.0)
"""Range of the expected error's logarithm, itself one of the log depth."""
MIN_SPREAD = 0.003  # of the log depth in a window, below the noise of any camera
EPOCHS = 12
BATCH = 512
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 0.1


@dataclass(frozen=True, eq=False)
class DepthHead:
    """A network with two hidden layers on each pixel's normalised features, in NumPy."""

    mean: Floats32
    deviation: Floats32
    weights: tuple[Floats32, ...]
    biases: tuple[Floats32, ...]

    def __call__(self, depth_m: Floats32) -> Floats32:
        """Return a depth image's sigma, (H, W) metres; NaN in pixels without positive depth.

        The log depth's error is assumed to be Laplace-distributed, with sigma^2 = 2 b^2 d^2.
        """
        values = (features(depth_m).reshape(-1, FEATURES) - self.mean) / self.deviation
        for weights, biases in zip(self.weights[:-1], self.biases[:-1], strict=True):
            values = np.maximum(values @ weights + biases, 0)
        log_error = (values @ self.weights[-1] + self.biases[-1]).reshape(depth_m.shape)
        positive = np.where(depth_m > 0, depth_m, np.float32(np.nan))
        return np.float32(np.sqrt(2)) * positive * np.exp(np.clip(log_error, *LOG_RANGE))

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values for JSON; `from_mapping` is the inverse."""
        return {
            "mean": self.mean.tolist(),
            "deviation": self.deviation.tolist(),
            "weights": [each.tolist() for each in self.weights],
            "biases": [each.tolist() for each in self.biases],
        }

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> DepthHead:
        """Read a head from a map's file; raise `ModelError` if the values make none."""
        shapes: dict[str, list[tuple[int, ...]]] = {
            "mean": [(FEATURES,)],
            "deviation": [(FEATURES,)],
            "weights": [*pairwise(LAYERS)],
            "biases": [(size,) for size in LAYERS[1:]],
        }
        arrays: dict[str, list[Floats32]] = {}
        for name, expected in shapes.items():
            parts = values[name] if name in ("weights", "biases") else [values[name]]
            arrays[name] = [np.asarray(part, np.float32) for part in parts]
            found = [part.shape for part in arrays[name]]
            if found != expected or not all(np.isfinite(part).all() for part in arrays[name]):
                raise ModelError(
                    f"head has {name} of the shapes {found}; expected finite numbers of {expected}"
                )
        if not (arrays["deviation"][0] > 0).all():
            raise ModelError("head has a deviation of 0 or less; expected positive numbers")
        return cls(
            arrays["mean"][0],
            arrays["deviation"][0],
            tuple(arrays["weights"]),
            tuple(arrays["biases"]),
        )


def features(depth_m: Floats32) -> Floats32:
    """Return each pixel's features, (H, W, F) float32, without NaN.

    Log depth, its difference to the image's median, row and column; and in each window the spread
    of the log depth, the difference to its mean, and the share of pixels that have a depth.
    """
    height, width = depth_m.shape
    is_known = np.isfinite(depth_m) & (depth_m > 0)
    known = is_known.astype(np.float32)
    log_depth = np.log(np.where(is_known, depth_m, np.float32(1)), dtype=np.float32)
    median = np.float32(np.median(log_depth[is_known])) if is_known.any() else np.float32(0)
    log_depth = np.where(is_known, log_depth, median)
    centred = log_depth - median  # keeps the squares below small
    rows = np.linspace(-1, 1, height, dtype=np.float32)[:, None]
    columns = np.linspace(-1, 1, width, dtype=np.float32)[None]
    maps = [log_depth, centred, *np.broadcast_arrays(rows, columns)]
    for window in WINDOWS:
        size = max(2 * round(window * width / 2) + 1, 3)
        share = _means(known, size)
        number = np.maximum(share, np.float32(1e-6))
        mean = _means(centred * known, size) / number
        variance = _means(centred**2 * known, size) / number - mean**2
        maps += [np.log(np.sqrt(np.maximum(variance, 0)) + MIN_SPREAD), centred - mean, share]
    return np.stack(maps, axis=-1).astype(np.float32, copy=False)


def _means(values: Floats32, size: int) -> Floats32:
    return np.asarray(cv2.blur(values, (size, size), borderType=cv2.BORDER_REFLECT), np.float32)


def learn(sources: Sequence[Source], config: CalibrationConfig) -> DepthHead:
    """Learn a head from the ground truth in the sources' frames, within the config's depth range.

    Minimises a Laplace distribution's negative log-likelihood for the log depth's error, whose
    gradient grows with the error and not with its square: a few mismatched pixels do not decide.
    """
    samples = []
    with deferred_interrupt() as interrupt:
        for source in sources:
            try:
                samples.append(collect(source, config, values_of=_inputs_and_error))
            finally:
                if interrupt.requested:
                    raise KeyboardInterrupt
    frames = [frame for sample in samples for frame in sample.frames]
    each = MAX_PIXELS // len(frames)
    values = np.concatenate([frame[:, :each] for frame in frames], axis=1)
    return _fit(np.ascontiguousarray(values[:-1].T), values[-1])


def _inputs_and_error(frame: Frame, config: CalibrationConfig) -> Floats32:
    """Return features and log error for sampled pixels with depth and truth, (F+1, N)."""
    depth_m = frame.need_depth().depth_m
    truth_m = frame.need_ground_truth()
    valid = scorable(truth_m, config.min_depth, config.max_depth) & (depth_m > 0)
    error = np.abs(np.log(depth_m[valid] / truth_m[valid]))
    return np.vstack((features(depth_m)[valid].T, error))


def _fit(inputs: Floats32, errors: Floats32) -> DepthHead:
    import torch
    from torch import nn

    mean = inputs.mean(axis=0)
    deviation = inputs.std(axis=0) + np.float32(1e-6)
    normal = torch.from_numpy((inputs - mean) / deviation)
    error = torch.from_numpy(errors.astype(np.float32))
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = [nn.Linear(*sizes) for sizes in pairwise(LAYERS)]
    nn.init.constant_(layers[-1].bias, float(np.log(errors.mean() + 1e-6)))
    network = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
    optimizer = torch.optim.AdamW(network.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    steps = EPOCHS * -(-len(normal) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        chosen = torch.randint(len(normal), (BATCH,), generator=generator)
        log_error = network(normal[chosen])[:, 0].clamp(*LOG_RANGE)
        loss = (log_error + error[chosen] * torch.exp(-log_error)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return DepthHead(
        mean,
        deviation,
        tuple(layer.weight.detach().numpy().T.copy() for layer in layers),
        tuple(layer.bias.detach().numpy().copy() for layer in layers),
    )
