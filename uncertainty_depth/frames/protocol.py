# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a source of frames is, sources made of others, and the notation of a source."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Protocol, runtime_checkable

from uncertainty_depth.core.config.source import PredictionTopics
from uncertainty_depth.core.errors import MessageError, SourceError
from uncertainty_depth.core.records import UNWANTED, Frame, Skipped

RECORDED = "predictions:"
"""Prefix of a folder of recorded predictions."""
NAME_SEPARATOR = " + "
"""Between the names of sources that were read as one."""
IsWanted = Callable[[int], bool]
"""Tells whether the image of this number is wanted."""


def has_recorded(notation: str, topics: PredictionTopics) -> bool:
    """Return whether a source brings its own predictions and needs no model."""
    return notation.startswith(RECORDED) or bool(topics.depth_topic or topics.confidence_topic)


def folder_and_options(notation: str, known: tuple[str, ...]) -> tuple[Path, dict[str, str]]:
    """Return the folder, which may have commas in its name, and the options behind it.

    The notation has its prefix, e.g. `rgbd:DIR,per_metre=5000`.
    """
    folder, *parts = _parts(notation.partition(":")[2])
    options: dict[str, str] = {}
    for part in parts:
        name, _, value = part.partition("=")
        if name not in known:
            raise SourceError(f"{notation} has {name}={value}; expected {', '.join(known)}")
        if name in options:
            raise SourceError(f"{notation} has {name} twice; expected it once")
        options[name] = value
    return Path(folder), options


def folder_of(rest: str) -> Path:
    """Return the folder after the colon, ignoring options."""
    return Path(_parts(rest)[0])


def _parts(rest: str) -> list[str]:
    return re.split(r",(?=\w+=)", rest)


def numbers(notation: str, option: str, text: str, names: str) -> tuple[float, ...]:
    """Return the numbers in text such as `525/525/319.5/239.5`, or raise `SourceError`."""
    try:
        values = tuple(float(part) for part in text.split("/"))
    except ValueError:
        values = ()
    if len(values) != len(names.split("/")):
        raise SourceError(f"{notation} has {option}={text}; expected {option}={names}, numbers")
    return values


def per_metre(notation: str, options: dict[str, str]) -> float:
    """Return the option `per_metre`: 16-bit depth units to the metre.

    Raise `SourceError` for none.
    """
    text = options.get("per_metre", "1000")
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise SourceError(
            f"{notation} has per_metre={text}; expected a positive number, e.g. 1000 for "
            "millimetres, 256 for the depth of KITTI, 5000 for that of TUM"
        )
    return value


class Source(Protocol):
    """Frames in order.

    Iterating starts from the first frame each time, decodes lazily and holds few frames at once.
    """

    name: str

    @property
    def notes(self) -> list[str]:
        """Sentences about what was lost or assumed, complete after an iteration."""

    def __len__(self) -> int:
        """Return how many camera images are expected, exact if the source knows it."""

    def __iter__(self) -> Iterator[Frame | Skipped]:
        """Yield each camera image exactly once, as a frame or the reason for its loss."""


@runtime_checkable
class SelectiveSource(Source, Protocol):
    """A source that need not read the frames that are left out."""

    def read(self, is_wanted: IsWanted) -> Iterator[Frame | Skipped]:
        """Yield as iteration does, with unread `UNWANTED` for images that are not wanted.

        `is_wanted` is asked in order, for images known to have ground truth if the source can
        tell.
        """


class FileSource(ABC):
    """A `Source` whose frames are stored one per file, with random access."""

    name: str
    _notes: Sequence[str] = ()

    @property
    def notes(self) -> list[str]:
        """What is assumed or missing, in sentences."""
        return list(self._notes)

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _stamp_ns(self, index: int) -> int:
        """Return an image's time, nanoseconds; nothing is read."""

    @abstractmethod
    def _frame(self, index: int) -> Frame | Skipped:
        """Return an image's record, without reading other files, or raise `MessageError`."""

    def __iter__(self) -> Iterator[Frame | Skipped]:
        return map(self.__getitem__, range(len(self)))

    def read(self, is_wanted: IsWanted) -> Iterator[Frame | Skipped]:
        """Yield each image once, in order, with `UNWANTED` for those that are not wanted."""
        return (self[index] if is_wanted(index) else UNWANTED for index in range(len(self)))

    def __getitem__(self, index: int) -> Frame | Skipped:
        """Return an image's record, or why its files cannot be used."""
        try:
            return self._frame(index)
        except MessageError as error:
            return Skipped(self._stamp_ns(index), error.reason, str(error))


class SourceWrapper:
    """Another source's frames, under its name, with further notes. A `Source`."""

    def __init__(self, source: Source, notes: Callable[[], list[str]] = list) -> None:
        self.name = source.name
        self._source = source
        self._notes = notes

    @property
    def notes(self) -> list[str]:
        """The source's notes, and those of what is done with its records."""
        return [*self._source.notes, *self._notes()]

    def __len__(self) -> int:
        return len(self._source)

    def __iter__(self) -> Iterator[Frame | Skipped]:
        return iter(self._source)


class MapSource(SourceWrapper):
    """A source's records, each through a function."""

    def __init__(
        self,
        source: Source,
        step: Callable[[Frame | Skipped], Frame | Skipped],
        notes: Callable[[], list[str]] = list,
    ) -> None:
        super().__init__(source, notes)
        self._step = step

    def __iter__(self) -> Iterator[Frame | Skipped]:
        return map(self._step, self._source)


class JoinedSource:
    """Several `sources`' frames, in their order, and their names joined by `NAME_SEPARATOR`."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources
        self.name = NAME_SEPARATOR.join(source.name for source in sources)

    @property
    def notes(self) -> list[str]:
        """Every source's notes, after its name."""
        notes: list[str] = []
        for source in self.sources:
            notes += [f"{source.name}: {note}" for note in source.notes]
        return notes

    def __len__(self) -> int:
        return sum(len(source) for source in self.sources)

    def __iter__(self) -> Iterator[Frame | Skipped]:
        return chain.from_iterable(self.sources)


class SliceSource(SourceWrapper):
    """A source's frames between two fractions of its length."""

    def __init__(self, source: Source, start: float, end: float) -> None:
        super().__init__(source)
        self._start = round(start * len(source))
        self._end = round(end * len(source))

    def __len__(self) -> int:
        return self._end - self._start

    def __iter__(self) -> Iterator[Frame | Skipped]:
        return islice(self._source, self._start, self._end)


class Subsampled(SourceWrapper):
    """At most a given number of a source's frames, evenly spread.

    An unusable frame is replaced with the next usable one. Files and bags are not decoded for
    frames that are left out.
    """

    def __init__(self, source: Source, max_frames: int) -> None:
        super().__init__(source, self._how_many)
        count = len(source)
        used = count if max_frames == 0 else min(max_frames, count)
        self._places = [index * count // used for index in range(used)]
        self._used: int | None = None

    def _how_many(self) -> list[str]:
        count = len(self._source)
        if len(self._places) == count:
            return []
        used = len(self._places) if self._used is None else self._used
        return [f"{used} of {count} frames are used, evenly spread"]

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Frame | Skipped]:
        source = self._source
        if len(self._places) == len(source):
            yield from source
            return
        self._used = 0
        if isinstance(source, SelectiveSource):
            records = source.read(self._is_due)
        else:
            records = iter(source)
        for index, record in enumerate(records):
            if record is UNWANTED:
                continue
            if isinstance(record, Skipped):
                yield record
            elif self._is_due(index):
                self._used += 1
                yield record

    def _is_due(self, index: int) -> bool:
        used = self._used or 0
        return used < len(self._places) and index >= self._places[used]
