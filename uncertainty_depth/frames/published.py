# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a depth node publishes beside its maps, live and in a bag: how each was made."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from uncertainty_depth.core import strict
from uncertainty_depth.core.errors import MessageError, SourceError
from uncertainty_depth.core.options import MAX_COUNT
from uncertainty_depth.frames.messages.decoding import stamp_ns

PREDICTION = "prediction"
"""Name of the status on `depth/prediction_info`."""
MAX_CHARACTERS = 10_000
MAX_DESCRIPTION_CHARACTERS = 100_000
MAX_DESCRIPTION_DEPTH = 8
MAX_WAITING = 2000


def info_beside(depth: str) -> str:
    """Return the topic of how each depth map was made: in its namespace."""
    return f"{_namespace(depth)}/prediction_info"


def status_values(statuses: Iterable[Any], name: str) -> dict[str, str]:
    """Return the values of the status `name` in a DiagnosticArray, or raise `MessageError`."""
    for status in statuses:
        if status.name == name:
            values = {pair.key: pair.value for pair in status.values}
            if sum(map(len, values.values())) <= MAX_CHARACTERS:
                return values
    raise MessageError(
        "no_status",
        f"expected a status called {name!r} with at most {MAX_CHARACTERS} characters",
    )


def unfamiliarity_of(values: Mapping[str, str]) -> float | None:
    """Return a prediction's unfamiliarity, None if unknown.

    Raise KeyError or ValueError for others.
    """
    text = values["unfamiliarity"]
    if not text:
        return None
    value = float(text)
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"unfamiliarity is {text!r}; expected a finite number of 0 or more")
    return value


def measured_in(values: Mapping[str, str]) -> tuple[int, ...]:
    """Return the measured pixels, row * width + column; raise as `unfamiliarity_of`."""
    pixels = tuple(map(int, values["measured"].split()))
    if pixels and not 0 <= min(pixels) <= max(pixels) <= MAX_COUNT:
        raise ValueError(f"measured is {values['measured'][:80]!r}; expected pixels")
    return pixels


class Made(NamedTuple):
    """How a recorded prediction was made: unfamiliarity, None if unknown, and measured pixels."""

    unfamiliarity: float | None = None
    measured: tuple[int, ...] = ()


class RecordedInfos:
    """How each prediction in a bag was made, by its stamp; an empty topic has no infos."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self._by_stamp: OrderedDict[int, Made | MessageError] = OrderedDict()
        self._newest_ns: int | None = None

    def add(self, message: Any) -> None:
        """Take a prediction info; what it does not name is not known."""
        self._newest_ns = stamp_ns(message.header)
        made: Made | MessageError
        try:
            values = {"unfamiliarity": "", "measured": ""}
            values |= status_values(message.status, PREDICTION)
            made = Made(unfamiliarity_of(values), measured_in(values))
        except (MessageError, ValueError) as error:
            sentence = f"how the prediction was made cannot be read: {error}"
            made = MessageError("prediction_info_unreadable", sentence)
        self._by_stamp[self._newest_ns] = made
        if len(self._by_stamp) > MAX_WAITING:
            self._by_stamp.popitem(last=False)

    def is_awaited(self, time_ns: int) -> bool:
        """Return whether the prediction info of this stamp may still come."""
        if not self.topic or time_ns in self._by_stamp:
            return False
        return self._newest_ns is None or self._newest_ns < time_ns

    def of(self, time_ns: int) -> Made:
        """Return how a stamp's prediction was made; raise `MessageError` if it cannot be read."""
        made = self._by_stamp.get(time_ns, Made())
        if isinstance(made, MessageError):
            raise made
        return made


def published_model(path: Path, depth_topic: str) -> Mapping[str, Any]:
    """Return what the depth node of a bag says of its model, `depth/model`.

    Empty if the bag does not have it, or it cannot be read.
    """
    from uncertainty_depth.frames.recording import Recording  # rosbags, which no node needs

    topic = f"{_namespace(depth_topic)}/model"
    try:
        with Recording(path).open() as bag:
            about = bag.topics.get(topic)
            if about is None or about.message_type != "std_msgs/msg/String":
                return {}
            message = bag.first(topic)
        text = "" if message is None else message.data
        model = strict.read_json(text, MAX_DESCRIPTION_CHARACTERS, MAX_DESCRIPTION_DEPTH)
    except (SourceError, strict.FormatError):  # whoever opens the bag says what is wrong with it
        return {}
    return model if isinstance(model, dict) else {}


def _namespace(depth: str) -> str:
    """Return what a depth's description lies in: of `depth/corrected/image_rect` depth."""
    return depth.rpartition("/")[0].removesuffix("/corrected")
