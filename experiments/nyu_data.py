# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The official split of NYU Depth v2, or its first frames for a quick run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from experiments.subset import first_frames
from uncertainty_depth.config import SourceConfig
from uncertainty_depth.frames.source import Source, open_source


@dataclass(frozen=True)
class Splits:
    """The two official parts: 795 training images, 654 test images."""

    train: Source
    test: Source


def open_splits(folder: Path, train_frames: int = 0, test_frames: int = 0) -> Splits:
    """Open both parts of the NYU folder, all frames where a number is 0, else the first ones.

    Raises:
        SourceError: the folder, its split files or its images are missing.
    """
    return Splits(_open(folder, "train", train_frames), _open(folder, "test", test_frames))


def _open(folder: Path, part: str, frames: int) -> Source:
    source = open_source(f"nyu:{folder}:{part}", SourceConfig())
    return first_frames(source, frames) if frames else source
