# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a predictor makes of its options: method, estimator and engine, precision, calibration."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from uncertainty_depth.core.config.predictor import UNTRAINED_METHODS, PredictorConfig
from uncertainty_depth.core.device_errors import at_load, explained
from uncertainty_depth.core.errors import ConfigError, ModelError
from uncertainty_depth.depth.estimators import ESTIMATORS, Estimator
from uncertainty_depth.depth.model_folder.folder import ModelFolder
from uncertainty_depth.depth.networks.deployment import (
    check_precision,
    choose_device,
    is_fast,
    prepare,
)
from uncertainty_depth.depth.networks.encoder import image_tensor
from uncertainty_depth.sigma.calibration import IDENTITY
from uncertainty_depth.sigma.calibration.fitted_data import DataMonitor, FittedData
from uncertainty_depth.sigma.calibration.half_widths import HalfWidths, from_record, guarantee_of
from uncertainty_depth.sigma.calibration.sigma_map import SigmaMap

if TYPE_CHECKING:
    from uncertainty_depth.contrib.engines.runtimes import Engine

logger = logging.getLogger(__name__)

FASTEST_FIRST = ("fp16", "tf32")
"""bf16 is as fast as fp16, and eight times as coarse."""
MAX_DEPTH_ERROR = 1e-3
MAX_SIGMA_ERROR = 1e-2
"""Mean differences to float32, as fractions."""
PATCH = 32


def choose_precision(
    load: Callable[[str], Estimator],
    candidates: Sequence[str],
    size: Sequence[int],
    device: torch.device,
) -> tuple[Estimator, str]:
    """Return the estimator in the first precision whose maps stay near float32's, and its name.

    They are compared on two pictures with patches of colour, one with edges and one without; both
    methods of rounding keep about ten bits, so what differs between networks is what overflows.
    """
    exact = load("fp32")
    if not candidates:
        return exact, "fp32"
    images = image_tensor(_pictures(size), device).split(1)
    config = PredictorConfig()
    expected = np.stack([exact.estimate(image, 0, config).maps() for image in images], 1)
    del exact  # memory for another
    for precision in candidates:
        estimator = load(precision)
        found = np.stack([estimator.estimate(image, 0, config).maps() for image in images], 1)
        depth_error, sigma_error = _mean_errors(found, expected)
        if depth_error <= MAX_DEPTH_ERROR and sigma_error <= MAX_SIGMA_ERROR:
            logger.info(
                "precision is %s: depth differs from fp32's by %.2g in the mean, sigma by %.2g",
                precision, depth_error, sigma_error,
            )  # fmt: skip
            return estimator, precision
        logger.info(
            "precision is not %s: depth would differ from fp32's by %.2g in the mean, sigma by "
            "%.2g; expected at most %g and %g",
            precision, depth_error, sigma_error, MAX_DEPTH_ERROR, MAX_SIGMA_ERROR,
        )  # fmt: skip
        del estimator
    return load("fp32"), "fp32"


def _pictures(size: Sequence[int]) -> NDArray[np.uint8]:
    """Return (2, h, w, 3) pictures: patches of colour, with edges and without."""
    width, height = size
    colors = np.random.default_rng(0).integers(
        0, 256, (-(-height // PATCH), -(-width // PATCH), 3), dtype=np.uint8
    )
    ways = (cv2.INTER_NEAREST, cv2.INTER_LINEAR)
    return np.stack([cv2.resize(colors, (width, height), interpolation=way) for way in ways])


def _mean_errors(found: NDArray[np.float32], expected: NDArray[np.float32]) -> tuple[float, float]:
    """Return depth's and sigma's mean relative difference; a sigma of 0 must stay 0."""
    tiny = np.finfo(np.float32).tiny
    with np.errstate(invalid="ignore"):
        errors = (np.abs(found - expected) / np.maximum(expected, tiny)).mean((1, 2, 3))
    depth_error, sigma_error = np.where(np.isfinite(errors), errors, np.inf).tolist()
    return depth_error, sigma_error


class SigmaCalibration(NamedTuple):
    """A map to calibrated sigma, half widths in sigmas, the data, and the guarantee or ""."""

    sigma_map: SigmaMap
    half_widths: HalfWidths
    monitor: DataMonitor
    guarantee: str


def calibration_of(
    model: ModelFolder, method: str, uncalibrated: SigmaCalibration
) -> SigmaCalibration:
    """Return a method's calibration, or `uncalibrated`; raise `ModelError` if it is damaged."""
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
    """Return the requested method, or the model's own without a request; else raise `ConfigError`.

    A single network can be run by any model; an ensemble's name says how its members were trained.
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
    """An estimator, its engine (`compiler` if not torch) and precision, and its images' device."""

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
        from uncertainty_depth.contrib.engines.runtimes import load_compiled  # and its libraries

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
