# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Several sources as one, one after the other, and a part of the frames of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from uncertainty_depth.config import SourceConfig
from uncertainty_depth.frames.checked_source import CheckedSource
from uncertainty_depth.frames.source import NAME_SEPARATOR, Source, open_source
from uncertainty_depth.records import Frame, Skipped


class JoinedSource:
    """The frames of several sources, in their order.

    Attributes:
        name: the names of the sources, joined by `NAME_SEPARATOR`.
        sources: each of them.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources
        self.name = NAME_SEPARATOR.join(source.name for source in sources)

    @property
    def notes(self) -> list[str]:
        """The notes of every source, after its name."""
        notes: list[str] = []
        for source in self.sources:
            notes += [f"{source.name}: {note}" for note in source.notes]
        return notes

    def __len__(self) -> int:
        return sum(len(source) for source in self.sources)

    def __iter__(self) -> Iterator[Frame | Skipped]:
        return chain.from_iterable(self.sources)


class EvenlySpread:
    """At most so many frames of a source, evenly spread over it; the others stay unscored.

    Records that are skipped are all passed on: a report says what the source lacks.
    """

    def __init__(self, source: Source, max_frames: int) -> None:
        self.name = source.name
        self.source = source
        self.selected = evenly_spread(len(source), max_frames)

    @property
    def notes(self) -> list[str]:
        """The notes of the source, and how many of its frames are used."""
        if self.selected is None:
            return list(self.source.notes)
        used = f"{len(self.selected)} of {len(self.source)} frames are used, evenly spread"
        return [*self.source.notes, used]

    def __len__(self) -> int:
        return len(self.source) if self.selected is None else len(self.selected)

    def __iter__(self) -> Iterator[Frame | Skipped]:
        for index, record in enumerate(self.source):
            is_used = self.selected is None or index in self.selected
            if is_used or isinstance(record, Skipped):
                yield record


def evenly_spread(count: int, max_count: int) -> set[int] | None:
    """Return the indices of at most `max_count` of `count` frames, evenly spread; None for all."""
    if max_count == 0 or max_count >= count:
        return None
    return {index * count // max_count for index in range(max_count)}


def open_sources(notations: Sequence[str], options: SourceConfig) -> Source:
    """Return the sources as one, the geometry of each checked."""
    sources = [CheckedSource(open_source(notation, options)) for notation in notations]
    return sources[0] if len(sources) == 1 else JoinedSource(sources)
