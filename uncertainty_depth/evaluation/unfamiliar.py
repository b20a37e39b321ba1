# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The unfamiliarity of the scored frames, and its check in the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from uncertainty_depth.evaluation.judgement import GREEN, GREY, RED, Check

FEW = 0.05
"""Up to this fraction of the frames may be unfamiliar; of the training's own it is 1 %."""
MANY = 0.25


@dataclass
class Unfamiliarity:
    """Sums over the frames whose unfamiliarity is known.

    Attributes:
        frames: how many those are.
        above: how many of them are above 1.
        total: the sum of their scores.
        highest: the largest score.
    """

    frames: int = 0
    above: int = 0
    total: float = 0.0
    highest: float = 0.0

    def add(self, score: float | None) -> None:
        """Add the score of a frame; None where it is not known."""
        if score is None:
            return
        self.frames += 1
        self.above += int(score > 1)
        self.total += score
        self.highest = max(self.highest, score)

    def merge(self, other: Unfamiliarity) -> None:
        """Add the frames of another."""
        self.frames += other.frames
        self.above += other.above
        self.total += other.total
        self.highest = max(self.highest, other.highest)

    def as_dict(self) -> dict[str, Any]:
        """Return it as in `summary.json`: mean and max are null where nothing is known."""
        has_frames = self.frames > 0
        return {
            "frames": self.frames,
            "mean": self.total / self.frames if has_frames else math.nan,
            "max": self.highest if has_frames else math.nan,
            "fraction_above_1": self.above / self.frames if has_frames else math.nan,
        }


def text(summary: Mapping[str, Any]) -> str:
    """Return the unfamiliarity of a summary as a phrase; empty where it is not known."""
    if not summary["frames"]:
        return ""
    return (
        f"{summary['mean']:.2f} in the mean, {summary['max']:.2f} at most, above 1 in "
        f"{summary['fraction_above_1']:.0%} of {summary['frames']} frames (1 % of the training's)"
    )


def check(unfamiliarity: Unfamiliarity) -> Check | None:
    """Return the check of the domain line; None where no frame's unfamiliarity is known."""
    if not unfamiliarity.frames:
        return None
    fraction = unfamiliarity.above / unfamiliarity.frames
    color = GREEN if fraction <= FEW else RED if fraction >= MANY else GREY
    word = {GREEN: "like", GREY: "a little unlike", RED: "unlike"}[color]
    sentence = (
        f"the images are {word} those of the training: unfamiliarity is "
        f"{text(unfamiliarity.as_dict())}"
    )
    return Check("unfamiliarity", color, sentence, fraction)
