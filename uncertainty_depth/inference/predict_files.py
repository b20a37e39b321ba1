"""Depth and sigma of image files, written beside a picture of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from uncertainty_depth.errors import SourceError
from uncertainty_depth.evaluation.evaluate import DepthPredictor
from uncertainty_depth.evaluation.images import DEPTH_COLORS, SIGMA_COLORS, colorize
from uncertainty_depth.records import DepthPrediction


def predict_files(
    predictor: DepthPredictor, images: Iterable[Path], output: Path
) -> Iterator[Path]:
    """Write `STEM_depth.tiff` and `STEM_sigma.tiff` (32-bit float, metres) and `STEM_picture.png` for each image; yield the picture's path.

    Raises:
        SourceError: for a file that is missing or no image, and before anything is written where a result would replace an image or another result.
    """
    paths = list(images)
    _refuse_overwriting(paths, output)
    output.mkdir(parents=True, exist_ok=True)
    for index, path in enumerate(tqdm(paths, unit="image")):
        image = read_rgb(path)
        prediction = predictor.predict(image, index)
        cv2.imwrite(str(output / f"{path.stem}_depth.tiff"), prediction.depth_m)
        cv2.imwrite(str(output / f"{path.stem}_sigma.tiff"), prediction.sigma_m)
        picture = output / f"{path.stem}_picture.png"
        cv2.imwrite(str(picture), cv2.cvtColor(side_by_side(image, prediction), cv2.COLOR_RGB2BGR))
        yield picture


def _refuse_overwriting(paths: list[Path], output: Path) -> None:
    twice = next(
        (stem for stem, count in Counter(path.stem for path in paths).items() if count > 1), None
    )
    if twice is not None:
        raise SourceError(
            f"two images are called {twice}: their maps would have the same names; expected different names"
        )
    results = {
        (output / f"{path.stem}_{kind}").resolve()
        for path in paths
        for kind in ("depth.tiff", "sigma.tiff", "picture.png")
    }
    clash = next((path for path in paths if path.resolve() in results), None)
    if clash is not None:
        raise SourceError(f"{clash} would be replaced by a result; expected another output folder")


def read_rgb(path: Path) -> NDArray[np.uint8]:
    """An image file as (H, W, 3) uint8 RGB."""
    if path.is_dir():
        raise SourceError(f"{path} is a folder; expected image files")
    if not path.is_file():
        raise SourceError(f"no such image: {path}")
    image = cv2.imread(str(path), cv2.IMREAD_COLOR)
    if image is None:
        raise SourceError(f"{path} is not an image that OpenCV can read")
    return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


def side_by_side(image: NDArray[np.uint8], prediction: DepthPrediction) -> NDArray[np.uint8]:
    """Image, depth and sigma in one row, (H, 3 W, 3) uint8 RGB; each map's scale ends at its 98th percentile."""
    maps = ((prediction.depth_m, DEPTH_COLORS), (prediction.sigma_m, SIGMA_COLORS))
    drawn = [
        colorize(values, max(float(np.nanpercentile(values, 98)), 1e-6), colors)
        for values, colors in maps
    ]
    return np.concatenate([image, *drawn], axis=1)
