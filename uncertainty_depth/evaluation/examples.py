"""The frames that a report shows, kept in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.records import DepthPrediction


@dataclass(frozen=True, eq=False)
class Example:
    """A frame kept to be shown: its arrays and its own scores. `image` is None where only maps are known."""

    name: str
    image: NDArray[np.uint8] | None
    ground_truth_m: NDArray[np.float32]
    prediction: DepthPrediction
    figures: Mapping[str, float]

    def __deepcopy__(self, _: dict[int, Any]) -> Example:
        """Its arrays do not change: a copy of an evaluation shares them."""
        return self


class Examples:
    """At most `2 * wanted` frames spread evenly over a run of unknown length: every k-th, k doubling whenever it is full."""

    def __init__(self, wanted: int) -> None:
        self._wanted, self._stride, self._seen = wanted, 1, 0
        self._kept: list[Example] = []

    def resize(self, wanted: int) -> None:
        """Want another number from now on; frames kept already stay spread as they are."""
        self._wanted = wanted
        while len(self._kept) > 2 * wanted:
            self._kept = self._kept[::2] if wanted else []
            self._stride *= 2

    def offer(self, make: Callable[[], Example]) -> None:
        """Keep `make()` if its turn has come; it is not called otherwise."""
        if self._wanted and self._seen % self._stride == 0:
            self._kept.append(make())
        self._seen += 1
        if len(self._kept) > 2 * self._wanted:
            self._kept, self._stride = self._kept[::2], self._stride * 2

    def chosen(self) -> list[Example]:
        """The `wanted` frames, or fewer, evenly spread from first to last."""
        picks = (
            np.linspace(0, len(self._kept) - 1, min(self._wanted, len(self._kept)))
            .round()
            .astype(int)
        )
        return [self._kept[pick] for pick in picks]
