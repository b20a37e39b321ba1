"""The frames that a report shows, kept in bounded memory: the worst ones beside typical ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.records import DepthPrediction

ALIKE = 20
"""Two frames nearer to each other than this part of all frames are alike: one of them is shown."""


@dataclass(frozen=True, eq=False)
class Example:
    """A frame kept to be shown: its arrays and its own scores. `image` is None where unknown."""

    name: str
    image: NDArray[np.uint8] | None
    ground_truth_m: NDArray[np.float32]
    prediction: DepthPrediction
    figures: Mapping[str, float]

    def __deepcopy__(self, _: dict[int, Any]) -> Example:
        """Its arrays do not change: a copy of an evaluation shares them."""
        return self


@dataclass(frozen=True, eq=False)
class Candidate:
    """An example, its place in the run, and how bad it is."""

    place: int
    error: float
    example: Example


class Examples:
    """The worst frames of a run, and others spread evenly over it to take typical ones from.

    Those are every k-th frame, k doubling whenever there are more than twice as many as wanted.
    """

    def __init__(self, wanted: int) -> None:
        """Keep `wanted` frames, half of them the worst."""
        self._wanted = wanted
        self._wanted_worst = wanted // 2
        self._stride = 1
        self._seen = 0
        self._spread: list[Candidate] = []
        self._worst: list[Candidate] = []

    def resize(self, wanted: int) -> None:
        """Want another number from now on; frames kept already stay spread as they are."""
        self._wanted = wanted
        self._wanted_worst = wanted // 2
        self._worst = sorted(self._worst, key=lambda each: -each.error)[: wanted // 2]
        while len(self._spread) > 2 * wanted:
            self._spread = self._spread[::2] if wanted else []
            self._stride *= 2

    def offer(self, error: float, make: Callable[[], Example]) -> None:
        """Keep `make()` if it is among the worst or its turn has come; not called otherwise."""
        place = self._seen
        self._seen += 1
        spread = bool(self._wanted) and place % self._stride == 0
        rival = self._rival(place, error)
        if not spread and rival is None:
            return
        candidate = Candidate(place, error, make())
        if rival is not None:
            self._worst = [each for each in self._worst if each not in rival] + [candidate]
        if spread:
            self._spread.append(candidate)
        if len(self._spread) > 2 * self._wanted:
            self._spread = self._spread[::2]
            self._stride *= 2

    def worst(self) -> list[Example]:
        """The frames with the largest errors, worst first; of frames that are alike one."""
        ordered = sorted(self._worst, key=lambda each: -each.error)
        return [each.example for each in ordered]

    def typical(self) -> list[Example]:
        """Frames with an error near the median, in the order they came."""
        bad = {each.place for each in self._worst}
        others = [each for each in self._spread if each.place not in bad]
        median = float(np.median([each.error for each in self._spread])) if self._spread else 0.0
        others.sort(key=lambda each: abs(each.error - median))
        chosen = others[: self._wanted - len(self._worst)]
        chosen.sort(key=lambda each: each.place)
        return [each.example for each in chosen]

    def _rival(self, place: int, error: float) -> list[Candidate] | None:
        """What a frame takes the place of among the worst; None where it is not among them."""
        alike = [each for each in self._worst if place - each.place < self._seen / ALIKE]
        if alike:
            return alike if error > max(each.error for each in alike) else None
        if len(self._worst) < self._wanted_worst:
            return []
        mildest = min(self._worst, key=lambda each: each.error, default=None)
        return [mildest] if mildest and error > mildest.error else None
