# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a metric is: its name, unit and better direction, and how its values are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.metrics.state import Sums

METRES = "m"
LOWER = "lower"
HIGHER = "higher"
SHARE = (0.0, 1.0)
NOT_NEGATIVE = (0.0, math.inf)
ANY = (-math.inf, math.inf)
Compute = Callable[[Sums], Floats]


def percent_text(share: float, decimals: int = 1, sign: str = "") -> str:
    """Return a share as every table and sentence writes it: `69.3 %`, and `0 %` for 0.0."""
    text = f"{100 * share:{sign}.{decimals}f}"
    return f"{text} %" if float(text) else "0 %"


class SigmaKind(Enum):
    """What the sigma of a depth is."""

    METRES = "metres"
    RANK = "rank"
    """Without a unit: it has an order, and no size."""
    NONE = "none"
    """The depth is alone."""


NOT_JUDGED = {
    SigmaKind.RANK: (
        "the confidence has no unit: it ranks the pixels, and has no AUCE, coverage or NLL until "
        "`calibrate` has put it in metres (--sigma-map)"
    ),
    SigmaKind.NONE: (
        "the depth has no confidence: there is no sigma to judge until `calibrate` has fitted one "
        "(--sigma-map)"
    ),
}
"""Why a metric is not judged that this kind of sigma lacks."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric.

    Attributes:
        name: dotted, as in `summary.json`.
        compute: from `Sums` to (R,) values, or (R, K) for the K `groups`.
        label: title in tables.
        unit: "" for a pure number, "count" for an integer.
        better: "lower", "higher", "" for neither, or the value that is best.
        limits: its smallest and largest possible value; intervals end there.
        in_percent: whether tables write it in per cent.
        meaning: for a table's reader.
        source: the definition's source; empty if it needs none.
        over: "pixels" of all images, the mean over "images", or a statistic over "frames".
        is_size: whether it compares sigma's size with the errors, so that sigma must be in metres;
            all others are the same for a multiple of sigma.
        distribution: the error's, whose intervals it is about; empty if it is about none.
        groups: names for the parts if the metric is a list.
        has_baselines: whether the trivial baselines have it too, if it is a metric on sigma and
            not a list.
        reason: why it is not a number over scored frames, or what returns that; empty if it is
            always one.
    """

    name: str = field(kw_only=False)
    compute: Compute
    label: str
    unit: str = ""
    better: str | float = ""
    limits: tuple[float, float] = ANY
    in_percent: bool = False
    meaning: str = ""
    source: str = ""
    over: str = "pixels"
    is_size: bool = False
    distribution: str = ""
    groups: tuple[str, ...] = ()
    has_baselines: bool = True
    reason: Callable[[Sums], str] | str = ""

    @property
    def title(self) -> str:
        """Its label, with its unit."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    @property
    def note(self) -> str:
        """What it means, and which value is better."""
        if isinstance(self.better, float):
            best = percent_text(self.better, 0) if self.in_percent else f"{self.better:g}"
            text = f"best at {best}"
        else:
            text = f"{self.better} is better" if self.better else ""
        return "; ".join(part for part in (self.meaning, text) if part)

    @property
    def is_of_sigma(self) -> bool:
        """Whether the trivial baselines have it too."""
        is_list = bool(self.groups)
        return self.name.startswith("uncertainty.") and self.has_baselines and not is_list

    @property
    def needs_sigma(self) -> bool:
        """Whether a depth alone has it not."""
        of_sigma = self.name.startswith("uncertainty.") or self.name == "by_distance.n_merci"
        return of_sigma or self.is_size

    def is_judged(self, kind: SigmaKind) -> bool:
        """Return whether this kind of sigma has it."""
        if kind is SigmaKind.NONE:
            return not self.needs_sigma
        return kind is SigmaKind.METRES or not self.is_size

    def values(self, sums: Sums) -> Floats:
        """Return (R,) or (R, K) values; NaN if the metric is undefined."""
        with np.errstate(all="ignore"):
            return self.compute(sums)

    def why_none(self, sums: Sums) -> str:
        """Return why it is not a number over scored frames."""
        return self.reason if isinstance(self.reason, str) else self.reason(sums)

    def best_of(self, values: Sequence[float]) -> float:
        """Return the best value, NaN left out; NaN if neither direction is better."""
        numbers = [value for value in values if not math.isnan(value)]
        if not numbers or self.better == "":
            return math.nan
        best = self.better
        if isinstance(best, float):
            return min(numbers, key=lambda value: abs(value - best))
        return max(numbers) if self.better == HIGHER else min(numbers)

    def text(self, value: float, sign: str = "") -> str:
        """Return a value or a difference as every table writes it: in per cent, or in 4 digits."""
        if self.in_percent:
            return percent_text(value, sign=sign)
        size = abs(value)
        if not size < 10**5:  # infinite, undefined, or of a scale that is out of the question
            return f"{value:{sign}.2g}"
        decimals = 4 if size < 10 else 2 if size < 100 else 1
        return f"{round(value, decimals) + 0.0:{sign}.{decimals}f}"  # -0.0 + 0.0 is 0.0

    def names(self) -> tuple[str, ...]:
        """Return each value's dotted name."""
        return tuple(f"{self.name}.{group}" for group in self.groups) or (self.name,)
