# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The options of a predictor, checked against its model, and the calibration that they select."""

from __future__ import annotations

from typing import NamedTuple

from uncertainty_depth.calibration import IDENTITY
from uncertainty_depth.calibration.fitted_data import DataMonitor, check_strength, strength_of
from uncertainty_depth.calibration.half_widths import BY_DISTRIBUTION, HalfWidths
from uncertainty_depth.calibration.sigma_map import SigmaMap
from uncertainty_depth.config import UNTRAINED_METHODS, PredictorConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.metrics.calibration import distribution_of
from uncertainty_depth.model_folder.folder import ModelFolder
from uncertainty_depth.uncertainty import Estimator


class Settings(NamedTuple):
    """Options, and the calibration that they select.

    Attributes:
        config: the options.
        calibration_key: key of the calibration in `model.json`: method, and component if any.
        sigma_map: maps raw to calibrated sigma.
        monitor: compares the data with the calibration data; None without a calibration.
        half_widths: half widths of intervals, in sigmas.
    """

    config: PredictorConfig
    calibration_key: str
    sigma_map: SigmaMap
    monitor: DataMonitor | None
    half_widths: HalfWidths


class ModelOptions:
    """The options that a model can be used with.

    Attributes:
        has_familiarity: whether its images have an unfamiliarity.
    """

    def __init__(
        self, model: ModelFolder, method: str, estimator: Estimator, has_familiarity: bool
    ) -> None:
        self.has_familiarity = has_familiarity
        self._model = model
        self._method = method
        self._estimator = estimator
        self._head = estimator.networks[-1].config.head
        self._monitors = {
            key: DataMonitor(sigma_map.name, model.fitted_to.get(key))
            for key, sigma_map in model.calibration.items()
            if sigma_map.name != IDENTITY.name
        }

    def settings(self, config: PredictorConfig) -> Settings:
        """Return the settings of these options.

        Raises:
            ConfigError: see `check`.
        """
        self.check(config)
        key = self._calibration_key(config)
        uncalibrated = BY_DISTRIBUTION[distribution_of(self._head)]
        if not config.calibrated:
            return Settings(config, key, IDENTITY, None, uncalibrated)
        return Settings(
            config,
            key,
            self._model.calibration.get(key, IDENTITY),
            self._monitors.get(key),
            self._model.half_widths.get(key) or uncalibrated,
        )

    def check(self, config: PredictorConfig) -> None:
        """Raise `ConfigError` unless the model has the sigma that these options ask for.

        It lacks the component, cannot be widened, or its calibration is of another strength.
        """
        check_widening(config)
        if config.widen_unfamiliar and not self.has_familiarity:
            raise ConfigError(
                f"widen_unfamiliar is true, but {self._model.path} does not tell what its "
                "training looked like; expected `uncertainty-depth familiarity "
                f"{self._model.path}` first, or widen_unfamiliar false"
            )
        components = self._estimator.components(config)
        if config.component not in components:
            passes = self._estimator.passes(config)
            raise ConfigError(
                f"component is {config.component!r}, which {self._method} with samples {passes} "
                f"and head {self._head!r} does not have; expected "
                f"{' or '.join(map(repr, components))}"
            )
        if config.calibrated:
            record = self._model.calibration_records.get(self._calibration_key(config), {})
            strength = self.strength(config)
            check_strength(self._method, strength, record, str(self._model.path))

    def strength(self, config: PredictorConfig) -> dict[str, float | str]:
        """Return the options that sigma's size depends on, see `strength_of`."""
        return strength_of(self._method, config, self._estimator.passes(config))

    def _calibration_key(self, config: PredictorConfig) -> str:
        is_total = config.component == "total"
        return self._method if is_total else f"{self._method} {config.component}"


def check_widening(config: PredictorConfig) -> None:
    """Raise `ConfigError` if sigma is to be widened with an engine without unfamiliarity.

    `auto` is rejected too: whether sigma is widened would depend on which engine is fastest.
    """
    if config.widen_unfamiliar and config.engine != "torch":
        raise ConfigError(
            f"widen_unfamiliar is true, but engine is {config.engine!r}, and unfamiliarity is "
            "read from torch's encoder; expected engine 'torch', or widen_unfamiliar false"
        )


def choose_method(requested: str, model: ModelFolder) -> str:
    """Return the requested method, or the model's own without a request.

    A single network can be run by any model; an ensemble's name says how its members were trained.

    Raises:
        ConfigError: the model was not trained for the method.
    """
    choices = [model.method, *UNTRAINED_METHODS]
    if model.method in UNTRAINED_METHODS:
        choices.append("multi_epochs")
    if requested and requested not in choices:
        raise ConfigError(
            f"method is {requested!r}, but {model.path} was trained for {model.method!r}; "
            f"expected {' or '.join(dict.fromkeys(choices))}"
        )
    return requested or model.method
