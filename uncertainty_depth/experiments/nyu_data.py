# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The official split of NYU Depth v2, or its first frames for a quick run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from uncertainty_depth.config import SourceConfig
from uncertainty_depth.data.source import Source, open_source
from uncertainty_depth.errors import SourceError
from uncertainty_depth.records import Frame, Skipped

VARIABLE = "UNCERTAINTY_DEPTH_DATA"
FOLDER = "nyuv2"


class FirstFrames:
    """The first frames of a source; the others are not decoded. A `Source`."""

    def __init__(self, source: Source, number: int) -> None:
        self.name = f"{source.name}, first {number}"
        self._source = source
        self._number = number

    @property
    def notes(self) -> list[str]:
        """Return the notes of the source."""
        return self._source.notes

    def __len__(self) -> int:
        """Return the number of frames."""
        return min(len(self._source), self._number)

    def __iter__(self) -> Iterator[Frame | Skipped]:
        """Iterate over the first frames."""
        return islice(self._source, self._number)


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
    if not frames:
        return source
    return FirstFrames(source, frames)


def data_folder(folder: Path | None) -> Path:
    """Return the folder, or if None `nyuv2` in the folder that the environment names.

    Raises:
        SourceError: the folder is None and the environment names none.
    """
    if folder is not None:
        return folder
    if not (data := os.environ.get(VARIABLE)):
        raise SourceError(
            f"no NYU Depth v2: neither --data nor {VARIABLE} is given; "
            "expected --data DIR with rgb/, depth/, train.txt and test.txt"
        )
    return Path(data) / FOLDER
