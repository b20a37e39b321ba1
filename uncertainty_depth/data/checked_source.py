"""A source whose notes say also where its geometry looks wrong."""

from __future__ import annotations

from collections.abc import Iterator

from uncertainty_depth.data.source import Source
from uncertainty_depth.geometry.check import GeometryCheck
from uncertainty_depth.records import Frame, Skipped


class CheckedSource:
    """The frames of a source, each shown to a `GeometryCheck` on its way. A `Source`."""

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self.check = GeometryCheck()
        self.source = source

    @property
    def notes(self) -> list[str]:
        """Those of the source, and the warnings of the check."""
        return [*self.source.notes, *self.check.warnings()]

    def __len__(self) -> int:
        return len(self.source)

    def __iter__(self) -> Iterator[Frame | Skipped]:
        for record in self.source:
            frame = record.frame if isinstance(record, Skipped) else record
            if frame is not None:
                self.check.update(frame.image, frame.ground_truth_m, frame.camera, frame.scan)
            yield record
