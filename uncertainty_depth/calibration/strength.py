# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The options that sigma's size depends on: a calibration is valid only for their values.

They are the strength of the training-free methods' perturbation, and the relation between samples'
noise: a few stratified samples have a larger variance than independent samples, closer to the
variance of many.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.errors import ConfigError

logger = logging.getLogger(__name__)

STRENGTHS = {
    "tta": "samples",
    "inference_dropout": "inference_dropout_rate",
    "feature_noise": "feature_noise_ratio",
}
"""Method to the option that decides the size of its sigma; `samples` are the views of tta."""
SAMPLING = "sampling"
SAMPLED_METHODS = ("mc_dropout", "inference_dropout", "feature_noise")
"""Methods whose samples draw noise."""
RECORDED = (*STRENGTHS.values(), SAMPLING)
"""What a calibration keeps, where its method has it."""


def strength_of(method: str, config: PredictorConfig, passes: int) -> dict[str, float | str]:
    """Return the values in use of the options that sigma's size depends on; empty without any.

    Args:
        method: that predicts.
        config: its options.
        passes: samples that are used, at most as many as the method has.
    """
    strength: dict[str, float | str] = {}
    name = STRENGTHS.get(method)
    if name is not None:
        strength[name] = passes if name == "samples" else getattr(config, name)
    if method in SAMPLED_METHODS:
        strength[SAMPLING] = config.sampling
    return strength


def check_strength(
    method: str, strength: Mapping[str, float | str], fitted: Mapping[str, Any], model: str
) -> None:
    """Raise `ConfigError` if a calibration was fitted to sigma of another strength or sampling.

    Warns if the sampling is not recorded: earlier versions sampled independently.

    Args:
        method: that predicts.
        strength: in use, see `strength_of`.
        fitted: what `model.json` keeps beside the map; without a strength nothing is checked.
        model: its folder.
    """
    for name, value in strength.items():
        fitted_value = fitted.get(name, value)
        if fitted_value != value:
            value_text = _text(value)
            fitted_text = _text(fitted_value)
            raise ConfigError(
                f"{name} is {value_text}, but the calibration of {method} in {model} was fitted "
                f"at {fitted_text}, and sigma depends on it; expected {name} {fitted_text}, "
                f"or `uncertainty-depth calibrate` with {name} {value_text}"
            )
    if (
        fitted
        and SAMPLING not in fitted
        and strength.get(SAMPLING, "independent") != "independent"
    ):
        logger.warning(
            "the calibration of %s in %s does not say how samples were related; before, they were "
            "independent, and the spread of few was smaller: expected sampling 'independent', or "
            "`uncertainty-depth calibrate` again",
            method,
            model,
        )


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"
