# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The command `predict`, which runs a model on image files.

For each it writes `STEM_depth.tiff` and `STEM_sigma.tiff`, 32-bit floats in metres, and
`STEM_plot.png`: image, depth and sigma side by side, above their scales.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from uncertainty_depth.cli.arguments import (
    MODEL,
    Command,
    flag,
    positional,
    positive_float,
    written,
)
from uncertainty_depth.core import atomic
from uncertainty_depth.core.config.nodes import ColorConfig
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.core.model_location import check_location, model_path
from uncertainty_depth.core.output import OutputFolder
from uncertainty_depth.core.process import deferred_interrupt
from uncertainty_depth.core.records import DepthPrediction

PANEL_WIDTH = 480
PANEL_HEIGHT = 960
"""Largest side of each panel of a plot, pixels."""
RESULTS = ("depth.tiff", "sigma.tiff", "plot.png")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Predict(Command):
    """Predict depth and sigma of image files: TIFF maps in metres, and a plot of each."""

    example = "photo.jpg --model my_model --output maps"
    images: list[Path] = positional(type=Path, nargs="+", help="image files")
    model: Path = flag(type=Path, required=True, help=MODEL)
    output: Path = written("DIR", "folder for the maps")
    focal_length: float | None = flag(
        type=positive_float,
        metavar="PIXELS",
        help="focal length of the images, pixels: a model for any camera gives metres of its own "
        "training camera without it",
    )
    predictor: PredictorConfig
    colors: ColorConfig

    def _run(self) -> None:
        model = model_path(self.model)
        results = _results(self.images)
        output = OutputFolder(self.output, "maps")
        output.check([*self.images, model], results)
        check_location(model)
        from uncertainty_depth.core.geometry.camera import Camera
        from uncertainty_depth.depth.predictor import Predictor
        from uncertainty_depth.frames.image_files import read_rgb

        predictor = Predictor(self.model, self.predictor)
        if self.predictor.measurements:
            logger.warning(
                "measurements is %r, and image files bring none: depth is from the image alone",
                self.predictor.measurements,
            )
        unreadable = []
        unfamiliar = []
        with output.adding(results), deferred_interrupt() as interrupt:
            for index, path in enumerate(tqdm(self.images, unit="image")):
                if interrupt.requested:
                    raise KeyboardInterrupt
                try:
                    image = read_rgb(path)
                except SourceError as error:
                    unreadable.append(str(error))
                    continue
                camera = None
                if self.focal_length is not None:
                    height, width = image.shape[:2]
                    camera = Camera.pinhole(self.focal_length, width, height)
                prediction = predictor.predict(image, index, camera)
                print(_write(output.path / path.stem, image, prediction, self.colors))
                unfamiliarity = prediction.unfamiliarity
                if unfamiliarity is not None and unfamiliarity > 1:
                    unfamiliar.append(f"{path} ({unfamiliarity:.2f})")
        if unfamiliar:
            logger.warning(
                "%d of %d images look unlike the training images, so do not trust their depth or "
                "sigma: %s; only a few %% of familiar images score above 1",
                len(unfamiliar),
                len(self.images),
                ", ".join(unfamiliar),
            )
        if unreadable:
            count = f"{len(unreadable)} of {len(self.images)} images"
            raise SourceError(f"{count} could not be read: {'; '.join(unreadable)}")


def _results(paths: Sequence[Path]) -> list[str]:
    """Return the names of all results; raise `SourceError` if two images have the same ones."""
    for stem, count in Counter(path.stem for path in paths).items():
        if count > 1:
            raise SourceError(
                f"{count} images are called {stem}: their maps would have the same names; "
                "expected different names"
            )
    return [f"{path.stem}_{suffix}" for path in paths for suffix in RESULTS]


def _write(
    stem: Path, image: NDArray[np.uint8], prediction: DepthPrediction, colors: ColorConfig
) -> Path:
    """Write an image's maps and plot; return the plot's path."""
    import cv2

    from uncertainty_depth.report.images import (
        DEPTH_COLORS,
        SIGMA_COLORS,
        color_scales,
        colorize,
        encoded_pixels,
    )

    maps = {"depth": prediction.depth_m, "sigma": prediction.sigma_m}
    for name, values in maps.items():
        _, content = cv2.imencode(".tiff", values)
        atomic.write_bytes(stem.with_name(f"{stem.name}_{name}.tiff"), content.tobytes())
    height, width = image.shape[:2]
    scale = min(PANEL_WIDTH / width, PANEL_HEIGHT / height)
    size = max(round(scale * width), 1), max(round(scale * height), 1)
    panels = (
        image,
        colorize(prediction.depth_m, colors.color_max_depth, DEPTH_COLORS),
        colorize(prediction.sigma_m, colors.color_max_sigma, SIGMA_COLORS),
    )
    row = np.hstack([cv2.resize(each, size, interpolation=cv2.INTER_AREA) for each in panels])
    scales = color_scales(colors.color_max_depth, colors.color_max_sigma)
    total = max(row.shape[1], scales.shape[1])
    parts = [
        np.pad(part, ((0, 0), (0, total - part.shape[1]), (0, 0)), constant_values=255)
        for part in (row, scales)
    ]
    path = stem.with_name(f"{stem.name}_plot.png")
    atomic.write_bytes(path, encoded_pixels(np.vstack(parts)))
    return path
