# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a depth node publishes beside its maps, live and in a bag: how familiar the images are."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from uncertainty_depth.core import strict
from uncertainty_depth.core.errors import MessageError, SourceError
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.frames.recording import Recording

PREDICTION = "prediction"
"""Name of the status on `depth/prediction_info`."""
MAX_CHARACTERS = 10_000
MAX_DESCRIPTION_CHARACTERS = 100_000
MAX_DESCRIPTION_DEPTH = 8
MAX_WAITING = 2000


def info_beside(depth: str) -> str:
    """Return the topic of how each depth map was made: in its namespace."""
    return f"{depth.rpartition('/')[0]}/prediction_info"


def status_values(statuses: Iterable[Any], name: str) -> dict[str, str]:
    """Return keys and values of the status called `name` in a DiagnosticArray.

    Raises:
        MessageError: "no_status", the status is missing, or its values are too long.
    """
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
    """Return the unfamiliarity in the values of a prediction; None if it is not known.

    Raises:
        KeyError: they do not name it.
        ValueError: it is no finite number of 0 or more.
    """
    text = values["unfamiliarity"]
    if not text:
        return None
    value = float(text)
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"unfamiliarity is {text!r}; expected a finite number of 0 or more")
    return value


class RecordedUnfamiliarity:
    """The unfamiliarity of each prediction in a bag, by its stamp.

    Attributes:
        topic: of the prediction infos; empty if there are none.
    """

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self._by_stamp: OrderedDict[int, float | None] = OrderedDict()
        self._newest_ns: int | None = None

    def add(self, message: Any) -> None:
        """Take a prediction info; one that cannot be read says nothing."""
        self._newest_ns = stamp_ns(message.header)
        try:
            value = unfamiliarity_of(status_values(message.status, PREDICTION))
        except (MessageError, KeyError, ValueError):
            value = None
        self._by_stamp[self._newest_ns] = value
        if len(self._by_stamp) > MAX_WAITING:
            self._by_stamp.popitem(last=False)

    def is_awaited(self, time_ns: int) -> bool:
        """Return whether the prediction info of this stamp may still come."""
        if not self.topic or time_ns in self._by_stamp:
            return False
        return self._newest_ns is None or self._newest_ns < time_ns

    def of(self, time_ns: int) -> float | None:
        """Return the unfamiliarity of the prediction of this stamp; None if it is not known."""
        return self._by_stamp.get(time_ns)


def familiar_places(path: Path, depth_topic: str) -> list[float]:
    """Return what unfamiliarity is usual in the training's places, as the node's model says.

    Two numbers, see `Familiarity.places`; none if the bag does not have `depth/model`, or that
    does not say it.
    """
    topic = f"{depth_topic.rpartition('/')[0]}/model"
    try:
        with Recording(path).open() as bag:
            about = bag.topics.get(topic)
            if about is None or about.message_type != "std_msgs/msg/String":
                return []
            message = bag.first(topic)
        text = "" if message is None else message.data
        model = strict.read_json(text, MAX_DESCRIPTION_CHARACTERS, MAX_DESCRIPTION_DEPTH)
    except (SourceError, strict.FormatError):  # whoever opens the bag says what is wrong with it
        return []
    places = model.get("familiar_places") if isinstance(model, dict) else None
    return list(strict.limits_of(places) or ())
