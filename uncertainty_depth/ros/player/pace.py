# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""When the messages of a recording are due."""

from __future__ import annotations

import time
from collections.abc import Callable


class Pace:
    """Maps times of a recording to the wall clock.

    It starts at the first time asked for and runs `rate` times as fast.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._origin: tuple[int, float] | None = None

    def due_in(self, log_ns: int) -> float:
        """Return the seconds until the message recorded at `log_ns` is due; negative when late."""
        if self._origin is None:
            self._origin = (log_ns, self._clock())
        first_ns, start = self._origin
        return start + (log_ns - first_ns) * 1e-9 / self._rate - self._clock()

    def now_ns(self) -> int:
        """Return the recording's time at this moment."""
        if self._origin is None:
            return 0
        first_ns, start = self._origin
        return first_ns + round((self._clock() - start) * self._rate * 1e9)

    def stand_still(self, seconds: float) -> None:
        """Delay all later messages by the duration of a pause."""
        if self._origin is not None:
            self._origin = (self._origin[0], self._origin[1] + seconds)

    def restart(self) -> None:
        """Begin again with the next message."""
        self._origin = None
