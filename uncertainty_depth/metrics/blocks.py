# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""At most 128 blocks of consecutive frames: all that is remembered of the frames scored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.metrics.arrays import Floats
from uncertainty_depth.metrics.block import KIND_OF, KINDS, Block

MAX_BLOCKS = 128


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
            blocks: (B, ...) vectors by kind, see `block.KINDS`.
            weights: (R, B) of each block in each of R sums; None for one sum of all.
            alpha: fraction of the pixels that n-MeRCI covers.
            candidate: one of `block.CANDIDATES`.
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
        if KIND_OF[name] == "extremes":
            summed = self._maxima(parts)
        elif self._weights is None:
            summed = parts.sum(axis=0, dtype=np.float64)[None]
        else:
            summed = self._weights @ parts.astype(np.float64)
        return summed.reshape(len(summed), *kind.shapes[name])

    def _maxima(self, parts: NDArray) -> Floats:
        if self._weights is None:
            return parts.max(axis=0, initial=-math.inf)[None]
        drawn = np.where((self._weights > 0)[..., None], parts[None], -math.inf)
        maxima: Floats = drawn.max(axis=1, initial=-math.inf)
        return maxima


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
