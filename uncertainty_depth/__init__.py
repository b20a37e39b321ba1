# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Monocular depth with an error bar, and the scores that tell whether to trust the error bar.

    from uncertainty_depth import Predictor, evaluate, predicted

    print(evaluate(predicted("my_bag", Predictor("demo"))).verdict())

These names are imported when they are used: the metrics need neither torch nor transformers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from uncertainty_depth.core import version
from uncertainty_depth.core.errors import missing_in

if TYPE_CHECKING:
    from uncertainty_depth.core.geometry.camera import Camera
    from uncertainty_depth.core.records import DepthPrediction, Frame
    from uncertainty_depth.depth.predictor import Predictor
    from uncertainty_depth.metrics.online import OnlineMetrics
    from uncertainty_depth.report.evaluation import Evaluation, evaluate
    from uncertainty_depth.stream.stream import predicted

__version__ = version.__version__
__all__ = [
    "Camera",
    "DepthPrediction",
    "Evaluation",
    "Frame",
    "OnlineMetrics",
    "Predictor",
    "evaluate",
    "predicted",
]

MODULES = {
    "Camera": "uncertainty_depth.core.geometry.camera",
    "DepthPrediction": "uncertainty_depth.core.records",
    "Evaluation": "uncertainty_depth.report.evaluation",
    "Frame": "uncertainty_depth.core.records",
    "OnlineMetrics": "uncertainty_depth.metrics.online",
    "Predictor": "uncertainty_depth.depth.predictor",
    "evaluate": "uncertainty_depth.report.evaluation",
    "predicted": "uncertainty_depth.stream.stream",
}


def __dir__() -> list[str]:
    """Return the public names, which are not imported yet, so that shells complete them."""
    return ["__version__", *__all__]


def __getattr__(name: str) -> Any:
    """Import and return one of the names in `__all__`."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(MODULES[name]), name)
    except ModuleNotFoundError as error:
        raise ImportError(f"{name}: {missing_in(error) or error}") from error
