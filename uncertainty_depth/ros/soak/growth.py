# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Check whether memory, threads or descriptors of a process grow over a run."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from uncertainty_depth.process_resources import Resources

WARM_UP = 0.2
"""Fraction of a run that is not judged: caches fill, the middleware discovers."""
ALLOWED = Resources(memory_mib=20.0, threads=2, descriptors=4)
"""Growth of the median from the first to the last third that does not count as a leak."""
MIN_SAMPLES = 3


class Growth(NamedTuple):
    """Resources of a process early and late in a run, as medians.

    Attributes:
        process: its name.
        early: median of the first third after the warm-up.
        late: median of the last third.
    """

    process: str
    early: Resources
    late: Resources

    @property
    def excesses(self) -> list[str]:
        """Resources that grew by more than `ALLOWED`, as sentences."""
        parts = zip(Resources._fields, self.early, self.late, ALLOWED, strict=True)
        return [
            f"{self.process}: {name} grew from {early:g} to {late:g}, by more than {allowed:g}"
            for name, early, late, allowed in parts
            if late - early > allowed
        ]


def growth(process: str, samples: Sequence[Resources]) -> Growth:
    """Return the resources of a process early and late in a run.

    Args:
        process: its name.
        samples: at equal times over the run.

    Raises:
        ValueError: there are fewer than `MIN_SAMPLES` after the warm-up.
    """
    judged = samples[int(WARM_UP * len(samples)) :]
    if len(judged) < MIN_SAMPLES:
        raise ValueError(
            f"{process} has {len(judged)} samples after the warm-up; expected {MIN_SAMPLES}"
        )
    third = max(1, len(judged) // 3)
    return Growth(process, _median(judged[:third]), _median(judged[-third:]))


def _median(samples: Sequence[Resources]) -> Resources:
    memory_mib, threads, descriptors = zip(*samples, strict=True)
    return Resources(
        median(memory_mib),
        round(median(threads)),
        round(median(descriptors)),
    )
