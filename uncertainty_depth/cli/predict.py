# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The command `predict`, which runs a model on image files."""

from __future__ import annotations

import argparse
import logging

from uncertainty_depth.config import ColorConfig, PredictorConfig
from uncertainty_depth.errors import SourceError
from uncertainty_depth.model_location import check_location, model_path
from uncertainty_depth.options import from_arguments
from uncertainty_depth.records import Skipped

logger = logging.getLogger(__name__)


def predict(arguments: argparse.Namespace) -> None:
    """Predict depth and sigma of image files: TIFF maps in metres, and a plot of each."""
    check_location(model_path(arguments.model))
    from uncertainty_depth.inference.predict_files import predict_files
    from uncertainty_depth.inference.predictor import Predictor

    predictor = Predictor(arguments.model, from_arguments(PredictorConfig, arguments))
    if predictor.sparse_input is not None:
        logger.warning(
            "%s takes sparse depth beside the image, and image files bring none: depth is from "
            "the image alone",
            predictor.model.name,
        )
    colors = from_arguments(ColorConfig, arguments)
    unreadable = []
    unfamiliar = []
    for result in predict_files(
        predictor, arguments.images, arguments.output, colors, arguments.focal_length
    ):
        if isinstance(result, Skipped):
            unreadable.append(result.message)
            continue
        print(result.plot)
        if result.unfamiliarity is not None and result.unfamiliarity > 1:
            unfamiliar.append(f"{result.image} ({result.unfamiliarity:.2f})")
    if unfamiliar:
        logger.warning(
            "%d of %d images look unlike the training images, so do not trust their depth or "
            "sigma: %s; above 1 is what a few in a hundred images like the training's reach",
            len(unfamiliar),
            len(arguments.images),
            ", ".join(unfamiliar),
        )
    if unreadable:
        count = f"{len(unreadable)} of {len(arguments.images)} images"
        raise SourceError(f"{count} could not be read: {'; '.join(unreadable)}")
