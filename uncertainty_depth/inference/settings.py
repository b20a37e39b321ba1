# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a predictor makes of its options: method, estimator and engine, calibration."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from uncertainty_depth.calibration import IDENTITY
from uncertainty_depth.calibration.fitted_data import (
    DataMonitor,
    FittedData,
    check_strength,
    strength_of,
)
from uncertainty_depth.calibration.half_widths import (
    BY_DISTRIBUTION,
    FrameGuarantee,
    HalfWidths,
    from_record,
)
from uncertainty_depth.calibration.sigma_map import SigmaMap
from uncertainty_depth.config import UNTRAINED_METHODS, PredictorConfig
from uncertainty_depth.errors import ConfigError, ModelError
from uncertainty_depth.metrics.calibration import distribution_of
from uncertainty_depth.model_folder.folder import ModelFolder
from uncertainty_depth.network.deployment import check_precision, choose_device, prepare
from uncertainty_depth.uncertainty import ESTIMATORS, Estimator

if TYPE_CHECKING:
    from uncertainty_depth.engines.runtimes import Engine


class Calibration(NamedTuple):
    """A calibration of sigma in the model folder.

    Attributes:
        sigma_map: maps raw to calibrated sigma.
        fitted_to: the data it was fitted to; None if the record does not say.
        half_widths: measured half widths of intervals, in sigmas; None if not measured.
        guarantee: the guarantee by frame; None if the record has none.
        record: all of its entry in `model.json`.
    """

    sigma_map: SigmaMap
    fitted_to: FittedData | None
    half_widths: HalfWidths | None
    guarantee: FrameGuarantee | None
    record: Mapping[str, Any]


def calibrations_of(model: ModelFolder) -> dict[str, Calibration]:
    """Return the model's calibrations by key: method, and component if any.

    Raises:
        ModelError: a record is damaged.
    """
    try:
        return {key: _calibration(record) for key, record in model.calibration.items()}
    except (ModelError, AttributeError, TypeError) as error:
        raise ModelError(f"{model.path / 'model.json'} cannot be used: {error}") from error


def _calibration(record: Mapping[str, Any]) -> Calibration:
    sigma_map = SigmaMap.from_mapping(record)
    fitted = record.get("fitted_to")
    fitted_to = None if fitted is None else FittedData.from_mapping(fitted)
    guarantee = FrameGuarantee.from_record(record)
    return Calibration(sigma_map, fitted_to, from_record(record), guarantee, record)


class Settings(NamedTuple):
    """Options, and the calibration that they select.

    Attributes:
        config: the options.
        calibration_key: key of the calibration in `model.json`: method, and component if any.
        sigma_map: maps raw to calibrated sigma.
        monitor: compares the data with the calibration data; None without a calibration.
        half_widths: half widths of intervals, in sigmas.
        guarantee: the calibration's guarantee by frame; None without one.
    """

    config: PredictorConfig
    calibration_key: str
    sigma_map: SigmaMap
    monitor: DataMonitor | None
    half_widths: HalfWidths
    guarantee: FrameGuarantee | None


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
        self._calibrations = calibrations_of(model)
        self._monitors = {
            key: DataMonitor(found.sigma_map.name, found.fitted_to)
            for key, found in self._calibrations.items()
            if found.sigma_map.name != IDENTITY.name
        }

    def settings(self, config: PredictorConfig) -> Settings:
        """Return the settings of these options.

        Raises:
            ConfigError: see `check`.
        """
        self.check(config)
        key = self._calibration_key(config)
        uncalibrated = BY_DISTRIBUTION[distribution_of(self._head)]
        found = self._calibrations.get(key)
        if found is None or not config.calibrated:
            return Settings(config, key, IDENTITY, None, uncalibrated, None)
        half_widths = found.half_widths or uncalibrated
        monitor = self._monitors.get(key)
        return Settings(config, key, found.sigma_map, monitor, half_widths, found.guarantee)

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
            record = self._model.calibration.get(self._calibration_key(config), {})
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


class Loaded(NamedTuple):
    """An estimator that an engine runs.

    Attributes:
        estimator: of the method.
        engine: what runs it, as an option names it.
        precision: in which it computes.
        device: of the images it takes.
        compiler: the engine, if it is not torch.
    """

    estimator: Estimator
    engine: str
    precision: str
    device: torch.device
    compiler: Engine | None = None

    @property
    def description(self) -> str:
        """Readable name of engine, device and precision; complete after the first run."""
        if self.compiler is not None:
            return self.compiler.description
        return f"torch {torch.__version__} on {self.device} in {self.precision}"


def load(model: ModelFolder, method: str, engine: str, precision: str, device: str) -> Loaded:
    """Return the estimator of a method for one engine.

    Args:
        model: the folder.
        method: a name of `ESTIMATORS`.
        engine: torch, openvino or onnxruntime.
        precision: auto takes the engine's own.
        device: auto, cpu, cuda or cuda:0, cuda:1, ...

    Raises:
        ConfigError: the engine is not installed, cannot run the method, or has no such device or
            precision.
        ModelError: the model cannot be run with the method.
    """
    if engine != "torch":
        from uncertainty_depth.engines.loading import load_compiled  # and its libraries

        estimator, compiler = load_compiled(model, method, engine, precision, device)
        return Loaded(estimator, engine, compiler.precision, torch.device("cpu"), compiler)
    torch_device = choose_device(device)
    precision = "fp32" if precision == "auto" else precision
    check_precision(torch_device, precision)
    place = partial(prepare, device=torch_device, precision=precision)
    return Loaded(ESTIMATORS[method].load(model, place), engine, precision, torch_device)
