# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Sums over units of consecutive frames, in bounded memory, for the bootstrap to resample."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_UNITS = 128


class Units:
    """Sums over at most `MAX_UNITS` units; neighbours are merged in pairs when there are more.

    A unit holds `frames_per_unit` frames, a power of 2; only the last one of an evaluation holds
    fewer. Full units never change in place, so a deep copy shares them and is fast.
    """

    def __init__(self, layout: Mapping[str, tuple[tuple[int, ...], str]]) -> None:
        """Start without units; `layout` is the shape and dtype of each sum."""
        self.frames_per_unit = 1
        self._layout = layout
        self._frames_in_last = 0
        self._units: list[dict[str, NDArray]] = []

    @classmethod
    def from_tables(
        cls,
        layout: Mapping[str, tuple[tuple[int, ...], str]],
        tables: Mapping[str, NDArray],
        frames_per_unit: int,
        frames_in_last: int,
    ) -> Units:
        """Return units from their `tables` and numbers of frames.

        Raises:
            ValueError: the tables are not of this layout.
        """
        units = cls(layout)
        numbers = {len(tables[name]) for name in layout}
        for name, (shape, dtype) in layout.items():
            if tables[name].shape[1:] != shape or tables[name].dtype != dtype:
                raise ValueError(f"{name} is {tables[name].dtype} of shape {tables[name].shape}")
        if len(numbers) != 1 or max(numbers) > MAX_UNITS:
            raise ValueError(f"tables of {sorted(numbers)} units; expected at most {MAX_UNITS}")
        units._replace(tables)
        units.frames_per_unit = frames_per_unit
        units._frames_in_last = frames_in_last
        return units

    def __len__(self) -> int:
        """Return the number of units."""
        return len(self._units)

    def __deepcopy__(self, _: dict[int, Any]) -> Units:
        """Return a copy that shares the full units."""
        result = Units(self._layout)
        result.frames_per_unit = self.frames_per_unit
        result._frames_in_last = self._frames_in_last
        result._units = self._units[:-1]
        for unit in self._units[-1:]:
            result._units.append({name: sums.copy() for name, sums in unit.items()})
        return result

    @property
    def frames_in_last(self) -> int:
        """Return the number of frames in the last unit."""
        return self._frames_in_last

    def tables(self) -> dict[str, NDArray]:
        """Return copies of the sums by name, (units, ...)."""
        tables = {}
        for name, (shape, dtype) in self._layout.items():
            tables[name] = np.zeros((len(self._units), *shape), dtype)
            for row, unit in zip(tables[name], self._units, strict=True):
                row[...] = unit[name]
        return tables

    def add(self, frame: Mapping[str, NDArray]) -> None:
        """Add the sums of the next frame."""
        if not self._units or self._frames_in_last == self.frames_per_unit:
            self._open_unit()
        self._frames_in_last += 1
        for name, sums in self._units[-1].items():
            sums += frame[name].astype(sums.dtype)

    def merge(self, other: Units) -> None:
        """Append the units of an evaluation of later frames; `other` does not change."""
        frames_per_unit = max(self.frames_per_unit, other.frames_per_unit)
        first = self._coarser(frames_per_unit)
        second = other._coarser(frames_per_unit)
        last = other if len(other) else self
        self._frames_in_last = last._frames_in_coarse_last(frames_per_unit)
        self.frames_per_unit = frames_per_unit
        tables = {name: np.concatenate((first[name], second[name])) for name in self._layout}
        number = len(next(iter(tables.values())))
        while number > MAX_UNITS:
            if number % 2 == 0:
                self._frames_in_last += self.frames_per_unit
            tables = {name: _pairs(table) for name, table in tables.items()}
            number = (number + 1) // 2
            self.frames_per_unit *= 2
        self._replace(tables)

    def _open_unit(self) -> None:
        if len(self._units) == MAX_UNITS:
            self._merge_pairs()
        unit = {name: np.zeros(shape, dtype) for name, (shape, dtype) in self._layout.items()}
        self._units.append(unit)
        self._frames_in_last = 0

    def _merge_pairs(self) -> None:
        """Merge the full units in pairs, one pair after the other.

        Each pair is given free at once, so that no more memory is taken than the units have, and
        later units fit into the gaps: tables of all of them fragment the heap at every merge.
        """
        units = self._units
        self._units = []
        units.reverse()
        while units:
            first = units.pop()
            second = units.pop()
            self._units.append({name: first[name] + second[name] for name in self._layout})
        self.frames_per_unit *= 2

    def _coarser(self, frames_per_unit: int) -> dict[str, NDArray]:
        tables = self.tables()
        for _ in range(int(math.log2(frames_per_unit // self.frames_per_unit))):
            tables = {name: _pairs(table) for name, table in tables.items()}
        return tables

    def _frames_in_coarse_last(self, frames_per_unit: int) -> int:
        per_coarse = frames_per_unit // self.frames_per_unit
        full_before = (len(self) - 1) % per_coarse if self._units else 0
        return full_before * self.frames_per_unit + self._frames_in_last

    def _replace(self, tables: Mapping[str, NDArray]) -> None:
        typed = {name: tables[name].astype(dtype) for name, (_, dtype) in self._layout.items()}
        self._units = []
        for index in range(len(next(iter(typed.values())))):
            self._units.append({name: table[index] for name, table in typed.items()})


def _pairs(table: NDArray) -> NDArray:
    """Return the sums of each two neighbours; an odd last row stays as it is."""
    return np.add.reduceat(table, np.arange(0, len(table), 2), axis=0) if len(table) else table
