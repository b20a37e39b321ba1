# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How many sigmas to each side of the depth enclose a fraction of the true depths.

For all pixels together, and as a guarantee by frame: a frame's pixels share much of their
error, so coverage over all pixels promises nothing for one frame. Split conformal prediction over
frames does (Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World", 2005): each
frame that the map was not fitted to has a factor on sigma at which 90 % of its pixels are covered,
and an order statistic of these factors holds for a new frame. Neighbouring frames are similar; for
dependent groups the exchangeable unit is the group (Lee, Barber and Willett,
"Distribution-free inference with hierarchical data", 2023): all blocks have the same weight, which
each block's frames share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.metrics.bootstrap import dependence_of_recording
from uncertainty_depth.metrics.calibration import CONFIDENCE_LEVELS, HALF_WIDTHS
from uncertainty_depth.metrics.merci import at_shares, error_ratio

KEY = "half_widths"
"""Key in a calibration's record in `model.json`."""
MEASURED = "measured on frames that the calibration was not fitted to"


@dataclass(frozen=True)
class HalfWidths:
    """Half widths for intervals at 1 to 99 %, (99,) in sigmas, never falling, and their origin."""

    origin: str
    at_levels: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the numbers; raises `ModelError` unless they are half widths."""
        values = np.array(self.at_levels)
        is_valid = values.shape == CONFIDENCE_LEVELS.shape and np.isfinite(values).all()
        if not is_valid or values[0] < 0 or (np.diff(values) < 0).any():
            raise ModelError(
                f"calibration has {KEY} = {list(self.at_levels)}; expected "
                f"{len(CONFIDENCE_LEVELS)} finite numbers of at least 0, none below the one before"
            )

    def to_mapping(self) -> dict[str, Any]:
        """Return what a model's description says: the origin, and values if measured."""
        values = {KEY: list(self.at_levels)} if self.origin == MEASURED else {}
        return {"interval": self.origin, **values}

    def at(self, coverage: float) -> float:
        """Return the half width in sigmas for the interval at `coverage`, 0.01 to 0.99."""
        return float(np.interp(coverage, CONFIDENCE_LEVELS, self.at_levels))


BY_DISTRIBUTION = {
    name: HalfWidths(f"{name} distribution", tuple(values.tolist()))
    for name, values in HALF_WIDTHS.items()
}


def measured_half_widths(
    error: NDArray[np.floating], sigma: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return the smallest half width that covers each level of the N >= 1 pixels, (99,) in sigmas.

    Infinite at levels that no half width covers, because sigma is 0 and the error is not.
    """
    ratios = np.sort(error_ratio(error.astype(np.float64), sigma.astype(np.float64)))
    return at_shares(ratios, CONFIDENCE_LEVELS)


def from_record(record: Mapping[str, Any]) -> HalfWidths | None:
    """Return the half widths in a calibration's record, None if it has none, or `ModelError`."""
    values: Sequence[float] | None = record.get(KEY)
    if values is None:
        return None
    try:
        return HalfWidths(MEASURED, tuple(map(float, values)))
    except (TypeError, ValueError) as error:
        raise ModelError(f"calibration has {KEY} = {values!r}; expected numbers") from error


PIXELS = 0.9
"""Fraction of a frame's pixels to be covered, 1 - beta."""
FRAMES = 0.9
"""Probability with which they are, 1 - alpha."""
BLOCKS_NEEDED = math.ceil(FRAMES / (1 - FRAMES) - 1e-9)
"""Fewer independent blocks allow no guarantee."""


@dataclass(frozen=True)
class FrameGuarantee:
    """`depth +- factor sigma` covers `PIXELS` of a new frame's pixels with probability `FRAMES`.

    Attributes:
        factor: factor on sigma; infinite if there are too few frames for a guarantee.
        is_refused: whether the map fails on these very frames.
    """

    factor: float
    number: int
    blocks: int
    is_refused: bool = False

    @property
    def has_enough(self) -> bool:
        """Whether there are enough frames for a guarantee."""
        return math.isfinite(self.factor)

    @property
    def holds(self) -> bool:
        """Whether there are enough frames, and a map to guarantee anything of."""
        return self.has_enough and not self.is_refused

    def sentence(self) -> str:
        """Return the guarantee with what it rests on, what it assumes and what voids it."""
        claim = (
            f"at least {PIXELS:.0%} of a frame's pixels, in at least {FRAMES:.0%} of new frames"
        )
        if self.is_refused:
            return "no guarantee by frame: the map fails on the frames not used"
        blocks = "block" if self.blocks == 1 else "blocks"
        basis = f"{self.number} frames not used, {self.blocks} independent {blocks}"
        if not self.holds:
            return (
                f"no guarantee by frame: {basis}; expected at least {BLOCKS_NEEDED} blocks for "
                f"{FRAMES:.0%} of the frames: longer or more recordings"
            )
        return (
            f"guarantee by frame: depth +- {self.factor:.2f} sigma covers {claim} ({basis}), if "
            "new frames are exchangeable with these: another place, light or camera voids it"
        )

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "factor": self.factor if self.holds else None,
            "pixels": PIXELS,
            "frames": FRAMES,
            "number": self.number,
            "blocks": self.blocks,
            "sentence": self.sentence(),
        }


def guarantee_of(record: Mapping[str, Any]) -> str:
    """Return the sentence on the guarantee in a record, or ""; raise `ModelError` if damaged."""
    values = record.get("frame_guarantee", {"sentence": ""})
    if not isinstance(values, Mapping) or not isinstance(values.get("sentence"), str):
        raise ModelError(f"frame_guarantee is {values!r}; expected a sentence")
    return str(values["sentence"])


def frame_factor(error: Floats, sigma: NDArray[np.floating]) -> float:
    """Return the smallest factor on sigma that covers `PIXELS` of one frame's N >= 1 errors."""
    ratios = np.sort(error_ratio(error, np.asarray(sigma, np.float64)))
    return float(at_shares(ratios, PIXELS))


def guarantee(sequences: Sequence[ArrayLike]) -> FrameGuarantee:
    """Return the guarantee from each recording's `frame_factor`s, as time goes.

    The map was not fitted to these frames. With blocks of single frames the factor is the order
    statistic `ceil((n + 1) FRAMES)`.
    """
    series = [np.asarray(sequence, np.float64) for sequence in sequences]
    series = [sequence for sequence in series if len(sequence)]
    factors = np.concatenate([*series, np.empty(0)])
    logs = np.log(np.clip(factors, 1e-9, 1e9))
    cut = []
    for sequence in series:  # into blocks that hardly depend on each other, one at least
        length = dependence_of_recording(logs, len(sequence)).length
        cut += np.array_split(sequence, max(len(sequence) // length, 1))
    number = len(factors)
    if len(cut) < BLOCKS_NEEDED:
        return FrameGuarantee(math.inf, number, len(cut))
    weights = np.concatenate([np.full(len(block), 1 / len(block)) for block in cut])
    order = np.argsort(factors, kind="stable")
    mass = np.cumsum(weights[order]) / (len(cut) + 1)
    index = int(np.searchsorted(mass, FRAMES - 1e-9))
    factor = float(factors[order][index]) if index < len(factors) else math.inf
    return FrameGuarantee(factor, number, len(cut))
