# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Count frames that are scored again: of a bag that loops, or of a copied recording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_FRAMES = 100_000
"""Frames that are remembered; about 10 MB."""


class RepeatedFrames:
    """Counts the frames whose metrics all equal those of an earlier frame.

    A frame that counts twice makes every interval too narrow. Stamps do not matter: a bag that
    loops may have new ones. The noise of a sensor never repeats.

    Attributes:
        count: frames that equal an earlier one.
    """

    def __init__(self, count: int = 0, keys: Iterable[int] = ()) -> None:
        """Start with a number of repeated frames, and the keys of `to_array`."""
        self.count = count
        self._keys = set(keys)

    def add(self, metrics: Mapping[str, float]) -> None:
        """Add the row of a frame's metrics."""
        values = np.fromiter(metrics.values(), np.float64, len(metrics))
        key = int.from_bytes(blake2b(values.tobytes(), digest_size=8).digest(), "little")
        self.count += key in self._keys
        self._remember([key])

    def merge(self, other: RepeatedFrames) -> None:
        """Add the frames of another recording."""
        self.count += other.count + self.common(other)
        self._remember(other._keys)

    def common(self, other: RepeatedFrames) -> int:
        """Return the number of different frames that both have."""
        return len(self._keys & other._keys)

    def includes(self, other: RepeatedFrames) -> bool:
        """Return whether all frames of another recording, at least one, are here."""
        return bool(other._keys) and other._keys <= self._keys

    def to_array(self) -> NDArray[np.uint64]:
        """Return the keys of the different frames."""
        return np.fromiter(self._keys, np.uint64, len(self._keys))

    def _remember(self, keys: Iterable[int]) -> None:
        if len(self._keys) < MAX_FRAMES:
            self._keys.update(keys)

    def __deepcopy__(self, _: dict[int, Any]) -> RepeatedFrames:
        """Return a copy; keys, as integers, need none."""
        return RepeatedFrames(self.count, self._keys)
