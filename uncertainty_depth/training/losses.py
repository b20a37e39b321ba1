# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Losses over the pixels with ground truth; other pixels get no gradient.

Every loss takes (B, 1, h, w) tensors in metres, NaN in the ground truth where nothing is known,
and returns a scalar: the mean over the supervised pixels of the batch, 0 when there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from uncertainty_depth.config import NetworkConfig, TrainingConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.network.depth_network import RELATIVE_SCALE

Loss = Callable[[Tensor, Tensor | None, Tensor], Tensor]

BERHU_FRACTION = 0.2  # Laina et al. 2016, below eq. 1


def l1(depth_m: Tensor, scale_m: Tensor | None, ground_truth_m: Tensor) -> Tensor:
    """Return the mean of |d - g|, metres."""
    valid, depth, truth = _supervised(ground_truth_m, depth_m)
    return _mean((depth - truth).abs(), valid)


def log_l1(depth_m: Tensor, scale_m: Tensor | None, ground_truth_m: Tensor) -> Tensor:
    """Return the mean of |ln d - ln g|: a relative error costs the same near and far."""
    valid, depth, truth = _supervised(ground_truth_m, depth_m)
    return _mean((depth.log() - truth.log()).abs(), valid)


def berhu(depth_m: Tensor, scale_m: Tensor | None, ground_truth_m: Tensor) -> Tensor:
    """Return the reverse Huber loss (Laina et al. 2016, eq. 1).

    It is |e| up to c and (e^2 + c^2) / 2c beyond, with c a fifth of the batch's largest error.
    """
    valid, depth, truth = _supervised(ground_truth_m, depth_m)
    error = (depth - truth).abs()
    threshold = (BERHU_FRACTION * error.detach().max()).clamp(min=torch.finfo(error.dtype).tiny)
    return _mean(
        torch.where(
            error <= threshold, error, (error.square() + threshold.square()) / (2 * threshold)
        ),
        valid,
    )


def laplace_nll(depth_m: Tensor, scale_m: Tensor | None, ground_truth_m: Tensor) -> Tensor:
    """Return the mean of ln 2b + |d - g| / b: the Laplace negative log-likelihood."""
    valid, depth, truth, scale = _supervised(ground_truth_m, depth_m, _required(scale_m))
    return _mean((2 * scale).log() + (depth - truth).abs() / scale, valid)


def gaussian_nll(depth_m: Tensor, scale_m: Tensor | None, ground_truth_m: Tensor) -> Tensor:
    """Return the mean Gaussian negative log-likelihood of mean d and standard deviation s."""
    valid, depth, truth, scale = _supervised(ground_truth_m, depth_m, _required(scale_m))
    return _mean(
        0.5 * math.log(2 * math.pi) + scale.log() + 0.5 * ((depth - truth) / scale).square(),
        valid,
    )


def distillation(depth_m: Tensor, scale_m: Tensor | None, targets_m: Tensor) -> Tensor:
    """Return the mean of |ln d - ln m| + |ln s - ln t| for a teacher's mean m and sigma t.

    m and t are the two channels of the targets.

    The same relative error costs the same everywhere, in depth and in sigma; a sigma below the
    smallest that a head can give counts as that.
    """
    mean = targets_m[:, :1]
    sigma = targets_m[:, 1:]
    depth_error = (depth_m.log() - mean.log()).abs()
    return (
        depth_error
        + (_required(scale_m).log() - sigma.maximum(RELATIVE_SCALE[0] * mean).log()).abs()
    ).mean()


LOSSES: dict[str, Loss] = {"l1": l1, "berhu": berhu, "log_l1": log_l1}
LIKELIHOODS: dict[str, Loss] = {"laplace": laplace_nll, "gaussian": gaussian_nll}


def choose(network: NetworkConfig, training: TrainingConfig) -> Loss:
    """Return the loss of the options; by default the head's likelihood, or log-L1 without a head.

    Raises:
        ConfigError: for nll without a head, or a head that the loss leaves untrained.
    """
    name = training.loss or ("log_l1" if network.head == "none" else "nll")
    if name == "nll" and network.head == "none":
        raise ConfigError(
            "loss is 'nll' but head is 'none'; expected head 'laplace' or 'gaussian', which "
            "predicts the scale of the error"
        )
    if name != "nll" and network.head != "none":
        raise ConfigError(
            f"loss is {name!r} but head is {network.head!r}; expected head 'none', or loss 'nll', "
            "which alone trains a head"
        )
    return LIKELIHOODS[network.head] if name == "nll" else LOSSES[name]


def _supervised(ground_truth_m: Tensor, depth_m: Tensor, *maps: Tensor) -> list[Tensor]:
    """Return where there is ground truth, and depth, ground truth and maps in float32.

    Elsewhere these are 1, without a gradient. Selecting the pixels instead would make a GPU wait
    for their number in every step.
    """
    valid = torch.isfinite(ground_truth_m)
    return [
        valid,
        *(torch.where(valid, values, 1.0).float() for values in (depth_m, ground_truth_m, *maps)),
    ]


def _mean(values: Tensor, valid: Tensor) -> Tensor:
    return (values * valid).sum() / valid.sum().clamp(min=1)


def _required(scale_m: Tensor | None) -> Tensor:
    if scale_m is None:
        raise ConfigError(
            "the network outputs no scale for the likelihood loss; expected a network with head "
            "'laplace' or 'gaussian'"
        )
    return scale_m
