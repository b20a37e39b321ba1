# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Predictions as files: folders of 16-bit PNG, 32-bit TIFF or .npy, with ground truth beside."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from uncertainty_depth.core.config.source import PredictionConfig, PredictionTopics
from uncertainty_depth.core.errors import MessageError, SourceError
from uncertainty_depth.core.records import Frame, RecordedMaps
from uncertainty_depth.frames.image_files import read_metres, read_pixels, read_values
from uncertainty_depth.frames.map_assembly import ReportImage, fitted
from uncertainty_depth.frames.messages.images import (
    UNMATCHED_REASONS,
    as_ground_truth,
    check_sizes,
    depth_of,
)
from uncertainty_depth.frames.protocol import RECORDED, FileSource, folder_and_options, per_metre

DEPTH = "depth"
CONFIDENCE = "confidence"
GROUND_TRUTH = "ground_truth"
IMAGE = "image"
MAP_SUFFIXES = (".png", ".tif", ".tiff", ".npy")
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg")
LAYOUT = (
    "expected the folders depth, ground_truth and, unless the depth is scored alone, confidence, "
    f"with files of equal names ({', '.join(MAP_SUFFIXES)})"
)


def has_confidence(notation: str, topics: PredictionTopics) -> bool:
    """Return whether a source of recorded predictions has confidence beside the depth."""
    if not notation.startswith(RECORDED):
        return bool(topics.confidence_topic)
    return (folder_and_options(notation, ("per_metre",))[0] / CONFIDENCE).is_dir()


class RecordedFolder(FileSource):
    """Depth and confidence of `DIR/depth` and `DIR/confidence`, paired by the files' names.

    The ground truth is in `DIR/ground_truth`, the camera images may be in `DIR/image`. Whole
    numbers of 16 bits or more are millimetres, or `per_metre` to the metre, others metres. Frames
    come in their names' order, and their index is their time.
    """

    def __init__(self, notation: str, meaning: PredictionConfig) -> None:
        """List the files of `predictions:DIR[,per_metre=256]`, or raise `SourceError`."""
        self.name = notation
        self._meaning = meaning
        folder, options = folder_and_options(notation, ("per_metre",))
        self._per_metre = per_metre(notation, options)
        self._depth = _files(folder / DEPTH)
        self._ground_truth = _files(folder / GROUND_TRUTH)
        is_read = meaning.confidence_type != "none" and (folder / CONFIDENCE).is_dir()
        self._confidence = _files(folder / CONFIDENCE) if is_read else None
        self._names = sorted(self._depth.keys() | (self._confidence or {}).keys())
        unused = len(self._ground_truth.keys() - self._depth.keys())
        self._notes = [f"{unused} files of {GROUND_TRUTH} have no depth"] if unused else []
        has_images = (folder / IMAGE).is_dir()
        self._images = _files(folder / IMAGE, IMAGE_SUFFIXES) if has_images else {}

    def __len__(self) -> int:
        return len(self._names)

    def _stamp_ns(self, index: int) -> int:
        return index

    def _frame(self, index: int) -> Frame:
        name = self._names[index]
        if name not in self._depth:
            raise MessageError(
                UNMATCHED_REASONS[1], f"{name}: it is in {CONFIDENCE}, not in {DEPTH}"
            )
        if self._confidence is not None and name not in self._confidence:
            raise MessageError(
                UNMATCHED_REASONS[0], f"{name}: it is in {DEPTH}, not in {CONFIDENCE}"
            )
        if name not in self._ground_truth:
            raise MessageError(
                "no_ground_truth", f"{name}: it is in {DEPTH}, not in {GROUND_TRUTH}"
            )
        if self._meaning.depth_type == "inverse_depth":
            depth = depth_of(read_values(self._depth[name]), is_inverse=True)
        else:
            depth = read_metres(self._depth[name], self._per_metre)
        confidence = None
        if self._confidence is not None:
            if self._meaning.confidence_type in ("", "sigma"):
                confidence = read_metres(self._confidence[name], self._per_metre, is_sigma=True)
            else:
                confidence = read_values(self._confidence[name]).astype(np.float32)
            check_sizes(depth, confidence)
        truth = read_metres(self._ground_truth[name], self._per_metre)
        shape = (depth.shape[0], depth.shape[1])
        ground_truth_m = as_ground_truth(truth, shape)
        image = self._image(name, shape)
        maps = RecordedMaps(depth, confidence)
        frame = Frame(index, name, ground_truth_m=ground_truth_m, recorded=maps)
        return frame if image is None else replace(frame, **image._asdict())

    def _image(self, name: str, shape: tuple[int, int]) -> ReportImage | None:
        if name not in self._images:
            return None
        try:
            pixels = read_pixels(self._images[name])
        except MessageError:  # it is shown in the report, and in no score
            return None
        return fitted(pixels, shape, same_camera=True)


def _files(folder: Path, suffixes: tuple[str, ...] = MAP_SUFFIXES) -> dict[str, Path]:
    """Return name to path for the files with one of the suffixes."""
    if not folder.is_dir():
        raise SourceError(f"no such folder: {folder}; {LAYOUT}")
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in suffixes:
            continue
        if path.stem in files:
            raise SourceError(
                f"{folder} has {files[path.stem].name} and {path.name}; expected one file a frame"
            )
        files[path.stem] = path
    if not files:
        if archives := sorted(folder.glob("*.npz")):
            raise SourceError(
                f"{archives[0]} is an .npz archive of several arrays; expected one map a frame, "
                f"{', '.join(suffixes)}"
            )
        raise SourceError(f"{folder} has no file of {', '.join(suffixes)}; {LAYOUT}")
    return files
