# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Frames from a folder of NYU Depth v2 (Silberman et al., ECCV 2012).

Its files: `rgb/NNNN.jpg`, `depth/NNNN.png`, `train.txt` and `test.txt`.
"""

from __future__ import annotations

import math
from itertools import chain
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core import strict
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.errors import MessageError, SourceError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import Frame
from uncertainty_depth.frames.image_files import read_metres, read_pixels
from uncertainty_depth.frames.protocol import FileSource

PARTS = {
    "": ("fit", "calibrate", "test"),
    "train": ("fit", "calibrate"),
    "fit": ("fit",),
    "calibrate": ("calibrate",),
    "test": ("test",),
}
"""Each split's parts. The official training images are ordered by scene: fit is their first four
fifths and calibrate the last, for calibrating on scenes that a training on fit has not seen."""
FRAME_PERIOD_NS = 100_000_000  # nominal: the set has no times
_SIZE = (320, 240)
_INTRINSICS = np.array(
    [[259.43, 0.0, 162.79], [0.0, 259.73, 126.87], [0.0, 0.0, 1.0]]
)  # of the Kinect's colour camera, at 320x240
_CROP = (
    slice(22, 236),
    slice(20, 301),
)  # rows 22-235, columns 20-300 at 320x240: the usual evaluation crop, without the white border
_WHITE_BORDER = 5  # pixels at 320x240


def open_source(rest: str, config: SourceConfig) -> NyuSource:
    """Return the source of `DIR[:SPLIT]`."""
    return NyuSource(*_folder_and_split(rest))


def frames_of(rest: str) -> tuple[Path, set[object]]:
    """Return the folder and the parts of its images that `DIR[:SPLIT]` has."""
    folder, split = _folder_and_split(rest)
    return folder, set(PARTS[split])


def _folder_and_split(rest: str) -> tuple[Path, str]:
    folder, colon, split = rest.rpartition(":")
    return (Path(folder), split) if colon and split in PARTS else (Path(rest), "")


class NyuSource(FileSource):
    """A folder's labelled images, of one split or of all in order. A `Source`.

    Depth is millimetres in 16 bits, 0 = none. Outside the usual evaluation crop it is taken as
    unknown: the images have a white border there. The border is replaced with mirrored pixels from
    inside it; otherwise a network would learn to recognise this camera by it. Stamps are nominal:
    the official index times 0.1 s.
    """

    def __init__(self, folder: Path, split: str = "") -> None:
        """Read the lists of images in one of `PARTS`; raise `SourceError` if files are missing."""
        self.name = f"nyu:{folder}" + (f":{split}" if split else "")
        self._folder = folder
        if not folder.is_dir():
            raise SourceError(f"no such NYU folder: {folder}")
        for part in ("rgb", "depth"):
            if not (folder / part).is_dir():
                raise SourceError(f"{folder} is not an NYU folder: it has no {part}/")
        self._names = sorted(
            chain.from_iterable(_read_part(folder, part) for part in PARTS[split])
        )

    def __len__(self) -> int:
        return len(self._names)

    def _stamp_ns(self, index: int) -> int:
        return int(self._names[index]) * FRAME_PERIOD_NS

    def _frame(self, index: int) -> Frame:
        name = self._names[index]
        image = read_pixels(self._folder / "rgb" / f"{name}.jpg")
        height, width = image.shape[:2]
        depth_m = read_metres(self._folder / "depth" / f"{name}.png", 1000)
        if depth_m.shape != (height, width):
            raise MessageError(
                "depth_undecodable",
                f"{self._folder}/depth/{name}.png has shape {depth_m.shape}; expected "
                f"{(height, width)}, the image's",
            )
        camera = Camera(*_SIZE, _INTRINSICS).scaled(width, height)
        rgb = without_border(image)
        return Frame(self._stamp_ns(index), name, camera, rgb, ground_truth_m=cropped(depth_m))


def without_border(image: NDArray[np.integer | np.floating]) -> NDArray[np.uint8]:
    """Return an (H, W, 3) image whose white border is replaced by the mirrored pixels inside."""
    border = math.ceil(_WHITE_BORDER * image.shape[0] / _SIZE[1])
    inside = image[border:-border, border:-border]
    mirrored = cv2.copyMakeBorder(inside, border, border, border, border, cv2.BORDER_REFLECT_101)
    return mirrored.astype(np.uint8, copy=False)


def cropped(depth_m: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return (H, W) metres with NaN outside the scaled evaluation crop."""
    height, width = depth_m.shape
    rows = _scaled(_CROP[0], height, _SIZE[1])
    columns = _scaled(_CROP[1], width, _SIZE[0])
    inside = np.full_like(depth_m, np.nan)
    inside[rows, columns] = depth_m[rows, columns]
    return inside


def _scaled(part: slice, size: int, reference: int) -> slice:
    return slice(round(part.start * size / reference), round(part.stop * size / reference))


def _read_part(folder: Path, part: str) -> list[str]:
    split = "test" if part == "test" else "train"
    path = folder / f"{split}.txt"
    if not path.exists():
        raise SourceError(f"{folder} has no {split}.txt that lists the {split} images")
    names = strict.read_text(path).split()
    if not names or not all(name.isdigit() for name in names):
        raise SourceError(
            f"{path} lists {len(names)} images; expected one number per line, as the images are "
            "named"
        )
    names.sort()
    border = len(names) * 4 // 5
    return {"fit": names[:border], "calibrate": names[border:], "test": names}[part]
