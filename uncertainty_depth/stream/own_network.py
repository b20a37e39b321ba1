# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A network of the user's own: a Python class with `predict`, named as `FOLDER/MODULE:CLASS`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.errors import ConfigError, ModelError
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.core.records import DepthMap, DepthPrediction, Frame
from uncertainty_depth.frames.predicted import DepthPredictor, predict_frame
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.predicting import Facts, Predicting


class Network(Predicting):
    """Anything that predicts images.

    Attributes:
        name: of it, in reports; empty for a network that was not named.
    """

    def __init__(self, predictor: DepthPredictor, name: str = "") -> None:
        self._predictor = predictor
        self.name = name

    def predict(self, frame: Frame) -> DepthMap:
        """Return its prediction of a frame; raise `ModelError` for one that is none."""
        made: Any = predict_frame(self._predictor, frame)
        name = self.name or "the network"
        shape = frame.need_image().shape[:2]
        if not isinstance(made, DepthPrediction):
            raise ModelError(
                f"predict of {name} returned {type(made).__name__}; expected "
                "uncertainty_depth.DepthPrediction(depth_m, sigma_m)"
            )
        if made.depth_m.shape != shape or made.sigma_m.shape != shape:
            raise ModelError(
                f"{name} predicted depth {made.depth_m.shape} and sigma {made.sigma_m.shape} of "
                f"an image {shape}; expected both at the image's size"
            )
        return made

    def describe(self) -> Facts:
        """Return its name: no more is known."""
        return {"name": self.name} if self.name else {}


def open_own(job: Job) -> Network:
    """Import the class that a job's model names, and make one.

    Raises:
        ConfigError: an option is of this package's models.
        ModelError: there is no such class, or it cannot predict.
    """
    defaults = to_mapping(PredictorConfig())
    for name, value in to_mapping(job.predictor).items():
        if value != defaults[name]:
            raise ConfigError(
                f"{name} is {value!r}, but {job.model} is a class of your own, which takes no "
                f"options; expected no {name}"
            )
    place, _, name = job.model.rpartition(":")
    folder, _, module_name = place.rpartition("/")
    sys.path.insert(0, str(Path(folder or ".").resolve()))
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise ModelError(f"{job.model}: {module_name} needs {error.name}: {error}") from error
        raise ModelError(
            f"model is {job.model}, but {folder or 'the current folder'} has no Python module "
            f"{module_name}"
        ) from error
    made = getattr(module, name, None)
    network: Any = made() if isinstance(made, type) else made
    if not callable(getattr(network, "predict", None)):
        raise ModelError(
            f"model is {job.model}, but {module.__file__} has no {name} with a method "
            "predict(image, stamp_ns, camera)"
        )
    return Network(network, name)
