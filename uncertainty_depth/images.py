# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Whatever holds an image, as an array: image files, PIL images."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.errors import SourceError

if TYPE_CHECKING:
    from PIL.Image import Image

ImageLike = Union[NDArray[np.uint8], "Image", "os.PathLike[str]", str]


def as_rgb(image: ImageLike) -> NDArray[np.uint8]:
    """Return an array as it is, and a PIL image or an image file as (H, W, 3) uint8 RGB.

    Raises:
        SourceError: the file is missing or not a readable image.
    """
    if isinstance(image, (str, os.PathLike)):
        return read_rgb(Path(image))
    if hasattr(image, "convert"):  # PIL's, which need not be installed
        image = image.convert("RGB")
    array: NDArray[Any] = np.asarray(image)
    return array


def read_rgb(path: Path) -> NDArray[np.uint8]:
    """Read an image file as (H, W, 3) uint8 RGB.

    Raises:
        SourceError: the file is missing or not a readable image.
    """
    if path.is_dir():
        raise SourceError(f"{path} is a folder; expected image files")
    if not path.is_file():
        raise SourceError(f"no such image: {path}")
    import cv2

    try:
        image = cv2.imread(str(path), cv2.IMREAD_COLOR)
    except cv2.error as error:  # more pixels than OpenCV decodes
        raise SourceError(f"{path} cannot be decoded: {error.err}") from error
    if image is None:
        raise SourceError(f"{path} is not an image that OpenCV can read")
    return cv2.cvtColor(image, cv2.COLOR_BGR2RGB).astype(np.uint8, copy=False)
