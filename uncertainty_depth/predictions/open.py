# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Open recorded predictions by their notation."""

from __future__ import annotations

from pathlib import Path

from uncertainty_depth.config import SourceConfig
from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.predictions.config import PredictionConfig, PredictionTopics
from uncertainty_depth.predictions.evaluate import PredictionSource
from uncertainty_depth.predictions.folder import PREFIX, FolderPredictions


def are_predictions(notation: str, topics: PredictionTopics) -> bool:
    """Return whether a source brings its predictions, so that it needs no model."""
    return notation.startswith(PREFIX) or bool(topics.depth_topic or topics.confidence_topic)


def open_predictions(
    notation: str, config: SourceConfig, topics: PredictionTopics, meaning: PredictionConfig
) -> PredictionSource:
    """Open predictions: `predictions:DIR`, or a bag with `--depth-topic`.

    Raises:
        SourceError: the source does not exist, cannot be read, or lacks a part of a frame.
        ConfigError: the topics do not fit the source.
    """
    if notation.startswith(PREFIX):
        if topics.depth_topic or topics.confidence_topic:
            raise ConfigError(
                f"{notation} has folders, not topics; expected no --depth-topic and no "
                "--confidence-topic"
            )
        return FolderPredictions(notation, meaning)
    if not topics.depth_topic:
        raise ConfigError(
            f"confidence_topic is {topics.confidence_topic!r} without a depth; expected "
            "--depth-topic, the depth image that it belongs to"
        )
    from uncertainty_depth.predictions.bag import BagPredictions

    if not Path(notation).exists():
        raise SourceError(
            f"no such bag: {notation}; --depth-topic scores what is recorded in a bag; expected "
            "its path"
        )
    return BagPredictions(Path(notation), config, topics, meaning)
