# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""All that is remembered of the frames scored: at most 128 blocks of consecutive frames.

A block is named float64 sums, int32 histograms and a few extremes. Blocks of any frames add up,
and every metric of `registry` is computed from the result, whether it is one frame or a million.
What a sum of infinities or of undefined values would spoil is left out of it and counted beside
it, so that any weighted sum of blocks is finite. `frame` makes the block of a frame.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.metrics.arrays import Floats
from uncertainty_depth.metrics.bins import Bins
from uncertainty_depth.metrics.calibration import CONFIDENCE_LEVELS, DISTRIBUTIONS
from uncertainty_depth.metrics.sparsification import POGGI

MAX_BLOCKS = 128
CANDIDATES = ("method", "constant", "proportional_to_depth")
"""The predicted sigma, and the two trivial ones that it is compared with."""
LAWS = tuple(DISTRIBUTIONS)
ERROR = Bins(-12, 8, 6)
RATIO = Bins(-10, 12, 6)
DEPTH_RATIO = Bins(-12, 3, 6)
"""Of error / predicted depth: the ratio of the sigma that is proportional to depth."""
DEPTH_RATIO_SUMS = Bins(-12, 3, 3)
TRUTH = Bins(-4, 8, 4)
SIGMA = Bins(-8, 7, 3)
DISTANCE = Bins(-1, 7, 1)
"""Intervals of ground truth: 0.5, 0.75, 1, 1.5, 2, 3, 4, 6 ... 96, 128 m, open at both ends."""
DISTANCE_ERROR = Bins(-7, 7, 2)
DISTANCE_RATIO = Bins(-5, 6, 2)
MAX_LOG_ERROR = math.log(4)
"""A depth wrong by a factor of 4 is as wrong as can be: a few mismatched pixels decide nothing."""
BLOCK_GRID = (8, 10)
"""Rows and columns of cells of the image, for a depth that is the same for every frame."""
BLOCK_CELLS = math.prod(BLOCK_GRID)
PLOTTED_FRACTIONS = slice(None, None, 2)
"""Of those of `POGGI`: what is enough for a plot. The areas are of all."""

_SCALARS = (
    "frames",  # with a scored pixel
    "known_pixels",  # pixels with ground truth within the limits of the evaluation
    "pixels",  # those that also have a prediction: the scored ones
    "depth",  # over the scored pixels: of the predicted depth if it is positive, as a sigma
    "log_depth",
    "no_depth",  # pixels without positive depth: they have no logarithm and no inverse
    "signed_error",
    "error",
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
DISTANCE_SUMS = ("pixels", "signed_error", "error", "sigma", "covered", "covered_laplace")
CELL_SUMS = ("pixels", "log_truth", "squared_log_truth")
_AREAS = (len(CANDIDATES), len(POGGI.errors))
_CURVE = (len(POGGI.errors), len(POGGI.fractions[PLOTTED_FRACTIONS]))
SUMS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(_SCALARS, ()),
    "crps": (len(LAWS),),
    "excess": (len(LAWS),),
    "ause": _AREAS,
    "aurg": _AREAS,
    "aurc": (len(CANDIDATES),),
    "spearman": (len(CANDIDATES),),
    "spearmans": (len(CANDIDATES),),  # frames in which it is defined
    **{f"distance.{name}": (DISTANCE.number,) for name in DISTANCE_SUMS},
    "distance.still_pixels": (DISTANCE.number,),
    "distance.squared_change": (DISTANCE.number,),
    "by_sigma.squared_error": (SIGMA.number,),
    "by_sigma.squared_sigma": (SIGMA.number,),
    "by_depth_ratio.error": (DEPTH_RATIO_SUMS.number,),
    "by_depth_ratio.depth": (DEPTH_RATIO_SUMS.number,),
    "removal": (2, *_CURVE),  # of method and depth; from here on for plots and verdict alone
    "oracle": _CURVE,
    **{f"cell.{name}": (BLOCK_CELLS,) for name in CELL_SUMS},
}
COUNTS: dict[str, tuple[int, ...]] = {
    "covered": (len(LAWS), len(CONFIDENCE_LEVELS)),
    "errors": (ERROR.number,),
    "ratios": (RATIO.number,),
    "depth_ratios": (DEPTH_RATIO.number,),
    "truths": (TRUTH.number,),  # of all known pixels
    "by_sigma.pixels": (SIGMA.number,),
    "by_sigma.covered": (len(LAWS), SIGMA.number),
    "distance.errors": (DISTANCE.number, DISTANCE_ERROR.number),
    "distance.ratios": (DISTANCE.number, DISTANCE_RATIO.number),
}
EXTREMES: dict[str, tuple[int, ...]] = dict.fromkeys(
    (
        "max_error",
        "-min_error",  # a minimum is stored as the maximum of the negated values
        "max_ratio",
        "-min_ratio",
        "max_depth_ratio",
        "-min_depth_ratio",
        "max_unfamiliarity",
    ),
    (),
)


@dataclass(frozen=True)
class Kind:
    """One of a block's three vectors: what it holds, at which positions.

    Attributes:
        shapes: of each part.
        dtype: of the vector.
        empty: value of a part without pixels.
        slices: of each part in the vector.
        size: of the vector.
    """

    shapes: Mapping[str, tuple[int, ...]]
    dtype: type
    empty: float
    slices: Mapping[str, slice]
    size: int

    @classmethod
    def of(cls, shapes: Mapping[str, tuple[int, ...]], dtype: type, empty: float) -> Kind:
        """Lay the parts out one after the other."""
        sizes = [math.prod(shape) for shape in shapes.values()]
        ends = np.cumsum(sizes).tolist()
        parts = zip(shapes, sizes, ends, strict=True)
        slices = {name: slice(end - size, end) for name, size, end in parts}
        return cls(shapes, dtype, empty, slices, ends[-1])


KINDS = {
    "sums": Kind.of(SUMS, np.float64, 0.0),
    "counts": Kind.of(COUNTS, np.int32, 0),
    "extremes": Kind.of(EXTREMES, np.float64, -math.inf),
}
KIND_OF = {name: kind for kind, table in KINDS.items() for name in table.shapes}
assert len(KIND_OF) == len(SUMS) + len(COUNTS) + len(EXTREMES), "a name occurs twice"


class Block:
    """The sums of some frames.

    Attributes:
        vectors: the three vectors by kind, see `KINDS`.
    """

    __slots__ = ("vectors",)

    def __init__(self, vectors: dict[str, NDArray] | None = None) -> None:
        """Start without frames, or from vectors of the right sizes, which are not copied."""
        self.vectors = vectors or {
            name: np.full(kind.size, kind.empty, kind.dtype) for name, kind in KINDS.items()
        }

    def __getitem__(self, name: str) -> NDArray:
        """Return a part, to be read or written in place."""
        kind = KINDS[KIND_OF[name]]
        return self.vectors[KIND_OF[name]][kind.slices[name]].reshape(kind.shapes[name])

    def __setitem__(self, name: str, value: Any) -> None:
        self[name][...] = value

    def add(self, other: Block) -> None:
        """Add the frames of another block, which does not change."""
        self.vectors["sums"] += other.vectors["sums"]
        self.vectors["counts"] += other.vectors["counts"]
        extremes = self.vectors["extremes"]
        np.maximum(extremes, other.vectors["extremes"], out=extremes)

    def copy(self) -> Block:
        """Return a copy."""
        return Block({name: vector.copy() for name, vector in self.vectors.items()})


METRIC_SUMS = KINDS["sums"].slices["removal"].start
"""The first sums: all that metrics are computed from."""
PACKED_BYTES = 8 * (METRIC_SUMS + KINDS["extremes"].size) + 4 * KINDS["counts"].size


def packed(block: Block) -> bytes:
    """Return what the metrics of a frame are computed from, compressed: 1.5 to 3 kB.

    The first bytes of all numbers go together, then the second ones: most are 0 or alike.
    """
    vectors = block.vectors
    parts = (vectors["sums"][:METRIC_SUMS], vectors["extremes"], vectors["counts"])
    planes = [part.view(np.uint8).reshape(-1, part.itemsize).T for part in parts]
    return zlib.compress(b"".join(plane.tobytes() for plane in planes), 1)


def unpacked(data: bytes) -> Block:
    """Return the block that `packed` gave, without the sums of plots and verdict.

    Raises:
        ValueError: the data are not such a block.
        zlib.error: they are damaged.
    """
    stream = zlib.decompressobj()
    content = stream.decompress(data, PACKED_BYTES + 1)
    if len(content) != PACKED_BYTES or not stream.eof:
        raise ValueError(f"a frame has {len(content)} bytes of sums; expected {PACKED_BYTES}")
    block = Block()
    vectors = block.vectors
    start = 0
    for part in (vectors["sums"][:METRIC_SUMS], vectors["extremes"], vectors["counts"]):
        planes = np.frombuffer(content, np.uint8, part.nbytes, start)
        part.view(np.uint8).reshape(-1, part.itemsize)[...] = planes.reshape(part.itemsize, -1).T
        start += part.nbytes
    return block


class Sums:
    """Weighted sums of blocks, read part by part: what every metric is computed from.

    Attributes:
        alpha: fraction of the pixels that n-MeRCI covers.
        candidate: whose sigma is looked at.
    """

    def __init__(
        self,
        blocks: Mapping[str, NDArray],
        weights: Floats | None,
        alpha: float,
        candidate: str = "method",
    ) -> None:
        """Read blocks.

        Args:
            blocks: (B, ...) vectors by kind, see `KINDS`.
            weights: (R, B) of each block in each of R sums; None for one sum of all.
            alpha: fraction of the pixels that n-MeRCI covers.
            candidate: one of `CANDIDATES`.
        """
        self._blocks = blocks
        self._weights = weights
        self._cache: dict[str, Floats] = {}
        self.alpha = alpha
        self.candidate = candidate

    def of(self, candidate: str) -> Sums:
        """Return the same sums for the sigma of another candidate."""
        sums = Sums(self._blocks, self._weights, self.alpha, candidate)
        sums._cache = self._cache
        return sums

    def __getitem__(self, name: str) -> Floats:
        """Return the (R, ...) sums of a part."""
        if name not in self._cache:
            self._cache[name] = self._summed(name)
        return self._cache[name]

    def _summed(self, name: str) -> Floats:
        kind = KINDS[KIND_OF[name]]
        parts = self._blocks[KIND_OF[name]][:, kind.slices[name]]
        weights = self._weights
        if KIND_OF[name] == "extremes":
            drawn = parts[None]
            if weights is not None:
                drawn = np.where((weights > 0)[..., None], drawn, -math.inf)
            summed = drawn.max(axis=1, initial=-math.inf)
        elif weights is None:
            summed = parts.sum(axis=0, dtype=np.float64)[None]
        else:
            summed = weights @ parts.astype(np.float64)
        return summed.reshape(len(summed), *kind.shapes[name])


class Blocks:
    """Sums over at most `MAX_BLOCKS` blocks; neighbours are merged in pairs when there are more.

    A block holds `frames_per_block` frames, a power of 2; only the last one of an evaluation holds
    fewer. Full blocks never change in place, so a deep copy shares them and is fast.
    """

    def __init__(self) -> None:
        """Start without frames."""
        self.frames_per_block = 1
        self.frames_in_last = 0
        self._blocks: list[Block] = []

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self._blocks)

    def __deepcopy__(self, _: dict[int, Any]) -> Blocks:
        """Return a copy that shares the full blocks."""
        result = Blocks()
        result.frames_per_block = self.frames_per_block
        result.frames_in_last = self.frames_in_last
        result._blocks = [*self._blocks[:-1], *(block.copy() for block in self._blocks[-1:])]
        return result

    @property
    def nbytes(self) -> int:
        """Size of all blocks."""
        return sum(vector.nbytes for block in self._blocks for vector in block.vectors.values())

    def vectors(self) -> dict[str, NDArray]:
        """Return copies of the vectors of all blocks by kind, (B, size) each."""
        tables = {}
        for name, kind in KINDS.items():
            rows = [block.vectors[name] for block in self._blocks]
            tables[name] = np.stack(rows) if rows else np.zeros((0, kind.size), kind.dtype)
        return tables

    @classmethod
    def from_vectors(
        cls, tables: Mapping[str, NDArray], frames_per_block: int, frames_in_last: int
    ) -> Blocks:
        """Return the blocks that `vectors` gave; shapes and dtypes are the caller's to check."""
        blocks = cls()
        blocks.frames_per_block = frames_per_block
        blocks.frames_in_last = frames_in_last
        for row in range(len(tables["sums"])):
            blocks._blocks.append(Block({name: tables[name][row].copy() for name in KINDS}))
        return blocks

    def add(self, frame: Block, continues: bool = False) -> None:
        """Add the next frame.

        Args:
            frame: its sums.
            continues: it shows what the frame before shows: it belongs to the same block, of which
                it is no further frame.
        """
        if continues and self._blocks:
            self._blocks[-1].add(frame)
            return
        if not self._blocks or self.frames_in_last == self.frames_per_block:
            if len(self._blocks) == MAX_BLOCKS:
                self._merge_pairs()
            self._blocks.append(Block())
            self.frames_in_last = 0
        self.frames_in_last += 1
        self._blocks[-1].add(frame)

    def merge(self, other: Blocks) -> None:
        """Append the blocks of an evaluation of later frames; `other` does not change."""
        second = other.__deepcopy__({})
        while second.frames_per_block < self.frames_per_block:
            second._merge_pairs()
        while self.frames_per_block < second.frames_per_block:
            self._merge_pairs()
        if len(second):
            self._blocks += second._blocks
            self.frames_in_last = second.frames_in_last
        while len(self) > MAX_BLOCKS:
            self._merge_pairs()

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
                pair.add(blocks.pop())
            self._blocks.append(pair)
        self.frames_per_block *= 2
