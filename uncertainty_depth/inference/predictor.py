# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""From a camera image to depth and its standard deviation, at the image's size."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from uncertainty_depth.calibration import IDENTITY
from uncertainty_depth.calibration.data_monitor import DataMonitor
from uncertainty_depth.calibration.half_widths import BY_DISTRIBUTION, HalfWidths
from uncertainty_depth.calibration.sigma_map import SigmaMap
from uncertainty_depth.calibration.strength import check_strength, strength_of
from uncertainty_depth.completion.sparse_input import SparseInput, parse
from uncertainty_depth.config import UNTRAINED_METHODS, PredictorConfig
from uncertainty_depth.engines.choice import choose
from uncertainty_depth.engines.loading import load
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.familiarity import file as familiarity
from uncertainty_depth.familiarity.gauge import Gauge
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.inference.network_input import network_input
from uncertainty_depth.inference.training_lens import TrainingLens
from uncertainty_depth.metrics.distributions import distribution_of
from uncertainty_depth.model_folder.folder import ModelFolder, read
from uncertainty_depth.options import check
from uncertainty_depth.records import DepthPrediction, Observation, SampleRange
from uncertainty_depth.uncertainty import Estimator
from uncertainty_depth.uncertainty.moments import download

logger = logging.getLogger(__name__)


class _Settings(NamedTuple):
    """A config, and what follows from it for the model."""

    config: PredictorConfig
    calibration_key: str
    sigma_map: SigmaMap
    monitor: DataMonitor | None  # None where no calibration is in use
    half_widths: HalfWidths


class Predictor:
    """Depth and sigma of images, by the model in a folder.

    `config` may be replaced at any time by one with other `samples`, `chunk`, `seed`, `component`
    or `calibrated`; it counts from the next `predict` on. Any thread may call `predict`.

    Raises:
        ModelError: the folder cannot be used.
        ConfigError: an option is out of range, the model was not trained for the method, sigma has
            no such component or cannot be widened, there is no CUDA device, or the device cannot
            compute in the precision.
    """

    def __init__(
        self,
        folder: Path | str,
        config: PredictorConfig = PredictorConfig(),  # noqa: B008  frozen
    ) -> None:
        check(config)
        _check_widening(config)
        self.model = read(folder)
        self.method = _choose_method(config.method, self.model)
        choice = choose(self.model, self.method, config)
        self._loaded = load(self.model, self.method, *choice, config.device)
        self._estimator: Estimator = self._loaded.estimator
        self.device = self._loaded.device
        self._monitors = {
            key: DataMonitor(sigma_map.name, self.model.fitted_to.get(key))
            for key, sigma_map in self.model.calibration.items()
            if sigma_map.name != IDENTITY.name
        }
        known = familiarity.read(self.model.path) if self._loaded.engine == "torch" else None
        self._gauge = Gauge(known, self._estimator.networks[-1])
        self._lens = TrainingLens(
            self.model.network.canonical_focal_length, self.model.training.get("camera")
        )
        self.config = config
        self._warn_of_missing_uncertainty(sigma_m=self._run_trial())
        logger.info("the network runs by %s", self._loaded.description)

    @property
    def config(self) -> PredictorConfig:
        """The options in use.

        Raises:
            ConfigError: on assignment, where sigma lacks the config's component.
        """
        return self._settings.config

    @config.setter
    def config(self, config: PredictorConfig) -> None:
        self.check(config)
        key = self._key(config)
        sigma_map = self.model.calibration.get(key, IDENTITY) if config.calibrated else IDENTITY
        monitor = self._monitors.get(key) if config.calibrated else None
        measured = self.model.half_widths.get(key) if config.calibrated else None
        head = self._estimator.networks[-1].config.head
        half_widths = measured or BY_DISTRIBUTION[distribution_of(head)]
        self._settings = _Settings(config, key, sigma_map, monitor, half_widths)

    def predict(
        self,
        image: NDArray[np.uint8],
        stamp_ns: int = 0,
        camera: Camera | None = None,
        samples: SampleRange | None = None,
        sparse_m: NDArray[np.floating] | None = None,
    ) -> DepthPrediction:
        """Return depth and sigma of one image, at its size; see `Observation` and `predict_batch`.

        Raises:
            MessageError: see `predict_batch`.
        """
        return self.predict_batch([Observation(image, stamp_ns, camera, sparse_m)], samples)[0]

    def predict_batch(
        self,
        observations: Sequence[Observation],
        samples: SampleRange | None = None,
        widen: bool = True,
    ) -> list[DepthPrediction]:
        """Return depth and sigma of several images, each at its own size.

        They go through the network together, up to where their noise begins. An engine's graph is
        of one image: there they go one by one.

        Args:
            observations: of any cameras, sizes and times.
            samples: those to be used, of the `passes`; None uses all.
            widen: multiply sigma by the unfamiliarity where `widen_unfamiliar` asks for it.

        Raises:
            MessageError: an array is no such image, or a sparse depth is of another size, type or
                unit, or the model takes none. None of them is predicted then.
        """
        at_once = max(len(observations), 1) if self._loaded.engine == "torch" else 1
        settings = self._settings
        if not widen:
            config = replace(settings.config, widen_unfamiliar=False)
            settings = settings._replace(config=config)
        predictions: list[DepthPrediction] = []
        for start in range(0, len(observations), at_once):
            batch = observations[start : start + at_once]
            predictions += self._predict_together(batch, samples, settings)
        return predictions

    def _predict_together(
        self,
        observations: Sequence[Observation],
        samples: SampleRange | None,
        settings: _Settings,
    ) -> list[DepthPrediction]:
        config = settings.config
        factors = [self._lens.factor(one.camera, config.rescale_depth) for one in observations]
        pixels = network_input(observations, factors, self.model, self.device)
        stamps_ns = [one.stamp_ns for one in observations]
        estimates = self._estimator.estimate_batch(pixels, stamps_ns, config, samples)
        maps, features = self._downloaded([one.stacked(config.component) for one in estimates])
        scores = self._gauge.scores(features, len(observations))
        return [
            _at_image(one.image, both, factor, score, settings)
            for one, factor, both, score in zip(observations, factors, maps, scores, strict=True)
        ]

    def _downloaded(
        self, maps: list[Tensor]
    ) -> tuple[list[NDArray[np.float32]], NDArray[np.float32] | None]:
        """Return the maps and the latest frames' features, if any, by one download."""
        features = self._gauge.take()
        if features is None:
            return download(maps), None
        *arrays, last = download([*maps, features])
        return arrays, last

    @property
    def sparse_input(self) -> SparseInput | None:
        """The sparse depth that the model takes beside the image; None where it takes none."""
        return parse(self.model.network.sparse_input)

    @property
    def depth_range(self) -> tuple[float, ...]:
        """Min and max depth that the model can predict, metres."""
        return self.model.network.depth_range

    def check(self, config: PredictorConfig) -> None:
        """Raise `ConfigError` unless sigma can be had by these options.

        It lacks the component, cannot be widened, or its calibration is of another strength.
        """
        _check_widening(config)
        if config.widen_unfamiliar and not self._gauge.is_known:
            raise ConfigError(
                f"widen_unfamiliar is true, but {self.model.path} does not tell what its training "
                f"looked like; expected `uncertainty-depth familiarity {self.model.path}` first, "
                "or widen_unfamiliar false"
            )
        components = self._estimator.components(config)
        if config.component not in components:
            passes = self._estimator.passes(config)
            head = self._estimator.networks[-1].config.head
            raise ConfigError(
                f"component is {config.component!r}, which {self.method} with samples {passes} "
                f"and head {head!r} does not have; expected {' or '.join(map(repr, components))}"
            )

        if config.calibrated:
            fitted = self.model.calibration_records.get(self._key(config), {})
            strength = self._strength(config)
            check_strength(self.method, strength, fitted, str(self.model.path))

    def _key(self, config: PredictorConfig) -> str:
        is_total = config.component == "total"
        return self.method if is_total else f"{self.method} {config.component}"

    def _strength(self, config: PredictorConfig) -> dict[str, float | str]:
        return strength_of(self.method, config, self._estimator.passes(config))

    @property
    def passes(self) -> int:
        """Number of samples or members that a prediction uses where nothing limits them."""
        return self._estimator.passes(self.config)

    @property
    def sigma_name(self) -> str:
        """What sigma is, whose size an evaluator may estimate: method, component, calibration."""
        widened = ", widened where unfamiliar" if self.config.widen_unfamiliar else ""
        return f"{self.calibration_key}, calibration {self._settings.sigma_map.name}{widened}"

    @property
    def calibration_key(self) -> str:
        """The key of this sigma's calibration in `model.json`: method, and component if any."""
        return self._settings.calibration_key

    @property
    def half_widths(self) -> HalfWidths:
        """Half widths of intervals in sigmas: measured by the calibration in use, else the head's.

        Without a head that says what sigma is the standard deviation of, those of a Gaussian.
        """
        return self._settings.half_widths

    @property
    def data_monitor(self) -> DataMonitor:
        """Compares the data with those that the calibration in use was fitted to."""
        return self._settings.monitor or DataMonitor("", None)

    def describe(self) -> dict[str, Any]:
        """Return model and options as plain values for a report."""
        networks = self._estimator.networks
        weights = set(chain.from_iterable(network.parameters() for network in networks))
        config = self.config
        network_config = self._estimator.networks[-1].config
        fitted_to = self.data_monitor.fitted_to
        return {
            "model": self.model.name,
            "method": self.method,
            "component": config.component,
            "samples": self._estimator.passes(config),
            "seed": config.seed,
            **self._strength(config),
            "device": str(self.device),
            "precision": self._loaded.precision,
            "engine": self._loaded.engine,
            "calibration": self._settings.sigma_map.name if config.calibrated else "off",
            **({"fitted_to": fitted_to.to_mapping()} if fitted_to else {}),
            **({"widened": "where unfamiliar"} if config.widen_unfamiliar else {}),
            "interval": self._settings.half_widths.origin,
            "parameters": sum(tensor.numel() for tensor in weights),
            "backbone": network_config.backbone,
            "head": network_config.head,
            **({"sparse_input": network_config.sparse_input} if self.sparse_input else {}),
            "input_size": list(network_config.input_size),
            "depth_range": list(network_config.depth_range),
            "canonical_focal_length": network_config.canonical_focal_length,
            "training": self.model.training,
        }

    def _run_trial(self) -> NDArray[np.float32]:
        """Return sigma of a black image, at the network's size.

        An operation that the device lacks fails here, before the first frame, and the first frame
        takes no longer than the next. It has all samples: too little memory shows here too.
        """
        config = self.config
        if config.precision == "fp16" and self.device.type == "cpu":
            logger.warning(
                "fp16 on the CPU is slow where the processor has no such arithmetic; "
                "expected bf16 or fp32 to be faster"
            )
        width, height = self.model.network.input_size
        black = torch.zeros((1, 3, height, width), device=self.device)
        try:
            sigma_m = self._estimator.estimate(black, 0, config).maps(config.component)[1]
        except (RuntimeError, NotImplementedError) as error:
            raise ConfigError(
                f"precision is {self._loaded.precision!r}, which does not work on {self.device}: "
                f"{str(error).splitlines()[0]}"
            ) from error
        self._gauge.check()
        return sigma_m

    def _warn_of_missing_uncertainty(self, sigma_m: NDArray[np.float32]) -> None:
        is_ensemble = self.method not in UNTRAINED_METHODS
        members = len(self._estimator.networks)
        components = self._estimator.components(self.config)
        if not sigma_m.any():
            logger.warning(
                "%s predicts zero uncertainty everywhere; "
                "use samples > 1 or a model with a variance head",
                self.method,
            )
        elif is_ensemble and members == 1 and "epistemic" not in components:
            logger.warning(
                "%s has one member: sigma is its variance head's alone, without epistemic "
                "uncertainty; expected a model with several members",
                self.method,
            )


def _at_image(
    image: NDArray[np.uint8],
    maps: NDArray[np.float32],
    factor: np.float32,
    unfamiliarity: float | None,
    settings: _Settings,
) -> DepthPrediction:
    """Return a prediction at the image's size, its sigma calibrated.

    Sigma, not the variance, is interpolated: errors of neighbouring pixels are fully correlated,
    and the standard deviation of a weighted sum of such errors is the weighted sum of their
    standard deviations.

    Args:
        image: (H, W, 3).
        maps: (2, h, w) depth and sigma of the network.
        factor: of both, for the image's camera.
        unfamiliarity: of the image; None where it is not known.
        settings: those in use.
    """
    size = (image.shape[1], image.shape[0])
    depth_m = factor * cv2.resize(maps[0], size, interpolation=cv2.INTER_LINEAR)
    sigma_m = factor * cv2.resize(maps[1], size, interpolation=cv2.INTER_LINEAR)
    unknown = ~(np.isfinite(depth_m) & np.isfinite(sigma_m))
    depth_m[unknown] = np.nan
    sigma_m[unknown] = np.nan
    if settings.monitor is not None:
        settings.monitor.add_sigma(sigma_m)
    calibrated_m = settings.sigma_map(sigma_m)
    if settings.config.widen_unfamiliar and unfamiliarity is not None:
        calibrated_m *= np.float32(max(unfamiliarity, 1.0))
    return DepthPrediction(depth_m, calibrated_m, unfamiliarity)


def _check_widening(config: PredictorConfig) -> None:
    """Raise `ConfigError` where sigma is to be widened by an engine without unfamiliarity.

    Nor may `auto` be one: whether sigma is widened would depend on what is fastest.
    """
    if config.widen_unfamiliar and config.engine != "torch":
        raise ConfigError(
            f"widen_unfamiliar is true, but engine is {config.engine!r}, and unfamiliarity is "
            "read from torch's encoder; expected engine 'torch', or widen_unfamiliar false"
        )


def _choose_method(requested: str, model: ModelFolder) -> str:
    """Return the method asked for, or the model's own.

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
