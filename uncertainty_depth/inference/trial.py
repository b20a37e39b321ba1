# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Run a loaded model once, so that what fails fails before the first frame."""

from __future__ import annotations

import logging

import numpy as np
import torch
from numpy.typing import NDArray

from uncertainty_depth.config import UNTRAINED_METHODS, PredictorConfig
from uncertainty_depth.engines.loading import Loaded
from uncertainty_depth.errors import ConfigError

logger = logging.getLogger(__name__)


def run_trial(
    loaded: Loaded, input_size: tuple[int, ...], config: PredictorConfig
) -> NDArray[np.float32]:
    """Return sigma of a black image, at the network's size.

    An operation that the device lacks fails here, before the first frame, and the first frame
    takes no longer than the next. It has all samples: too little memory shows here too.

    Args:
        loaded: the estimator and its engine.
        input_size: width and height of the network's images.
        config: options of the predictor.

    Raises:
        ConfigError: the device cannot compute in the precision.
    """
    if config.precision == "fp16" and loaded.device.type == "cpu":
        logger.warning(
            "fp16 on the CPU is slow where the processor has no such arithmetic; "
            "expected bf16 or fp32 to be faster"
        )
    width, height = input_size
    black = torch.zeros((1, 3, height, width), device=loaded.device)
    try:
        return loaded.estimator.estimate(black, 0, config).maps(config.component)[1]
    except (RuntimeError, NotImplementedError) as error:
        raise ConfigError(
            f"precision is {loaded.precision!r}, which does not work on {loaded.device}: "
            f"{str(error).splitlines()[0]}"
        ) from error


def warn_of_missing_uncertainty(
    loaded: Loaded, method: str, config: PredictorConfig, sigma_m: NDArray[np.float32]
) -> None:
    """Log a warning where sigma is zero everywhere, or lacks what its method promises.

    Args:
        loaded: the estimator.
        method: its name.
        config: options of the predictor.
        sigma_m: of the trial, (h, w) metres.
    """
    components = loaded.estimator.components(config)
    members = len(loaded.estimator.networks)
    is_ensemble = method not in UNTRAINED_METHODS
    if not sigma_m.any():
        logger.warning(
            "%s predicts zero uncertainty everywhere; "
            "use samples > 1 or a model with a variance head",
            method,
        )
    elif is_ensemble and members == 1 and "epistemic" not in components:
        logger.warning(
            "%s has one member: sigma is its variance head's alone, without epistemic "
            "uncertainty; expected a model with several members",
            method,
        )
