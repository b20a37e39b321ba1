# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""All that is remembered about the frames scored: at most 128 blocks of consecutive frames.

A block is a structured array without dimension: named float64 sums, int32 histograms and a few
extremes. Any frames' blocks add up, and every metric in `registry` is computed from the result,
whether it is one frame or a million.
Values that are not finite are counted beside the sums, so that any weighted sum over blocks is
finite. `frame` makes a frame's block.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.metrics.bins import Bins
from uncertainty_depth.metrics.calibration import CONFIDENCE_LEVELS, DISTRIBUTIONS
from uncertainty_depth.metrics.sparsification import FRACTIONS, STATISTICS

MAX_BLOCKS = 128
SIGMA_NAMES = ("predicted", "constant", "proportional_to_depth")
"""The predicted sigma, and the two trivial ones that it is compared with."""
DISTRIBUTION_NAMES = tuple(DISTRIBUTIONS)
ERROR = Bins(-18, 8, 6)
"""Metres: 4 um to 256 m."""
RATIO = Bins(-10, 12, 6)
"""Ratio of error to sigma over `2^exponent`, which is about the first frame's median: sigma
may be in any unit, or in none."""
MAX_RATIO_EXPONENT = 1000
"""The bins about it are within float64."""
DEPTH_RATIO = Bins(-15, 6, 6)
"""Ratio of error to predicted depth, for the sigma that is proportional to depth."""
DEPTH_RATIO_SUMS = Bins(-15, 6, 3)
TRUTH = Bins(-4, 8, 4)
SIGMA = Bins(-14, 8, 3)
DISTANCE = Bins(-1, 7, 1)
"""Ground truth intervals: 0.5, 0.75, 1, 1.5, 2, 3, 4, 6 ... 96, 128 m, open at both ends."""
DISTANCE_ERROR = Bins(-12, 7, 2)
DISTANCE_RATIO = Bins(-5, 9, 2)
"""Over the same power of 2 as `RATIO`."""
MAX_LOG_ERROR = math.log(4)
"""A depth wrong by a factor of 4 is as wrong as can be: a few mismatched pixels decide nothing."""
BLOCK_GRID = (8, 10)
"""Rows and columns of cells of the image, for errors by position, and for a depth that is the same
for every frame."""
BLOCK_CELLS = math.prod(BLOCK_GRID)
PLOTTED_FRACTIONS = slice(None, None, 2)
"""Fractions kept for plots; areas use them all."""

_SCALARS = (
    "frames",  # with a scored pixel
    "known_pixels",  # pixels with ground truth within the limits of the evaluation
    "pixels",  # those that also have a prediction: the scored ones
    "depth",  # over the scored pixels: of the predicted depth if it is positive, as a sigma
    "log_depth",
    "no_depth",  # pixels without positive depth: they have no logarithm and no inverse
    "signed_error",
    "error",
    "exact",  # pixels without an error
    "squared_error",
    "abs_rel",
    "sq_rel",
    "log",
    "squared_log",
    "bounded_log",  # the same of all pixels, each at most `MAX_LOG_ERROR` squared
    "log_within_frame",  # squared deviations from the mean of each frame
    "inverse",
    "squared_inverse",
    "a1",
    "a2",
    "a3",
    "within_10_percent",
    "sigmas",  # pixels with a sigma: all of a frame, or none
    "sigma",
    "log_sigma",  # if sigma is positive
    "no_sigma",  # pixels with sigma 0
    "certain_errors",  # pixels with sigma 0 that are in error
    "ratio",  # error / sigma of the others
    "squared_ratio",
    "depth_ratio",
    "squared_depth_ratio",
    "scales",  # frames with a scale
    "log_scale",
    "squared_log_scale",
    "scale_jumps",
    "scale_jump",
    "familiarities",  # frames whose unfamiliarity is known
    "unfamiliarity",
    "unfamiliar",  # frames above 1
)
_BY_DISTANCE = (
    "pixels",
    "signed_error",
    "error",
    "exact",
    "certain_errors",
    "sigma",
    "covered",
    "covered_laplace",
    "still_pixels",  # of a camera that stands still
    "squared_change",  # of their depth since the frame before
)
_BY_CELL = ("pixels", "log_truth", "squared_log_truth", "error", "covered", "covered_laplace")
_AREAS = (len(SIGMA_NAMES), len(STATISTICS))
_CURVE = (len(STATISTICS), len(FRACTIONS[PLOTTED_FRACTIONS]))
_PLOT_SUMS: dict[str, tuple[int, ...]] = {
    "removal": (2, *_CURVE),  # of the predicted sigma and of depth
    "oracle": _CURVE,
    **{f"cell.{name}": (BLOCK_CELLS,) for name in _BY_CELL},
}
"""Used by plots and verdict alone; not saved for single frames."""
SUMS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(_SCALARS, ()),
    "crps": (len(DISTRIBUTION_NAMES),),
    "excess": (len(DISTRIBUTION_NAMES),),
    "ause": _AREAS,
    "aurg": _AREAS,
    "aurc": (len(SIGMA_NAMES),),
    "spearman": (len(SIGMA_NAMES),),
    "spearmans": (len(SIGMA_NAMES),),  # frames in which it is defined
    **{f"distance.{name}": (DISTANCE.number,) for name in _BY_DISTANCE},
    "by_sigma.squared_error": (SIGMA.number,),
    "by_sigma.squared_sigma": (SIGMA.number,),
    "by_depth_ratio.error": (DEPTH_RATIO_SUMS.number,),
    "by_depth_ratio.depth": (DEPTH_RATIO_SUMS.number,),
    **_PLOT_SUMS,
}
_COUNTS: dict[str, tuple[int, ...]] = {
    "covered": (len(DISTRIBUTION_NAMES), len(CONFIDENCE_LEVELS)),
    "errors": (ERROR.number,),
    "ratios": (RATIO.number,),
    "depth_ratios": (DEPTH_RATIO.number,),
    "truths": (TRUTH.number,),  # of all known pixels
    "by_sigma.pixels": (SIGMA.number,),
    "by_sigma.covered": (len(DISTRIBUTION_NAMES), SIGMA.number),
    "distance.errors": (DISTANCE.number, DISTANCE_ERROR.number),
    "distance.ratios": (DISTANCE.number, DISTANCE_RATIO.number),
}
EXTREMES = (
    "max_error",
    "-min_error",  # a minimum is stored as the maximum of the negated values
    "max_ratio",
    "-min_ratio",
    "max_depth_ratio",
    "-min_depth_ratio",
    "max_unfamiliarity",
    "ratio_exponent",  # the same in all blocks that are added
    "ratio_low",  # octaves that all of their ratios are resolved in
    "-ratio_high",
)
Block: TypeAlias = NDArray[np.void]
"""The sums over some frames: a `BLOCK`, without dimension. Its parts are written in place."""
BLOCK = np.dtype(
    [
        *((name, np.float64, shape) for name, shape in SUMS.items()),
        *((name, np.float64) for name in EXTREMES),
        *((name, np.int32, shape) for name, shape in _COUNTS.items()),
    ],
    align=True,
)


def empty_block() -> Block:
    """Return a block without frames."""
    block = np.zeros((), BLOCK)
    for name in EXTREMES:
        block[name] = -math.inf
    return block


def rescaled(block: Block, exponent: float) -> Block:
    """Return a block with its ratios in another exponent's bins; what both resolve stays exact."""
    own = float(block["ratio_exponent"])
    if math.isinf(own) or own == exponent:
        return block
    octaves = int(exponent - own)
    result = block.copy()
    for name, bins in (("ratios", RATIO), ("distance.ratios", DISTANCE_RATIO)):
        result[name] = bins.moved(block[name], octaves)
    result["ratio_exponent"] = exponent
    result["ratio_low"] = max(float(block["ratio_low"]), exponent + RATIO.low)
    result["-ratio_high"] = max(float(block["-ratio_high"]), -exponent - RATIO.high)
    return result


def add(block: Block, other: Block) -> None:
    """Add the frames in another block by the same exponent, which does not change."""
    for name in BLOCK.names or ():
        (np.maximum if name in EXTREMES else np.add)(block[name], other[name], out=block[name])


def check_exponents(blocks: NDArray[np.void]) -> None:
    """Raise `ValueError` unless all blocks that have an exponent have one and the same."""
    found = np.unique(blocks["ratio_exponent"])
    found = found[found != -math.inf]
    is_whole = np.abs(found) <= MAX_RATIO_EXPONENT
    is_whole &= found == np.rint(found)
    if len(found) > 1 or not is_whole.all():
        raise ValueError(f"the ratios have the exponents {found[:3]}; expected one whole number")


def packed(block: Block) -> bytes:
    """Return what a frame's metrics are computed from, compressed."""
    kept = block.copy()
    for name in _PLOT_SUMS:
        kept[name] = 0
    return zlib.compress(kept.tobytes(), 1)


def unpacked(data: bytes) -> Block:
    """Return the block that `packed` gave, without plots' sums; raise ValueError or zlib.error."""
    stream = zlib.decompressobj()
    content = stream.decompress(data, BLOCK.itemsize + 1)
    if len(content) != BLOCK.itemsize or not stream.eof:
        raise ValueError(f"a frame has {len(content)} bytes of sums; expected {BLOCK.itemsize}")
    block = np.frombuffer(content, BLOCK).reshape(()).copy()
    check_exponents(block)
    return block


class Sums:
    """Weighted sums of blocks, read part by part: what every metric is computed from.

    `sigma_name`, one of `SIGMA_NAMES`, is the sigma to evaluate.
    """

    def __init__(
        self,
        blocks: NDArray[np.void] | Mapping[str, NDArray],
        weights: Floats | None = None,
        sigma_name: str = "predicted",
    ) -> None:
        """Read (B,) blocks, or their (B, ...) parts by name; (R, B) weights, None for one sum."""
        self._blocks = blocks
        self._weights = weights
        self._cache: dict[str, Floats] = {}
        self.sigma_name = sigma_name

    def of(self, sigma_name: str) -> Sums:
        """Return the same sums for another sigma."""
        sums = Sums(self._blocks, self._weights, sigma_name)
        sums._cache = self._cache
        return sums

    @property
    def ratio_exponent(self) -> int:
        """The exponent for all blocks' ratios."""
        exponent = float(np.max(self._blocks["ratio_exponent"], initial=-math.inf))
        return int(exponent) if math.isfinite(exponent) else 0

    def __getitem__(self, name: str) -> Floats:
        """Return a part's (R, ...) sums."""
        if name in self._cache:
            return self._cache[name]
        parts: NDArray = self._blocks[name]
        flat = parts.reshape(len(parts), math.prod(parts.shape[1:]))
        weights = self._weights
        if name in EXTREMES:
            drawn = flat[None]
            if weights is not None:
                drawn = np.where((weights > 0)[..., None], drawn, -math.inf)
            summed = drawn.max(axis=1, initial=-math.inf)
        elif weights is None:
            summed = flat.sum(axis=0, dtype=np.float64)[None]
        else:
            summed = weights @ flat.astype(np.float64)
        self._cache[name] = summed.reshape(len(summed), *parts.shape[1:])
        return self._cache[name]


class Blocks:
    """Sums over at most `MAX_BLOCKS` blocks; neighbours are merged in pairs when there are more.

    A block holds `frames_per_block` frames, a power of 2; only the last one of an evaluation holds
    fewer. Full blocks never change in place, so a deep copy shares them and is fast.

    Attributes:
        ratio_exponent: all blocks', the first frame's; -inf before the first that has one.
    """

    def __init__(
        self,
        frames_per_block: int = 1,
        frames_in_last: int = 0,
        blocks: Iterable[Block] = (),
    ) -> None:
        """Start without frames, or with blocks that are not changed by anyone else."""
        self.frames_per_block = frames_per_block
        self.frames_in_last = frames_in_last
        self._blocks = list(blocks)
        exponents = [float(block["ratio_exponent"]) for block in self._blocks]
        self.ratio_exponent = max(exponents, default=-math.inf)

    def __len__(self) -> int:
        """Return how many blocks there are."""
        return len(self._blocks)

    def __deepcopy__(self, _: dict[int, Any]) -> Blocks:
        """Return a copy that shares the full blocks."""
        blocks = [*self._blocks[:-1], *(block.copy() for block in self._blocks[-1:])]
        return Blocks(self.frames_per_block, self.frames_in_last, blocks)

    def table(self) -> NDArray[np.void]:
        """Return a copy of all blocks, (B,)."""
        return np.array(self._blocks, BLOCK)

    def add(self, frame: Block, continues: bool = False) -> None:
        """Add the next frame; one that `continues` shows the same, and joins its block."""
        frame = self._rescaled(frame)
        if continues and self._blocks:
            add(self._blocks[-1], frame)
            return
        if not self._blocks or self.frames_in_last == self.frames_per_block:
            if len(self._blocks) == MAX_BLOCKS:
                self._merge_pairs()
            self._blocks.append(empty_block())
            self.frames_in_last = 0
        self.frames_in_last += 1
        add(self._blocks[-1], frame)

    def merge(self, other: Blocks) -> None:
        """Append the blocks from an evaluation on later frames; `other` does not change."""
        second = other.__deepcopy__({})
        while second.frames_per_block < self.frames_per_block:
            second._merge_pairs()
        while self.frames_per_block < second.frames_per_block:
            self._merge_pairs()
        if len(second):
            self._blocks += map(self._rescaled, second._blocks)
            self.frames_in_last = second.frames_in_last
        while len(self) > MAX_BLOCKS:
            self._merge_pairs()

    def _rescaled(self, block: Block) -> Block:
        if math.isinf(self.ratio_exponent):
            self.ratio_exponent = float(block["ratio_exponent"])
        return rescaled(block, self.ratio_exponent)

    def _merge_pairs(self) -> None:
        """Merge neighbours, one pair after the other, so that each pair is given free at once."""
        if len(self._blocks) % 2 == 0 and self._blocks:
            self.frames_in_last += self.frames_per_block
        blocks = self._blocks
        self._blocks = []
        blocks.reverse()
        while blocks:
            pair = blocks.pop().copy()
            if blocks:
                add(pair, blocks.pop())
            self._blocks.append(pair)
        self.frames_per_block *= 2
