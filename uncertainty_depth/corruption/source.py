# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A source whose images are corrupted as they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from uncertainty_depth.corruption.corruption import Corruption, notation
from uncertainty_depth.frames.source import Source
from uncertainty_depth.records import Frame, Skipped


def corrupted(source: Source, corruptions: Sequence[Corruption]) -> Source:
    """Return the source with its images corrupted in this order; itself for no corruption."""
    return CorruptedSource(source, corruptions) if corruptions else source


class CorruptedSource:
    """Frames of another source, their images corrupted one after another.

    Ground truth, camera and stamps stay; fog follows the ground truth.

    Attributes:
        name: of the other source: the same frames, and the same training.
    """

    def __init__(self, source: Source, corruptions: Sequence[Corruption]) -> None:
        self.name = source.name
        self._source = source
        self._corruptions = corruptions

    @property
    def notes(self) -> list[str]:
        """See `Source`; the first says how the images are corrupted."""
        how = f"the images are corrupted by {notation(self._corruptions)}"
        return [how, *self._source.notes]

    def __len__(self) -> int:
        return len(self._source)

    def __iter__(self) -> Iterator[Frame | Skipped]:
        for record in self._source:
            yield record if isinstance(record, Skipped) else self._corrupted(record)

    def _corrupted(self, frame: Frame) -> Frame:
        image = frame.need_image()
        for corruption in self._corruptions:
            image = corruption(image, frame.stamp_ns, frame.need_ground_truth())
        return replace(frame, image=image)
