# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""From a camera image to depth and its standard deviation, at the image's size."""

from __future__ import annotations

import uncertainty_depth.depth.networks  # noqa: F401  before torch: it names what is missing

# isort: split
import logging
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from uncertainty_depth.core.config.predictor import UNTRAINED_METHODS, PredictorConfig
from uncertainty_depth.core.device_errors import at_load, at_run_time, explained
from uncertainty_depth.core.errors import MessageError, ModelError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.geometry.focal_length import FocalLengthRescaling
from uncertainty_depth.core.options import changed, takes_options, validate
from uncertainty_depth.core.records import DepthPrediction, Frame, SampleRange
from uncertainty_depth.depth import familiarity
from uncertainty_depth.depth.estimators import Estimator
from uncertainty_depth.depth.familiarity import UnfamiliarityMonitor, pooled
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.networks.encoder import download, image_tensor, resize_image
from uncertainty_depth.depth.predictor_settings import (
    SigmaCalibration,
    calibration_of,
    choose_method,
    load,
)
from uncertainty_depth.frames.image_files import ImageLike, as_rgb
from uncertainty_depth.metrics.calibration import distribution_of
from uncertainty_depth.sigma.calibration import IDENTITY
from uncertainty_depth.sigma.calibration.fitted_data import DataMonitor
from uncertainty_depth.sigma.calibration.half_widths import BY_DISTRIBUTION, HalfWidths
from uncertainty_depth.sigma.measurement_option import parse_measurements, sigma_name

logger = logging.getLogger(__name__)


class Predictor:
    """Depth and sigma of images, by the model in a folder.

    `config` may be replaced at any time by one with other `samples`, `seed` or
    `calibrated`; the change applies from the next `predict` on. Any thread may call `predict`.

    Args:
        folder: model folder, or a shipped model's name: indoor or demo.
        config: method, samples, device and so on.
        relative: also accept a Hugging Face network that gives inverse depth up to scale and
            shift; `depth_m` and `sigma_m` are then inverse depth, without a unit. With
            `measurements` it is accepted too, and they are metres.
        **options: `PredictorConfig` options that override the config's, e.g. `samples=16`.

    Raises:
        ModelError: the folder cannot be used.
        ConfigError: an option is unknown or out of range, the model was not trained for the
            method, there is no CUDA device, or the device cannot compute in the precision.

    Examples:
        >>> predictor = Predictor("demo", samples=4)
        >>> image = np.zeros((120, 160, 3), np.uint8)
        >>> prediction = predictor.predict(image, camera=140.0)  # focal length, pixels
        >>> prediction.depth_m.shape, prediction.sigma_m.shape
        ((120, 160), (120, 160))
    """

    @takes_options(PredictorConfig)
    def __init__(
        self,
        folder: Path | str,
        config: PredictorConfig = PredictorConfig(),  # noqa: B008  frozen
        relative: bool = False,
        **options: Any,
    ) -> None:
        config = changed(config, options)
        validate(config)
        self.model = read_model(folder, relative or bool(config.measurements))
        self.measurements = parse_measurements(config.measurements)
        self.method = choose_method(config.method, self.model)
        self._loaded = load(
            self.model, self.method, config.engine, config.precision, config.device
        )
        self._estimator: Estimator = self._loaded.estimator
        # A graph's memory is that of one frame.
        self._turn: AbstractContextManager[Any] = (
            Lock() if self._estimator.few_launches else nullcontext()
        )
        self.device = self._loaded.device
        is_torch = self._loaded.engine == "torch"
        familiar = familiarity.read(self.model.path) if is_torch else None
        self._unfamiliarity = None if familiar is None else UnfamiliarityMonitor(familiar)
        self._lens = FocalLengthRescaling(
            self.model.network.canonical_focal_length, self.model.training.get("camera")
        )
        head = self._estimator.networks[-1].config.head
        half_widths = BY_DISTRIBUTION[distribution_of(head)]
        self._uncalibrated = SigmaCalibration(IDENTITY, half_widths, DataMonitor("", None), "")
        self._calibration = calibration_of(self.model, self.method, self._uncalibrated)
        self.config = config
        self._run_trial(config)
        logger.info("the network runs by %s", self._loaded.description)

    def _calibration_in(self, config: PredictorConfig) -> SigmaCalibration:
        """Return the calibration that these options select."""
        return self._calibration if config.calibrated else self._uncalibrated

    def _run_trial(self, config: PredictorConfig) -> None:
        """Predict a black image: what fails does before the first frame; warn of a lone sigma."""
        device = self.device
        if config.precision == "fp16" and device.type == "cpu":
            logger.warning(
                "fp16 on the CPU is slow where the processor has no such arithmetic; "
                "expected bf16 or fp32 to be faster"
            )
        width, height = self.model.network.input_size
        with explained(device, partial(at_load, self._loaded.precision)):
            black = torch.zeros((1, 3, height, width), device=device)
            estimate = self._estimator.estimate(black, 0, config)
            depth_m, sigma_m = estimate.maps()
        if not np.isfinite(depth_m).any():
            raise ModelError(
                f"{self.model.name} gives a black image no finite depth; expected weights without "
                "NaN or infinity, of a training that did not diverge"
            )
        if self._unfamiliarity is not None and estimate.features is not None:
            self._unfamiliarity.check(estimate.features)
        is_lone_member = (
            self.method not in UNTRAINED_METHODS and len(self._estimator.networks) == 1
        )
        if not sigma_m.any():
            logger.warning(
                "%s predicts zero uncertainty for a black image; if it does for yours too: sigma "
                "takes dropout and samples > 1, or a variance head%s",
                self.method,
                "; where it is zero, measurements correct only what is interpolated between them"
                if config.measurements
                else "",
            )
        elif is_lone_member:
            logger.warning(
                "%s has one member: sigma is its variance head's alone, without epistemic "
                "uncertainty; expected a model with several members",
                self.method,
            )

    def predict(
        self,
        image: ImageLike,
        stamp_ns: int = 0,
        camera: Camera | float | None = None,
        samples: SampleRange | None = None,
        sparse_m: NDArray[np.floating] | None = None,
    ) -> DepthPrediction:
        """Return depth and sigma of an image, at its size.

        Args:
            image: (H, W, 3) uint8 RGB; or a PIL image or an image file's path, which are
                turned upright as their Exif data say.
            stamp_ns: time of the image, nanoseconds; part of the noise's seed.
            camera: the image's, or its focal length in pixels; None if unknown.
            samples: those to be used, of the `passes`; None uses all.
            sparse_m: (H, W) known depth, metres, NaN or 0 if unknown, for a model with
                `measurements`.

        Raises:
            MessageError: see `predict_frame`.
            DeviceLostError: the GPU is lost.
            SourceError: the file is missing or not an image.
            ValueError: the camera is neither a Camera nor a positive focal length.
        """
        rgb = as_rgb(image)
        if camera is not None and not isinstance(camera, Camera):
            camera = Camera.pinhole(camera, width=rgb.shape[1], height=rgb.shape[0])
        return self.predict_frame(Frame(stamp_ns, "", camera, rgb, sparse_m), samples)

    def predict_frame(self, frame: Frame, samples: SampleRange | None = None) -> DepthPrediction:
        """Return depth and sigma of a frame's image, at its size.

        Args:
            frame: with its image; its camera scales canonical depth and sigma, and without one
                depth is that of a camera like the training's.
            samples: those to be used, of the `passes`; None uses all.

        Raises:
            MessageError: the image is of another shape or dtype, a sparse depth is of another
                size, dtype or unit, or there are no `measurements`, or memory ran out; or too few
                pixels are measured for inverse depth without a unit.
            DeviceLostError: the GPU is lost.
        """
        config = self.config
        calibration = self._calibration_in(config)
        factor = self._lens.factor(frame.camera)
        with explained(self.device, at_run_time):
            image = self.network_input(frame, factor)
            with self._turn:
                estimate = self._estimator.estimate(image, frame.stamp_ns, config, samples)
                tensors = [estimate.stacked()]
                if self._unfamiliarity is not None and estimate.features is not None:
                    tensors.append(pooled(estimate.features))
                maps, *features = download(tensors)
            unfamiliarity = (
                self._unfamiliarity.score(*features) if self._unfamiliarity and features else None
            )
            prediction = _at_image(frame, maps, factor, unfamiliarity, calibration)
            if not config.measurements:
                return prediction
            from uncertainty_depth.sigma.posterior import corrected  # SciPy loads slowly

            return corrected(
                prediction,
                frame,
                self.depth_range,
                self.model.error_prior,
                is_relative=self.model.is_relative,
            )

    def network_input(self, frame: Frame, factor: np.float32) -> Tensor:
        """Return what the network takes of a frame: its image, (1, 3, h, w) in [0, 1].

        `factor` turns the network's metres into those of the image's camera. Raises `MessageError`
        for an image of another shape or dtype, and for known depth without `measurements`.
        """
        if frame.sparse_m is not None and not self.config.measurements:
            raise MessageError(
                "sparse_depth_not_taken",
                f"{self.model.name} takes the image alone, without sparse depth; expected the "
                "option measurements, 'lidar' for one, by which known depth corrects it",
            )
        image = resize_image(frame.need_image(), self.model.network.input_size)
        return image_tensor(image[None], self.device)

    @property
    def depth_range(self) -> tuple[float, ...]:
        """Min and max depth that the model can predict, metres."""
        return self.model.network.depth_range

    @property
    def passes(self) -> int:
        """Number of samples or members that a prediction uses unless limited."""
        return self._estimator.passes(self.config)

    @property
    def sigma_name(self) -> str:
        """Identifier of the published sigma: method, calibration and measurements."""
        calibration = self._calibration_in(self.config).sigma_map.name
        return sigma_name(f"{self.method}, calibration {calibration}", self.config.measurements)

    @property
    def half_widths(self) -> HalfWidths:
        """Half widths of intervals in sigmas: measured by the calibration in use, else the head's.

        Without a head, which determines the distribution, a Gaussian's half widths are used.
        """
        return self._calibration_in(self.config).half_widths

    @property
    def data_monitor(self) -> DataMonitor:
        """Compares the data with the data that the calibration in use was fitted to."""
        return self._calibration_in(self.config).monitor

    def describe(self) -> dict[str, Any]:
        """Return model and options as plain values for a report."""
        networks = self._estimator.networks
        weights = set(chain.from_iterable(network.parameters() for network in networks))
        config = self.config
        network_config = networks[-1].config
        calibration = self._calibration_in(config)
        fitted_to = calibration.monitor.fitted_to
        guarantee = calibration.guarantee
        passes = self._estimator.passes(config)
        return {
            "name": self.model.name,
            "method": self.method,
            "samples": passes,
            "seed": config.seed,
            "device": self._loaded.place,
            "precision": self._loaded.precision,
            "engine": self._loaded.engine,
            "calibration": calibration.sigma_map.name if config.calibrated else "off",
            **({"fitted_to": fitted_to.to_mapping()} if fitted_to else {}),
            **calibration.half_widths.to_mapping(),
            **({"frame_guarantee": guarantee} if guarantee else {}),
            "parameters": sum(tensor.numel() for tensor in weights),
            "backbone": network_config.backbone,
            "head": network_config.head,
            **({"measurements": config.measurements} if config.measurements else {}),
            "input_size": list(network_config.input_size),
            "depth_range": list(network_config.depth_range),
            "canonical_focal_length": network_config.canonical_focal_length,
            **(self._unfamiliarity.describe() if self._unfamiliarity else {}),
            "training": self.model.training,
        }


def _at_image(
    frame: Frame,
    maps: NDArray[np.float32],
    factor: np.float32,
    unfamiliarity: float | None,
    calibration: SigmaCalibration,
) -> DepthPrediction:
    """Return a prediction at the image's size, its sigma calibrated at the network's.

    Sigma, not the variance, is interpolated: neighbouring pixels' errors are fully correlated, and
    the standard deviation of a weighted sum of such errors is the weighted sum of their standard
    deviations. Pixels outside the lens's view have neither depth nor sigma.
    """
    raw_m = factor * maps[1]
    calibration.monitor.add_sigma(raw_m)
    calibrated_m = calibration.sigma_map(raw_m)
    height, width = frame.need_image().shape[:2]
    size = (width, height)
    depth_m = cv2.resize(maps[0], size, interpolation=cv2.INTER_LINEAR)
    depth_m *= factor
    sigma_m = cv2.resize(calibrated_m, size, interpolation=cv2.INTER_LINEAR)
    unknown = ~(np.isfinite(depth_m) & np.isfinite(sigma_m))
    if frame.camera is not None and frame.camera.seen is not None:
        unknown |= ~frame.camera.seen
    depth_m[unknown] = np.nan
    sigma_m[unknown] = np.nan
    return DepthPrediction(depth_m, sigma_m, unfamiliarity=unfamiliarity)
