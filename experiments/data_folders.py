# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The data sets of the experiments: where they lie, and some of the frames of a source."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.frames.protocol import Source

VARIABLE = "UNCERTAINTY_DEPTH_DATA"


@dataclass(frozen=True)
class DataSet:
    """A data set of the experiments.

    Attributes:
        title: its name.
        folder: its place in the folder of the data sets.
        contents: what its folder holds.
    """

    title: str
    folder: str
    contents: str

    def existing(self, data: Path | None) -> Path | None:
        """Return its folder below the data sets' folder, None if there is none.

        Args:
            data: folder of the data sets; None takes the one that the environment names.
        """
        if data is None and VARIABLE in os.environ:
            data = Path(os.environ[VARIABLE])
        return data / self.folder if data and (data / self.folder).is_dir() else None

    def find(self, data: Path | None) -> Path:
        """Return its folder below the data sets' folder, as `existing` does.

        Raises:
            SourceError: no folder is named, here or in the environment, or it is missing.
        """
        if (folder := self.existing(data)) is not None:
            return folder
        expected = f"expected --data DIR with {self.folder}/ in it, which has {self.contents}"
        named = data or os.environ.get(VARIABLE)
        if named is None:
            raise SourceError(
                f"no {self.title}: neither --data nor {VARIABLE} is given; {expected}"
            )
        raise SourceError(f"no {self.title}: {Path(named) / self.folder} is missing; {expected}")


NYU = DataSet("NYU Depth v2", "nyuv2", "rgb/, depth/, train.txt and test.txt")
KITTI = DataSet("KITTI", "kitti_raw", "2011_*/2011_*_sync/")
CAMVID = DataSet("CamVid", "camvid", "train/, trainannot/, test/ and testannot/")
RGBD = DataSet("RGB-D drives", "rgbd", "hololens/ and kitchen/, each with poses.txt")


class Subset:
    """The frames of a source with the given indices; those after the last are not decoded.

    A `Source`.
    """

    def __init__(self, source: Source, indices: Collection[int], description: str) -> None:
        self.name = f"{source.name}, {description}"
        self._source = source
        self._indices = indices

    @property
    def notes(self) -> list[str]:
        """Return the notes of the source."""
        return self._source.notes

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self._indices)

    def __iter__(self) -> Iterator[Frame | Skipped]:
        """Iterate over the frames, in the order of the source."""
        end = max(self._indices, default=-1) + 1
        for index, record in enumerate(islice(self._source, end)):
            if index in self._indices:
                yield record


def first_frames(source: Source, number: int) -> Subset:
    """Return the first frames of a source."""
    return Subset(source, range(min(number, len(source))), f"first {number}")


def spread_frames(source: Source, number: int) -> Subset:
    """Return `number` frames of a source, evenly spread; all of them for 0."""
    count = len(source)
    used = min(number or count, count)
    return Subset(
        source, [index * count // used for index in range(used)], f"{number} evenly spread"
    )
