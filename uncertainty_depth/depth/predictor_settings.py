# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a predictor makes of its options: method, estimator and engine, calibration."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch

from uncertainty_depth.core.config.predictor import UNTRAINED_METHODS
from uncertainty_depth.core.device_errors import at_load, explained
from uncertainty_depth.core.errors import ConfigError, ModelError
from uncertainty_depth.depth.estimators import ESTIMATORS, Estimator
from uncertainty_depth.depth.model_folder.model import ModelFolder
from uncertainty_depth.depth.networks.deployment import (
    check_precision,
    choose_device,
    is_fast,
    prepare,
)
from uncertainty_depth.depth.precision import FASTEST_FIRST, choose_precision
from uncertainty_depth.sigma.calibration import IDENTITY
from uncertainty_depth.sigma.calibration.fitted_data import DataMonitor, FittedData
from uncertainty_depth.sigma.calibration.half_widths import HalfWidths, from_record, guarantee_of
from uncertainty_depth.sigma.calibration.sigma_map import SigmaMap

if TYPE_CHECKING:
    from uncertainty_depth.contrib.engines.runtimes import Engine


class SigmaCalibration(NamedTuple):
    """A calibration of sigma.

    Attributes:
        sigma_map: maps raw to calibrated sigma.
        half_widths: half widths of intervals, in sigmas.
        monitor: compares the data with the calibration data.
        guarantee: the guarantee by frame, a sentence; empty without one.
    """

    sigma_map: SigmaMap
    half_widths: HalfWidths
    monitor: DataMonitor
    guarantee: str


def calibration_of(
    model: ModelFolder, method: str, uncalibrated: SigmaCalibration
) -> SigmaCalibration:
    """Return a method's calibration in a model's folder, or `uncalibrated` if it has none.

    Raises:
        ModelError: its record is damaged.
    """
    try:
        record = model.calibration.get(method)
        if record is None:
            return uncalibrated
        sigma_map = SigmaMap.from_mapping(record)
        fitted = record.get("fitted_to")
        fitted_to = None if fitted is None else FittedData.from_mapping(fitted)
        monitor = uncalibrated.monitor
        if sigma_map.name != IDENTITY.name:
            monitor = DataMonitor(sigma_map.name, fitted_to)
        half_widths = from_record(record) or uncalibrated.half_widths
        return SigmaCalibration(sigma_map, half_widths, monitor, guarantee_of(record))
    except (ModelError, AttributeError, TypeError) as error:
        raise ModelError(f"{model.path / 'model.json'} cannot be used: {error}") from error


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
    """An estimator that an engine runs in a precision, and the device of the images it takes.

    `compiler` is the engine, if it is not torch.
    """

    estimator: Estimator
    engine: str
    precision: str
    device: torch.device
    compiler: Engine | None = None

    @property
    def place(self) -> str:
        """The device that computes, as an option names it; known after the first run."""
        return str(self.device) if self.compiler is None else self.compiler.device

    @property
    def description(self) -> str:
        """Readable name of engine, device and precision; complete after the first run."""
        if self.compiler is not None:
            return self.compiler.description
        return f"torch {torch.__version__} on {self.device} in {self.precision}"


def load(model: ModelFolder, method: str, engine: str, precision: str, device: str) -> Loaded:
    """Return a method's estimator for one engine.

    The precision auto takes the engine's own, on a GPU what `choose_precision` finds.

    Raises:
        ConfigError: the engine is not installed, cannot run the method, or has no such device or
            precision.
        ModelError: the model cannot be run with the method.
    """
    if engine != "torch":
        from uncertainty_depth.contrib.engines.loading import load_compiled  # and its libraries

        estimator, compiler = load_compiled(model, method, engine, precision, device)
        return Loaded(estimator, engine, compiler.precision, torch.device("cpu"), compiler)

    def load_in(precision: str) -> Estimator:
        place = partial(prepare, device=torch_device, precision=precision)
        estimator = ESTIMATORS[method].load(model, place)
        estimator.tf32 = precision == "tf32"
        return estimator

    size = model.network.input_size
    precisions: list[str] = []
    with explained(torch.device("cuda"), partial(at_load, precision)):  # asks the GPU, if any
        torch_device = choose_device(device)
        if precision != "auto":
            check_precision(torch_device, precision)
        elif torch_device.type == "cuda":
            precisions = [name for name in FASTEST_FIRST if is_fast(torch_device, name)]
    with explained(torch_device, partial(at_load, precision)):
        if precision != "auto":
            estimator = load_in(precision)
        else:
            estimator, precision = choose_precision(load_in, precisions, size, torch_device)
    return Loaded(estimator, engine, precision, torch_device)
