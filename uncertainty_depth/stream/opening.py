# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a notation names: its reader, its frames' place, and which others share them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from uncertainty_depth.core.config.source import PredictionConfig, PredictionTopics, SourceConfig
from uncertainty_depth.core.errors import ConfigError, SourceError
from uncertainty_depth.core.records import Overlap, Use
from uncertainty_depth.frames.protocol import NAME_SEPARATOR, RECORDED, Source, folder_of

MODULES = {name: f"uncertainty_depth.frames.{name}" for name in ("kitti", "nyu", "rgbd")}
"""Modules of sources by prefix; any other prefix is itself the name of a Python module.

Such a module has `open_source(rest, config)`, which returns the source of what follows the colon.
It may have `write_bag(rest, path)`, for `convert`, and `frames_of(rest)`, which returns the place
of its frames and the parts of it that they are, to tell whether two sources share frames.
"""


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


def module_and_rest(notation: str) -> tuple[Any, str]:
    """Return the module that opens a source and what follows its colon; None if it is a bag."""
    prefix = prefix_of(notation)
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


def prefix_of(notation: str) -> str:
    """Return what may be the name of a source's module; empty for a bag."""
    prefix, colon, _ = notation.partition(":")
    is_name = colon and all(map(str.isidentifier, prefix.split(".")))
    return prefix if is_name and not Path(notation).exists() else ""


def place_of(notation: str) -> Path:
    """Return the file or folder that a source is read from, whether it exists or not."""
    if notation.startswith(RECORDED):
        return folder_of(notation.removeprefix(RECORDED))
    return frames_of(notation)[0]


def frames_of(notation: str) -> tuple[Path, set[object]]:
    """Return the place and parts of a source: equal places share frames if they share a part."""
    module, rest = module_and_rest(notation)
    of_module = getattr(module, "frames_of", None)
    return of_module(rest) if of_module else (Path(rest), {""})


def trained_on(model: str, training: Mapping[str, Any], sources: Sequence[str]) -> list[Overlap]:
    """Return each source whose frames the model has seen in training, by their names alone.

    A fine-tuned model's record has, in `started_from`, the sources of the trainings before.
    """
    started_from = training.get("started_from")
    earlier = started_from.get("sources") if isinstance(started_from, Mapping) else None
    joined = [training.get("source"), *(earlier if isinstance(earlier, list) else [])]
    trained: list[str] = []
    for names in joined:
        trained += str(names or "").split(NAME_SEPARATOR)
    return _overlaps(model, Use.TRAINING, trained, sources)


def calibrated_on(fitted_to: Mapping[str, Any], sources: Sequence[str]) -> list[Overlap]:
    """Return each source that a calibration of sigma was fitted to, by its record's `sources`."""
    fitted = fitted_to.get("sources")
    names = [str(name) for name in fitted] if isinstance(fitted, (list, tuple)) else []
    return _overlaps("sigma", Use.CALIBRATION, names, sources)


def _overlaps(model: str, use: Use, used: Sequence[str], sources: Sequence[str]) -> list[Overlap]:
    overlaps = []
    for source in sources:
        found = [same for name in used if (same := _is_same(source, name)) is not None]
        if found:
            overlaps.append(Overlap(source, use, any(found), model))
    return overlaps


def _is_same(source: str, used: str) -> bool | None:
    """Return whether two sources share frames for certain; None if they share none."""
    if not used or prefix_of(source) != prefix_of(used):
        return None
    place, parts = frames_of(source)
    other_place, other_parts = frames_of(used)
    if not parts & other_parts:
        return None
    real, other_real = map(_real, (place, other_place))
    if real == other_real:
        return True
    return False if real.name == other_real.name else None


def _real(place: Path) -> Path:
    """Return the path without links, as far as it can be followed: a model may name any place."""
    try:
        return place.resolve()
    except (OSError, RuntimeError, ValueError):  # too long, a loop of links, no path at all
        return place
