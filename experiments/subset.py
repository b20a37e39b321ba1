# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Some of the frames of a source."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice

from uncertainty_depth.frames.source import Source, evenly_spread
from uncertainty_depth.records import Frame, Skipped


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
    indices = evenly_spread(len(source), number)
    indices = set(range(len(source))) if indices is None else indices
    return Subset(source, indices, f"{number} evenly spread")
