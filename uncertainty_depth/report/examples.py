# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The frames that a report shows, in bounded memory: the worst and some typical ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.records import DepthMap

MIN_DISTANCE = 1 / 20
"""Fraction of the run that lies between two worst frames, at least."""

_STAMP = re.compile(r"(\d+)\.(\d{9})")
"""Seconds and nanoseconds, a frame's name in a bag."""


def frame_name(name: str) -> str:
    """Return a frame's name for people: a stamp in seconds and nanoseconds without the last."""
    stamp = _STAMP.fullmatch(name)
    return f"{stamp[1]}.{stamp[2][:3]}".rstrip("0").rstrip(".") + " s" if stamp else name


@dataclass(frozen=True, eq=False)
class Example:
    """A frame to show; ground truth is drawn if `is_registered`, `left_out` is a mask's (H, W)."""

    name: str
    image: NDArray[np.uint8] | None
    ground_truth_m: NDArray[np.float32]
    prediction: DepthMap
    metrics: Mapping[str, float]
    is_registered: bool = True
    left_out: NDArray[np.bool_] | None = None

    def __deepcopy__(self, _: dict[int, Any]) -> Example:
        """Return itself: a copy of an evaluation shares the arrays, which do not change."""
        return self


@dataclass(frozen=True, eq=False)
class ExampleSlot:
    """An example with its index in the run and its error."""

    index: int
    error: float
    example: Example


class Examples:
    """A run's worst frames, and every k-th, k doubling, of which typical ones are selected."""

    def __init__(self, number: int) -> None:
        """Select `number` frames, half of them the worst."""
        self._number = number
        self._stride = 1
        self._offers = 0
        self._spread: list[ExampleSlot] = []
        self._worst: list[ExampleSlot] = []

    def offer(self, error: float, make: Callable[[], Example]) -> None:
        """Store `make()` if the frame is among the worst or every k-th; else it is not called."""
        index = self._offers
        self._offers += 1
        spread = bool(self._number) and index % self._stride == 0
        replaced = self._replaced_by(index, error)
        if not spread and replaced is None:
            return
        slot = ExampleSlot(index, error, make())
        if replaced is not None:
            remaining = [worst for worst in self._worst if worst not in replaced]
            self._worst = [*remaining, slot]
        if spread:
            self._spread.append(slot)
        if len(self._spread) > 2 * self._number:
            self._spread = self._spread[::2]
            self._stride *= 2

    def worst(self) -> list[Example]:
        """Return the frames with the largest errors, worst first."""
        worst_first = sorted(self._worst, key=lambda slot: -slot.error)
        return [slot.example for slot in worst_first]

    def typical(self) -> list[Example]:
        """Return frames with an error near the median, in the run's order."""
        if not self._spread:
            return []
        median = float(np.median([slot.error for slot in self._spread]))
        worst = {slot.index for slot in self._worst}
        others = [slot for slot in self._spread if slot.index not in worst]
        others.sort(key=lambda slot: abs(slot.error - median))
        typical = others[: self._number - len(self._worst)]
        typical.sort(key=lambda slot: slot.index)
        return [slot.example for slot in typical]

    def _replaced_by(self, index: int, error: float) -> list[ExampleSlot] | None:
        """Return the worst frames that this one replaces; None if it is not among the worst."""
        near = [
            worst for worst in self._worst if index - worst.index < self._offers * MIN_DISTANCE
        ]
        if near:
            return near if error > max(worst.error for worst in near) else None
        if len(self._worst) < self._number // 2:
            return []
        lowest = min(self._worst, key=lambda worst: worst.error, default=None)
        return [lowest] if lowest and error > lowest.error else None
