# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Predict depth and sigma for image files, and plot them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from uncertainty_depth import atomic
from uncertainty_depth.config import ColorConfig
from uncertainty_depth.errors import SourceError
from uncertainty_depth.figure_bytes import encoded_pixels
from uncertainty_depth.frames.predicted import DepthPredictor
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.images import read_rgb
from uncertainty_depth.interrupt import deferred_interrupt
from uncertainty_depth.records import DepthPrediction, Skipped
from uncertainty_depth.report.images import DEPTH_COLORS, SIGMA_COLORS, color_scales, colorize

PANEL_WIDTH = 480
PANEL_HEIGHT = 960
"""Of each panel of a plot, pixels at most."""
RESULTS = ("depth.tiff", "sigma.tiff", "plot.png")


class PredictedFile(NamedTuple):
    """An image file and its plot; `unfamiliarity` is as in `DepthPrediction`."""

    image: Path
    plot: Path
    unfamiliarity: float | None


def predict_files(
    predictor: DepthPredictor,
    images: Iterable[Path],
    output: Path,
    colors: ColorConfig,
    focal_length: float | None = None,
) -> Iterator[PredictedFile | Skipped]:
    """Predict depth and sigma for each image file, and write maps and a plot.

    `STEM_depth.tiff` and `STEM_sigma.tiff` hold 32-bit floats, metres; `STEM_plot.png` shows the
    image and both maps side by side, above their scales. Ctrl-C ends it after the current image.

    Args:
        predictor: predicts depth and sigma.
        images: files; no two may have the same stem.
        output: folder to write, created if missing.
        colors: scales of the plots.
        focal_length: every image's focal length, pixels; None if unknown.

    Yields:
        The prediction, or `Skipped` for a file that is missing or not an image.

    Raises:
        SourceError: a result would replace an image or another result; nothing is written.
        OSError: a result cannot be written.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    paths = list(images)
    _refuse_overwriting(paths, output)
    output.mkdir(parents=True, exist_ok=True)
    with deferred_interrupt() as interrupt:
        for index, path in enumerate(tqdm(paths, unit="image")):
            if interrupt.requested:
                raise KeyboardInterrupt
            try:
                image = read_rgb(path)
            except SourceError as error:
                yield Skipped(None, "unreadable_image", str(error))
                continue
            height, width = image.shape[:2]
            camera = None if focal_length is None else Camera.pinhole(focal_length, width, height)
            prediction = predictor.predict(image, index, camera)
            plot = _write(output / path.stem, image, prediction, colors)
            yield PredictedFile(path, plot, prediction.unfamiliarity)


def _write(
    stem: Path, image: NDArray[np.uint8], prediction: DepthPrediction, colors: ColorConfig
) -> Path:
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


def _refuse_overwriting(paths: list[Path], output: Path) -> None:
    stem_counts = Counter(path.stem for path in paths)
    results = set()
    for stem, count in stem_counts.items():
        if count > 1:
            raise SourceError(
                f"{count} images are called {stem}: their maps would have the same names; "
                "expected different names"
            )
        results |= {(output / f"{stem}_{suffix}").resolve() for suffix in RESULTS}
    for path in paths:
        if path.resolve() in results:
            raise SourceError(
                f"{path} would be replaced by a result; expected another output folder"
            )
