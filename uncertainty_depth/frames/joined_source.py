# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Several sources as one, one after the other."""

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


def open_sources(notations: Sequence[str], options: SourceConfig) -> Source:
    """Return the sources as one, the geometry of each checked."""
    sources = [CheckedSource(open_source(notation, options)) for notation in notations]
    return sources[0] if len(sources) == 1 else JoinedSource(sources)
