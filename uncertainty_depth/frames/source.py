# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Frame sources: the protocol, opening one by its notation, and composed sources."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from uncertainty_depth.core.config import PredictionConfig, PredictionTopics, SourceConfig
from uncertainty_depth.core.errors import ConfigError, MessageError, SourceError
from uncertainty_depth.core.records import UNWANTED, Frame, Skipped

if TYPE_CHECKING:
    from uncertainty_depth.stream.geometry_check import GeometryCheck

PERHAPS = "if they are one"
"""In a sentence of `trained_on` or `calibrated_on` that is no more than a hint."""


RECORDED = "predictions:"
"""Prefix of a folder of recorded predictions."""
NAME_SEPARATOR = " + "
"""Between the names of sources that were read as one."""


IsWanted = Callable[[int], bool]
"""Tells whether the image of this number is wanted."""


class Source(Protocol):
    """Frames in order.

    Iterating starts from the first frame each time, decodes lazily and holds few frames at once.

    Attributes:
        name: the source's notation.
    """

    name: str

    @property
    def notes(self) -> list[str]:
        """Sentences about what was lost or assumed, complete after an iteration."""

    def __len__(self) -> int:
        """Return the expected number of camera images, exact if the source knows it."""

    def __iter__(self) -> Iterator[Frame | Skipped]:
        """Yield each camera image exactly once, as a frame or the reason for its loss."""


@runtime_checkable
class SelectiveSource(Source, Protocol):
    """A source that need not read the frames that are left out."""

    def read(self, is_wanted: IsWanted) -> Iterator[Frame | Skipped]:
        """Yield as iteration does, with unread `UNWANTED` for images that are not wanted.

        Args:
            is_wanted: asked in order, for images that are known to have ground truth if the source
                can tell.
        """


def has_recorded(notation: str, topics: PredictionTopics) -> bool:
    """Return whether a source brings its own predictions and needs no model."""
    return notation.startswith(RECORDED) or bool(topics.depth_topic or topics.confidence_topic)


def has_confidence(notation: str, topics: PredictionTopics) -> bool:
    """Return whether a source of recorded predictions has confidence beside the depth."""
    if not notation.startswith(RECORDED):
        return bool(topics.confidence_topic)
    from uncertainty_depth.frames.recorded_folder import CONFIDENCE

    return (folder_and_options(notation, ("per_metre",))[0] / CONFIDENCE).is_dir()


def open_source(
    notation: str,
    config: SourceConfig,
    topics: PredictionTopics = PredictionTopics(),  # noqa: B008  frozen
    meaning: PredictionConfig = PredictionConfig(),  # noqa: B008  frozen
) -> Source:
    """Open a source by its notation.

    Args:
        notation: a bag's path, `nyu:DIR[:train|:test|:fit|:calibrate]`, `kitti:DRIVE_DIR`,
            `rgbd:DIR`, or `MODULE:REST` of a Python module, see `MODULES`.
        config: topics and extrinsics, as far as the source has them.
        topics: of recorded predictions in a bag; `predictions:DIR` is a folder of them.
        meaning: what recorded predictions hold.

    Raises:
        SourceError: the source does not exist, cannot be read, or lacks a part of a frame.
        ConfigError: the topics do not fit the source.
    """
    if notation.startswith(RECORDED):
        from uncertainty_depth.frames.recorded_folder import RecordedFolder

        if topics.depth_topic or topics.confidence_topic:
            raise ConfigError(
                f"{notation} has folders, not topics; expected no --depth-topic and no "
                "--confidence-topic"
            )
        return RecordedFolder(notation, meaning)
    if topics.confidence_topic and not topics.depth_topic:
        raise ConfigError(
            f"confidence_topic is {topics.confidence_topic!r} without a depth; expected "
            "--depth-topic, the depth image that it belongs to"
        )
    if topics.depth_topic:
        problem = (
            f"no such bag: {notation}; --depth-topic scores what is recorded in a bag; expected "
            "its path"
        )
    else:
        module, rest = module_and_rest(notation)
        if module is not None:
            source: Source = module.open_source(rest, config)
            return source
        problem = (
            f"no such bag: {notation}; expected a bag's path, nyu:DIR, kitti:DRIVE_DIR, rgbd:DIR, "
            "or MODULE:... of a Python module with open_source (in a clone: synthetic:)"
        )
    if not Path(notation).exists():
        raise SourceError(problem)
    from uncertainty_depth.frames.bag import BagSource

    return BagSource(Path(notation), config, topics, meaning)


def trained_on(model: str, training: Mapping[str, Any], sources: Sequence[str]) -> list[str]:
    """Return a sentence for each source whose frames the model has seen in training.

    Only the sources' names are compared.

    Args:
        model: name of the model.
        training: the training record of its folder: `source`, and of a model that was fine-tuned
            `started_from` with the sources of the trainings before.
        sources: names.
    """
    started_from = training.get("started_from")
    earlier = started_from.get("sources") if isinstance(started_from, Mapping) else None
    joined = [training.get("source"), *(earlier if isinstance(earlier, list) else [])]
    trained: list[str] = []
    for names in joined:
        trained += str(names or "").split(NAME_SEPARATOR)
    effect = "its errors are smaller there than on new frames"
    return _overlap_sentences(f"{model} was trained on", effect, trained, sources)


def calibrated_on(fitted_to: Mapping[str, Any], sources: Sequence[str]) -> list[str]:
    """Return a sentence for each source that a calibration was fitted to.

    Args:
        fitted_to: the calibration's record, with `sources`.
        sources: names.
    """
    fitted = fitted_to.get("sources")
    names = [str(name) for name in fitted] if isinstance(fitted, (list, tuple)) else []
    effect = "its size fits better there than on new frames"
    return _overlap_sentences("sigma was calibrated on", effect, names, sources)


def _overlap_sentences(
    text: str, effect: str, used: Sequence[str], sources: Sequence[str]
) -> list[str]:
    """Return `text`, which frames of a source were used, and the effect, for each such source."""
    sentences = []
    for source in sources:
        overlaps = [overlap for name in used if (overlap := _overlap(source, name))]
        sentences += [f"{text} {overlap}{effect}" for overlap in overlaps][:1]
    return sentences


def _overlap(source: str, used: str) -> str:
    """Return how `used` relates to `source`; empty if they share no frame.

    If only the paths' last parts agree, it is a hint: the folder may have moved, or be another.
    """
    if not used or _prefix(source) != _prefix(used):
        return ""
    place, parts = _frames_of(source)
    other_place, other_parts = _frames_of(used)
    if not parts & other_parts:
        return ""
    real, other_real = map(_real, (place, other_place))
    if real == other_real:
        return f"frames of {source}: "
    hint = f"a source of the same name as {source}: {PERHAPS}, "
    return hint if real.name == other_real.name else ""


def _real(place: Path) -> Path:
    """Return the path without links, as far as it can be followed: a model may name any place."""
    try:
        return place.resolve()
    except (OSError, RuntimeError, ValueError):  # too long, a loop of links, no path at all
        return place


def place_of(notation: str) -> Path:
    """Return the file or folder that a source is read from, whether it exists or not."""
    if notation.startswith(RECORDED):
        return folder_of(notation.removeprefix(RECORDED))
    return _frames_of(notation)[0]


def _frames_of(notation: str) -> tuple[Path, set[object]]:
    """Return the place and parts of a source: equal places share frames if they share a part."""
    module, rest = module_and_rest(notation)
    frames_of = getattr(module, "frames_of", None)
    return frames_of(rest) if frames_of else (Path(rest), {""})


MODULES = {name: f"uncertainty_depth.frames.{name}" for name in ("kitti", "nyu", "rgbd")}
"""Modules of sources by prefix; any other prefix is itself the name of a Python module.

Such a module has `open_source(rest, config)`, which returns the source of what follows the colon.
It may have `write_bag(rest, path)`, for `convert`, and `frames_of(rest)`, which returns the place
of its frames and the parts of it that they are, to tell whether two sources share frames.
"""


def module_and_rest(notation: str) -> tuple[Any, str]:
    """Return the module that opens a source and what follows its colon; None if it is a bag."""
    prefix = _prefix(notation)
    if not prefix:
        return None, notation
    try:
        module = import_module(MODULES.get(prefix, prefix))
    except ModuleNotFoundError as error:
        if error.name is None or not f"{prefix}.".startswith(f"{error.name}."):
            raise  # a library that the module needs
        return None, notation
    is_source = hasattr(module, "open_source")
    return (module, notation.removeprefix(f"{prefix}:")) if is_source else (None, notation)


def _prefix(notation: str) -> str:
    """Return what may be the name of a source's module; empty for a bag."""
    prefix, colon, _ = notation.partition(":")
    is_name = colon and all(map(str.isidentifier, prefix.split(".")))
    return prefix if is_name and not Path(notation).exists() else ""


class FileSource(ABC):
    """Frames in files of their own, any of which is read by its number alone. A `Source`."""

    name: str
    notes: list[str]

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of images."""

    @abstractmethod
    def _stamp_ns(self, index: int) -> int:
        """Return the time of an image, nanoseconds; nothing is read."""

    @abstractmethod
    def _frame(self, index: int) -> Frame | Skipped:
        """Return the record of an image; no other file is read.

        Raises:
            MessageError: a file cannot be used.
        """

    def __iter__(self) -> Iterator[Frame | Skipped]:
        """Yield each image once, in order."""
        return map(self.__getitem__, range(len(self)))

    def read(self, is_wanted: IsWanted) -> Iterator[Frame | Skipped]:
        """Yield each image once, in order, with `UNWANTED` for those that are not wanted."""
        return (self[index] if is_wanted(index) else UNWANTED for index in range(len(self)))

    def __getitem__(self, index: int) -> Frame | Skipped:
        """Return the record of an image, or why its files cannot be used."""
        try:
            return self._frame(index)
        except MessageError as error:
            return Skipped(self._stamp_ns(index), error.reason, str(error))


class Wrapped(ABC):
    """Frames made of another source's. A `Source` of the same name, notes and length."""

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self._source = source

    @property
    def notes(self) -> list[str]:
        """The source's notes."""
        return list(self._source.notes)

    def __len__(self) -> int:
        return len(self._source)

    @abstractmethod
    def __iter__(self) -> Iterator[Frame | Skipped]:
        """Yield the records."""


class Mapped(Wrapped):
    """The records of a source, each through a function."""

    def __init__(
        self,
        source: Source,
        step: Callable[[Frame | Skipped], Frame | Skipped],
        notes: Callable[[], list[str]],
    ) -> None:
        """Take a source, what is done with each record, and sentences that follow its notes."""
        super().__init__(source)
        self._step = step
        self._notes = notes

    @property
    def notes(self) -> list[str]:
        """The source's notes and those of what is done with its records."""
        return [*super().notes, *self._notes()]

    def __iter__(self) -> Iterator[Frame | Skipped]:
        return map(self._step, self._source)


def checked(source: Source) -> tuple[Source, GeometryCheck]:
    """Return the source with the warnings of a geometry check, and the check of its frames."""
    from uncertainty_depth.stream.geometry_check import GeometryCheck  # needs OpenCV

    check = GeometryCheck()
    return Mapped(source, check.see, check.warnings), check


class JoinedSource:
    """Frames of several sources, in the sources' order.

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


class Part(Wrapped):
    """The frames of a source between two fractions of its length."""

    def __init__(self, source: Source, start: float, end: float) -> None:
        super().__init__(source)
        self._start = round(start * len(source))
        self._end = round(end * len(source))

    def __len__(self) -> int:
        return self._end - self._start

    def __iter__(self) -> Iterator[Frame | Skipped]:
        return islice(self._source, self._start, self._end)


class EvenlySpread(Wrapped):
    """At most a given number of a source's frames, evenly spread.

    An unusable frame is replaced with the next usable one. Files and bags are not decoded for
    frames that are left out.
    """

    def __init__(self, source: Source, max_frames: int) -> None:
        super().__init__(source)
        count = len(source)
        used = count if max_frames == 0 else min(max_frames, count)
        self._places = [index * count // used for index in range(used)]
        self._used: int | None = None

    @property
    def notes(self) -> list[str]:
        """The source's notes, and how many of its frames are used."""
        count = len(self._source)
        if len(self._places) == count:
            return super().notes
        used = len(self._places) if self._used is None else self._used
        return [*super().notes, f"{used} of {count} frames are used, evenly spread"]

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


def open_sources(notations: Sequence[str], options: SourceConfig) -> Source:
    """Return the sources as one, with each one's geometry checked."""
    sources = [checked(open_source(notation, options))[0] for notation in notations]
    return sources[0] if len(sources) == 1 else JoinedSource(sources)


def folder_and_options(notation: str, known: tuple[str, ...]) -> tuple[Path, dict[str, str]]:
    """Return the folder, which may have commas in its name, and the options behind it.

    Args:
        notation: with its prefix, e.g. `rgbd:DIR,per_metre=5000`.
        known: names of the options that the source has.

    Raises:
        SourceError: an option is unknown or stands there twice.
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
    """Return the folder of what follows the colon, whatever options another version had."""
    return Path(_parts(rest)[0])


def _parts(rest: str) -> list[str]:
    return re.split(r",(?=\w+=)", rest)


def numbers(notation: str, option: str, text: str, names: str) -> tuple[float, ...]:
    """Return the numbers of an option such as `k=525/525/319.5/239.5`.

    Args:
        notation: of the source, for the sentence.
        option: its name.
        text: its value.
        names: what the numbers are, separated by slashes, e.g. `fx/fy/cx/cy`.

    Raises:
        SourceError: they are not as many numbers.
    """
    try:
        values = tuple(float(part) for part in text.split("/"))
    except ValueError:
        values = ()
    if len(values) != len(names.split("/")):
        raise SourceError(f"{notation} has {option}={text}; expected {option}={names}, numbers")
    return values


def per_metre(notation: str, options: dict[str, str]) -> float:
    """Return the option `per_metre`: how many units of a 16-bit depth image are a metre.

    Raises:
        SourceError: it is no positive number.
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
