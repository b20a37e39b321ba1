"""From a camera image to depth and its standard deviation at the image's size; a model folder is all it needs."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.calibration import IDENTITY
from uncertainty_depth.calibration.data_monitor import DataMonitor
from uncertainty_depth.calibration.sigma_map import SigmaMap
from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.errors import ConfigError, MessageError
from uncertainty_depth.inference.deployment import choose_device, prepare
from uncertainty_depth.model_folder.folder import ModelFolder, read
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.network.image import image_tensor, resize_image
from uncertainty_depth.options import check
from uncertainty_depth.records import DepthPrediction
from uncertainty_depth.uncertainty import ESTIMATORS
from uncertainty_depth.uncertainty.estimator import Estimator

logger = logging.getLogger(__name__)

NO_MONITOR = DataMonitor("", None)
SINGLE = ("deterministic", "mc_dropout")
"""Methods that any model's last member can be run with."""


class Predictor:
    """A model folder, loaded and ready.

    `config.samples`, `chunk`, `seed` and `calibrated` may be changed at any time by giving `config` a new value; the next `predict` takes it.
    Any thread may call `predict`.

    Raises:
        ModelError: the folder cannot be used.
        ConfigError: an option is out of range, the model was not trained for the method, sigma lacks the component asked for, CUDA is asked for
            where there is none, or the device cannot compute in the precision.
    """

    def __init__(self, folder: Path | str, config: PredictorConfig = PredictorConfig()) -> None:  # noqa: B008  frozen
        check(config)
        self.config = config
        self.model = read(folder)
        self.method = _choose_method(config.method, self.model)
        self.device = choose_device(config.device)
        self._estimator: Estimator = ESTIMATORS[self.method].load(self.model, self._place)
        self._monitors = {
            key: DataMonitor(sigma_map.kind, self.model.fitted_to.get(key))
            for key, sigma_map in self.model.calibration.items()
            if sigma_map.kind != IDENTITY.kind
        }
        self._warn_of_certainty(self._trial())

    def predict(self, image: NDArray[np.uint8], stamp_ns: int = 0) -> DepthPrediction:
        """Depth and sigma of one image.

        Sigma, not the variance, is interpolated back to the image's size: errors of neighbouring pixels go together, and the standard
        deviation of a weighted sum of fully correlated errors is the weighted sum of their standard deviations. Then it is calibrated, if the
        model is and `config.calibrated` does not forbid it.

        Args:
            image: (H, W, 3) uint8, RGB, any size.
            stamp_ns: time of the image, nanoseconds; part of mc_dropout's seed.

        Raises:
            MessageError: the array is no such image.
            ConfigError: a new config asks for a component that sigma lacks.
        """
        _check_image(image)
        config = self.config
        depth, sigma = self._estimate(image, stamp_ns, config)
        size = (image.shape[1], image.shape[0])
        depth_m, sigma_m = (
            cv2.resize(values, size, interpolation=cv2.INTER_LINEAR) for values in (depth, sigma)
        )
        unknown = ~(np.isfinite(depth_m) & np.isfinite(sigma_m))
        depth_m[unknown] = sigma_m[unknown] = np.nan
        self._monitor(config).add_sigma(sigma_m)
        return DepthPrediction(depth_m, self._sigma_map(config)(sigma_m))

    def check(self, config: PredictorConfig) -> None:
        """Raise `ConfigError` unless this model's sigma has `config.component` with its samples."""
        known = self._estimator.components(config)
        if config.component not in known:
            passes, head = self._estimator.passes(config), self._estimator.networks[-1].config.head
            raise ConfigError(
                f"component is {config.component!r}, which {self.method} with samples {passes} and head {head!r} does not have; "
                f"expected {' or '.join(map(repr, known))}"
            )

    @property
    def calibration_key(self) -> str:
        """What the model folder keeps the calibration of this sigma under: the method, and the component where it is not the total."""
        return self._calibration_key(self.config)

    @property
    def data_monitor(self) -> DataMonitor:
        """Tells whether the data are like those that the calibration in use was fitted to."""
        return self._monitor(self.config)

    def describe(self) -> dict[str, Any]:
        """What made the predictions, as plain values for a report."""
        parameters = {
            id(weights): weights.numel()
            for network in self._estimator.networks
            for weights in network.parameters()
        }
        described = self._estimator.networks[-1].config
        return {
            "model": self.model.name,
            "method": self.method,
            "component": self.config.component,
            "samples": self._estimator.passes(self.config),
            "seed": self.config.seed,
            "device": str(self.device),
            "precision": self.config.precision,
            "calibration": self._sigma_map(self.config).kind if self.config.calibrated else "off",
            "parameters": sum(parameters.values()),
            "backbone": described.backbone,
            "head": described.head,
            "input_size": list(described.input_size),
            "depth_range": list(described.depth_range),
            "training": self.model.training,
        }

    def _estimate(
        self, image: NDArray[np.uint8], stamp_ns: int, config: PredictorConfig
    ) -> NDArray[np.float32]:
        """(2, h, w) depth and sigma at the network's size."""
        self.check(config)
        small = resize_image(image, self.model.network.input_size)
        return self._estimator.estimate(
            image_tensor(small[None], self.device), stamp_ns, config
        ).maps(config.component)

    def _calibration_key(self, config: PredictorConfig) -> str:
        return self.method if config.component == "total" else f"{self.method} {config.component}"

    def _sigma_map(self, config: PredictorConfig) -> SigmaMap:
        return (
            self.model.calibration.get(self._calibration_key(config), IDENTITY)
            if config.calibrated
            else IDENTITY
        )

    def _monitor(self, config: PredictorConfig) -> DataMonitor:
        key = self._calibration_key(config)
        return self._monitors.get(key, NO_MONITOR) if config.calibrated else NO_MONITOR

    def _place(self, network: DepthNetwork) -> DepthNetwork:
        return prepare(network, self.device, self.config.precision)

    def _trial(self) -> NDArray[np.float32]:
        """A black image before the first frame: an operation that lacks the precision is found now, and the first frame is as fast as the next."""
        if self.config.precision == "fp16" and str(self.device) == "cpu":
            logger.warning(
                "fp16 on the CPU is slow where the processor has no such arithmetic; expected bf16 or fp32 to be faster"
            )
        try:
            return self._estimate(
                np.zeros((8, 8, 3), np.uint8),
                0,
                replace(self.config, samples=min(self.config.samples, 2)),
            )
        except (RuntimeError, NotImplementedError) as error:
            name = self.config.precision
            raise ConfigError(
                f"precision is {name!r}, which does not work on {self.device}: {str(error).splitlines()[0]}"
            ) from error

    def _warn_of_certainty(self, trial: NDArray[np.float32]) -> None:
        if not trial[1].any():
            logger.warning(
                "%s with one pass and no scale head gives sigma = 0 everywhere: it claims certainty",
                self.method,
            )
        elif (
            self.method not in SINGLE
            and len(self._estimator.networks) == 1
            and "epistemic" not in self._estimator.components(self.config)
        ):
            logger.warning(
                "%s with one member: sigma is its scale head's alone, no ensemble's", self.method
            )


def _choose_method(asked: str, model: ModelFolder) -> str:
    """The model's own, or one that needs nothing of the training: a label must say how the members were made."""
    possible = [
        model.method,
        *(SINGLE if model.method not in (*SINGLE, "multi_epochs") else (*SINGLE, "multi_epochs")),
    ]
    if asked and asked not in possible:
        raise ConfigError(
            f"method is {asked!r}, but {model.path} was trained for {model.method!r}; expected {' or '.join(dict.fromkeys(possible))}"
        )
    return asked or model.method


def _check_image(image: NDArray[np.uint8]) -> None:
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        raise MessageError(
            "image_wrong_shape",
            f"image has shape {image.shape} of {image.dtype}; expected (H, W, 3) of uint8, H and W at least 1",
        )
