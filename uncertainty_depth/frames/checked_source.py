# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A source with a check of its geometry."""

from __future__ import annotations

from collections.abc import Iterator

from uncertainty_depth.frames.source import Source
from uncertainty_depth.geometry.check import GeometryCheck
from uncertainty_depth.records import Frame, Skipped


class CheckedSource:
    """A `Source` that passes each frame to a `GeometryCheck` before yielding it."""

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self.check = GeometryCheck()
        self.source = source

    @property
    def notes(self) -> list[str]:
        """The notes of the source, and the warnings of the check."""
        return [*self.source.notes, *self.check.warnings()]

    def __len__(self) -> int:
        return len(self.source)

    def __iter__(self) -> Iterator[Frame | Skipped]:
        for record in self.source:
            frame = record.frame if isinstance(record, Skipped) else record
            if frame is not None:
                truth_m = frame.need_ground_truth()
                image = frame.image if frame.is_registered else None
                self.check.update(image, truth_m, frame.camera, frame.scan)
            yield record
