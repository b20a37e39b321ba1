# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Read a source into arrays at the network's size, and split it for validation."""

from __future__ import annotations

import logging
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from uncertainty_depth.errors import SourceError
from uncertainty_depth.frames.source import Source
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.geometry.focal_length import depth_factor
from uncertainty_depth.geometry.resampling import resample_depth
from uncertainty_depth.network.encoder import image_tensor, resize_image, upload
from uncertainty_depth.records import Frame, Skipped

logger = logging.getLogger(__name__)

VALIDATION_BLOCKS = 5
FILES = (".images.npy", ".depths_m.npy")


@dataclass
class TrainingFrames:
    """Training frames at the network's size.

    They take 3 + 2 bytes per pixel, 0.1 MB per frame at 160x128.

    Attributes:
        images: per frame (h, w, 3) uint8, RGB.
        depths_m: per frame (h, w) float16, metres, NaN where unknown. Half precision rounds by at
            most 0.05 %.
            Of a canonical camera, where there is one.
        cameras: per frame the camera at the source's size; empty where the frames were mapped.
        canonical: relative focal length of the canonical camera; 0 for none.
        skipped: how many records of the source gave no frame to train on, by reason.
    """

    images: list[NDArray[np.uint8]] = field(default_factory=list)
    depths_m: list[NDArray[np.float16]] = field(default_factory=list)
    cameras: list[Camera | None] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    canonical: float = 0.0

    def __len__(self) -> int:
        return len(self.images)

    def add(self, frame: Frame, width: int, height: int) -> None:
        """Resize and store a frame, or count it as skipped if no ground truth is left."""
        truth_m = frame.need_ground_truth()
        if frame.camera is not None:
            truth_m = frame.camera.only_seen(truth_m)
        depth_m = resample_depth(truth_m, width, height)
        depth = (depth_m / depth_factor(frame.camera, self.canonical)).astype(np.float16)
        if np.isnan(depth).all():
            self.skipped["no_ground_truth"] += 1
            return
        self.images.append(resize_image(frame.need_image(), (width, height)))
        self.depths_m.append(depth)
        self.cameras.append(frame.camera)

    def depth_m(self, index: int) -> NDArray[np.float32]:
        """Return the depth of a frame as its own camera has it, (h, w), metres."""
        factor = depth_factor(self.cameras[index], self.canonical)
        return self.depths_m[index].astype(np.float32) * np.float32(factor)

    def batch(
        self, indices: Sequence[int], device: torch.device | str = "cpu"
    ) -> tuple[Tensor, Tensor]:
        """Return images (B, 3, h, w) in [0, 1] and depth (B, 1, h, w) in metres, float32.

        Unknown depth is NaN.
        """
        images = image_tensor(np.stack([self.images[index] for index in indices]), device)
        depths = torch.from_numpy(np.stack([self.depths_m[index] for index in indices]))
        depths = upload(depths, device)
        return images, depths[:, None].float()

    def save(self, folder: Path) -> None:
        """Write all pixels to files in `folder`, which other processes map into memory."""
        frames: tuple[Sequence[NDArray[Any]], ...] = (self.images, self.depths_m)
        for name, arrays in zip(FILES, frames, strict=True):
            file = np.lib.format.open_memmap(
                folder / name, "w+", arrays[0].dtype, (len(arrays), *arrays[0].shape)
            )
            for index, array in enumerate(arrays):
                file[index] = array

    @classmethod
    def mapped(cls, folder: Path) -> TrainingFrames:
        """Return the frames that `save` wrote, mapped read-only and shared by all processes."""
        return cls(*(np.load(folder / name, mmap_mode="r") for name in FILES))

    def fingerprint(self) -> str:
        """Return a checksum of all pixels; a resumed training must read the same frames."""
        checksum = 0
        arrays: list[NDArray[Any]] = [*self.images, *self.depths_m]
        for array in arrays:
            checksum = zlib.crc32(array.tobytes(), checksum)
        return f"{len(self)}-{checksum:08x}"

    def fraction_outside(self, min_m: float, max_m: float) -> float:
        """Return the fraction of the known pixels outside a depth range."""
        valid_depths = [depth[~np.isnan(depth)] for depth in self.depths_m]
        outside = sum(int(((values < min_m) | (values > max_m)).sum()) for values in valid_depths)
        return outside / sum(values.size for values in valid_depths)


def read_frames(
    source: Source, size: tuple[int, ...], max_frames: int = 0, canonical: float = 0.0
) -> TrainingFrames:
    """Read the source once; at most `max_frames`, evenly spaced, if that is not 0.

    Args:
        source: of the frames.
        size: width and height of the network's input.
        max_frames: 0 for all.
        canonical: relative focal length of the canonical camera whose depth is learnt; 0 for none.

    Raises:
        SourceError: fewer than two frames have ground truth: one to train on, one to validate on.
    """
    frames = TrainingFrames(canonical=canonical)
    width, height = size
    selected = evenly_spread(len(source), max_frames)
    for index, record in enumerate(
        tqdm(source, f"reading {source.name}", len(source), unit="frame")
    ):
        if isinstance(record, Skipped):
            frames.skipped[record.reason] += 1
        elif selected is None or index in selected:
            frames.add(record, width, height)
    _report(source, frames)
    return frames


def evenly_spread(count: int, max_count: int) -> set[int] | None:
    """Return the indices of at most `max_count` of `count` frames, evenly spaced; None for all."""
    return (
        None
        if max_count == 0 or max_count >= count
        else {index * count // max_count for index in range(max_count)}
    )


def _report(source: Source, frames: TrainingFrames) -> None:
    losses = ", ".join(f"{reason}: {count}" for reason, count in sorted(frames.skipped.items()))
    if len(frames) < 2:
        raise SourceError(
            f"{source.name} has {len(frames)} frames with ground truth "
            f"({losses or 'none skipped'}); expected at least 2 to train on"
        )
    for note in source.notes:
        logger.warning("%s", note)
    if losses:
        logger.warning("%s: %d frames to train on, skipped %s", source.name, len(frames), losses)


def split(count: int, validation_fraction: float, seed: int) -> tuple[list[int], list[int]]:
    """Return training and validation frames: contiguous blocks in time, chosen by the seed.

    Neighbouring frames of a drive show nearly the same image. A random split would put a twin of
    every validation frame among the training frames and call memory skill, so whole blocks are
    held out: about `VALIDATION_BLOCKS` of them where there are frames enough.

    Returns:
        Two sorted lists of indices, disjoint, together all of `count`, neither empty for `count`
        >= 2.
    """
    held_out = min(max(round(validation_fraction * count), 1), count - 1)
    blocks = min(max(round(VALIDATION_BLOCKS / validation_fraction), 2), count)
    edges = [index * count // blocks for index in range(blocks + 1)]
    validation: list[int] = []
    for block in np.random.default_rng(seed).permutation(blocks):
        room = held_out - len(validation)
        validation += range(edges[block], min(edges[block + 1], edges[block] + room))
    return sorted(set(range(count)) - set(validation)), sorted(validation)
