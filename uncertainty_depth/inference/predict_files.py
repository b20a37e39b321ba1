# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Predict depth and sigma for image files, and plot them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from tqdm import tqdm

from uncertainty_depth import atomic
from uncertainty_depth.config import ColorConfig
from uncertainty_depth.errors import SourceError
from uncertainty_depth.figure_bytes import encoded
from uncertainty_depth.frames.predicted import DepthPredictor
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.images import read_rgb
from uncertainty_depth.interrupt import deferred_interrupt
from uncertainty_depth.records import DepthPrediction, Skipped
from uncertainty_depth.report.images import DEPTH_COLORS, SIGMA_COLORS, panel_aspect

DPI = 110
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
    image and both maps. Ctrl-C ends it after the current image.

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
    path = stem.with_name(f"{stem.name}_plot.png")
    atomic.write_bytes(path, encoded(prediction_figure(image, prediction, colors), DPI))
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


def prediction_figure(
    image: NDArray[np.uint8], prediction: DepthPrediction, colors: ColorConfig
) -> Figure:
    """Return a figure of image, depth and sigma side by side, with colour bars in metres."""
    figure = Figure(figsize=(15, 5 * panel_aspect(image.shape) + 0.8), layout="constrained")
    axes = figure.subplots(1, 3)
    axes[0].imshow(image)
    axes[0].set_title("image")
    panels = (
        ("depth (m)", prediction.depth_m, DEPTH_COLORS, colors.color_max_depth),
        ("standard deviation (m)", prediction.sigma_m, SIGMA_COLORS, colors.color_max_sigma),
    )
    for axis, (title, values, color_map, maximum) in zip(axes[1:], panels, strict=True):
        mappable = axis.imshow(
            values, cmap=color_map, vmin=0, vmax=maximum, interpolation="nearest"
        )
        figure.colorbar(mappable, ax=axis, orientation="horizontal", extend="max", aspect=40)
        axis.set_title(title)
    for axis in axes:
        axis.set_xticks([])
        axis.set_yticks([])
    return figure
