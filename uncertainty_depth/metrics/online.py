# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Every metric in one pass over any number of pixels, in bounded memory.

Sums and counts are exact. Order statistics come from logarithmic bins (see `bins`), so metrics
based on them differ from the exact functions on all pixels together. docs/metrics.md states the
bounds, and the tests enforce them. Frames may be added at once or merged in chunks in any order:
counts are equal and sums agree to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncertainty_depth.core.config.scoring import EvaluationConfig
from uncertainty_depth.core.options import changed, from_mapping, takes_options, to_mapping
from uncertainty_depth.core.process import held_interrupt
from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.frame import ScoredPixels, frame_block
from uncertainty_depth.metrics.metric import SigmaKind
from uncertainty_depth.metrics.registry import flat_values, nested
from uncertainty_depth.metrics.state import Block, Blocks, Sums, check_exponents

HEAP_RESERVE_BYTES = 24 << 20
"""glibc returns freed memory beyond twice the largest block it was ever asked to free. It would
do so after every frame, and page faults would take a third of the time: one block of this size,
never touched, makes it keep what a frame needs."""


class OnlineMetrics:
    """Accumulates all metrics on depth, its sigma and the trivial baselines over any frames.

    The state is at most 128 blocks; in addition, `update` needs 0.2 kB per scored pixel
    in its frame.

    Args:
        config: what is scored, and how.
        **options: `EvaluationConfig` options that override the config's, e.g. `max_depth=10`.

    Attributes:
        config: what is scored, and how. States merge when their configs score the same.
        blocks: the sums over all frames so far.

    Raises:
        ConfigError: an option is unknown, or the limits are not finite or reversed.

    Examples:
        >>> online = OnlineMetrics(max_depth=10)
        >>> frame = online.update(depth=[2.0, 3.0], sigma=[0.5, 0.5], ground_truth=[2.0, 4.0])
        >>> online.compute()["depth"]["mae"]
        0.5
    """

    @takes_options(EvaluationConfig)
    def __init__(
        self,
        config: EvaluationConfig = EvaluationConfig(),  # noqa: B008  frozen
        **options: Any,
    ) -> None:
        config = changed(config, options)
        checks.depth_limits(config.min_depth, config.max_depth)
        self.config = config
        self.blocks = Blocks()
        self._has_sigma: bool | None = None
        self._last_log_scale = math.nan
        np.empty(HEAP_RESERVE_BYTES, dtype=np.uint8)  # freed at once: see HEAP_RESERVE_BYTES

    @property
    def pixels(self) -> int:
        """How many pixels are scored so far."""
        return int(self.total()["pixels"][0])

    @property
    def frames(self) -> int:
        """How many frames have at least one valid pixel so far."""
        return int(self.total()["frames"][0])

    @property
    def has_sigma(self) -> bool:
        """Whether depth has a sigma; it is said to have one before the first frame."""
        return self._has_sigma is not False

    def update(
        self, depth: ArrayLike, sigma: ArrayLike | None, ground_truth: ArrayLike
    ) -> dict[str, Any] | None:
        """Score one frame and add it.

        Args:
            depth: predicted depth in any shape, metres; NaN for no prediction.
            sigma: predicted standard deviation, same shape, metres, or in any unit if only its
                order is of interest; None for a depth alone, whose metrics on sigma are NaN.
            ground_truth: same shape, metres, NaN for unknown.

        Returns:
            This frame's metrics, nested like `compute`, with only the rankings for baselines, and
            without those on sigma for a depth alone; None if no pixel is valid. Its pixels with
            ground truth count in `scored_fraction` even then.

        Raises:
            ValueError: the shapes differ, an argument is not an array of numbers, or this frame
                has a sigma and an earlier one had none, or the reverse.
        """
        limits = self.config.min_depth, self.config.max_depth
        if not len(self.blocks):
            first = (checks.numbers_of("depth", depth), checks.numbers_of("truth", ground_truth))
            if first[0].shape == first[1].shape:
                checks.warn_of_millimetres(*first)
        block = self.add(ScoredPixels(depth, sigma, ground_truth, *limits))
        if not block["pixels"]:
            return None
        return nested(flat_values(self.sums_of(block), self._sigma_kind, of_frame=True))

    def add(
        self,
        pixels: ScoredPixels,
        aligned_by: float = 1.0,
        unfamiliarity: float | None = None,
        changes: NDArray[np.float64] | None = None,
    ) -> Block:
        """Add one frame's selected pixels, and return its block; `update` selects them.

        Args:
            pixels: the frame's.
            aligned_by: factor that brought the depth to the ground truth's scale.
            unfamiliarity: the frame's; None if unknown.
            changes: from `RepeatDetector.look`: if the camera stood still, the frame belongs to
                the previous frame's block.

        Raises:
            ValueError: this frame has a sigma and an earlier one had none, or the reverse.
        """
        has_sigma = pixels.sigma is not None
        if self._has_sigma not in (None, has_sigma):
            had = "one" if self._has_sigma else "none"
            raise ValueError(
                f"the depth has {'a' if has_sigma else 'no'} sigma; expected {had}, as the frames "
                "before"
            )
        block = frame_block(pixels, self.blocks.ratio_exponent)
        if len(pixels):
            scale = aligned_by * pixels.scale  # what the depth lacks as a factor
            if math.isfinite(scale) and scale > 0:
                log = math.log(scale)
                block["scales"] = 1
                block["log_scale"] = log
                block["squared_log_scale"] = log * log
                if not math.isnan(self._last_log_scale):
                    block["scale_jumps"] = 1
                    block["scale_jump"] = abs(log - self._last_log_scale)
            if unfamiliarity is not None:
                block["familiarities"] = 1
                block["unfamiliarity"] = unfamiliarity
                block["unfamiliar"] = unfamiliarity > 1
                block["max_unfamiliarity"] = unfamiliarity
            if changes is not None:
                block["distance.still_pixels"], block["distance.squared_change"] = changes
        with held_interrupt():
            self._has_sigma = has_sigma
            if block["scales"]:
                self._last_log_scale = float(block["log_scale"])
            if block["known_pixels"]:
                is_new = bool(block["pixels"]) and changes is None  # else no evidence of its own
                self.blocks.add(block, continues=not is_new)
        return block

    def merge(self, other: OnlineMetrics) -> None:
        """Add another's frames, but not the jump in scale; raise ValueError for another config."""
        for name in ("min_depth", "max_depth"):
            value = getattr(self.config, name)
            other_value = getattr(other.config, name)
            if value != other_value:
                raise ValueError(f"other has {name} {other_value}; expected {value}, as here")
        if None not in (self._has_sigma, other._has_sigma) and self.has_sigma != other.has_sigma:
            have = "a sigma" if self.has_sigma else "no sigma"
            raise ValueError(
                f"other has {'a' if other.has_sigma else 'no'} sigma; expected {have}"
            )
        if self._has_sigma is None:
            self._has_sigma = other._has_sigma
        self.blocks.merge(other.blocks)
        if not math.isnan(other._last_log_scale):
            self._last_log_scale = other._last_log_scale

    def total(self) -> Sums:
        """Return the sums over all frames, with a leading axis of one."""
        return Sums(self.blocks.table())

    def each_block(self) -> Sums:
        """Return each block's sums, a row each."""
        return Sums(self.blocks.table(), np.eye(len(self.blocks)))

    def sums_of(self, block: Block) -> Sums:
        """Return one block's sums."""
        return Sums(block.reshape(1))

    def compute(self) -> dict[str, Any]:
        """Return the nested mapping in `summary.json` over all frames; NaN without pixels."""
        return nested(flat_values(self.total(), self._sigma_kind))

    @property
    def _sigma_kind(self) -> SigmaKind:
        return SigmaKind.METRES if self.has_sigma else SigmaKind.NONE

    def header(self) -> dict[str, Any]:
        """Return what is saved beside the arrays."""
        options = to_mapping(self.config)  # of a node: more than the evaluation's own
        return {
            "config": {item.name: options[item.name] for item in fields(EvaluationConfig)},
            "frames_per_block": self.blocks.frames_per_block,
            "frames_in_last_block": self.blocks.frames_in_last,
            "last_log_scale": None if math.isnan(self._last_log_scale) else self._last_log_scale,
        }

    def arrays(self) -> dict[str, NDArray]:
        """Return the state as named arrays."""
        return {"blocks": self.blocks.table()}

    @classmethod
    def from_arrays(
        cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray]
    ) -> OnlineMetrics:
        """Return the metrics from `header` and `arrays`; raise as JSON's readers if damaged."""
        metrics = cls(from_mapping(EvaluationConfig, header["config"]))
        blocks = arrays["blocks"]
        check_exponents(blocks)
        per_block = int(header["frames_per_block"])
        in_last = int(header["frames_in_last_block"])
        if per_block < 1 or per_block & (per_block - 1) or not 0 <= in_last <= per_block:
            raise ValueError(f"{in_last} of {per_block} frames in the last block")
        metrics.blocks = Blocks(
            per_block, in_last, (blocks[row, ...].copy() for row in range(len(blocks)))
        )
        if blocks["pixels"].any():
            metrics._has_sigma = bool(blocks["sigmas"].any())
        last = header["last_log_scale"]
        metrics._last_log_scale = math.nan if last is None else float(last)
        return metrics
