# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Sums over units of frames lose no frame, are bounded, and share full units when copied."""

import copy
import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from uncertainty_depth.evaluation.units import MAX_UNITS, Units

LAYOUT = {"sums": ((2,), "float64"), "counts": ((3,), "int32")}


def frame(value):
    return {"sums": np.array([value, 1.0]), "counts": np.array([1, 2, 3])}


def units_of(values):
    units = Units(LAYOUT)
    for value in values:
        units.add(frame(value))
    return units


@given(st.integers(0, 1000))
def test_units_are_few_and_lose_no_frame(frames):
    units = units_of(range(frames))
    tables = units.tables()
    assert len(units) <= MAX_UNITS
    assert len(units) == -(-frames // units.frames_per_unit)
    assert tables["sums"].sum(axis=0).tolist() == [frames * (frames - 1) / 2, frames]
    assert (tables["sums"][:-1, 1] == units.frames_per_unit).all()
    assert (np.diff(tables["sums"][:, 0] / tables["sums"][:, 1]) > 0).all(), "in order"


def test_a_merge_takes_no_more_memory_than_the_units_have():
    """Tables of all units, taken beside them, make a node grow at every merge."""
    one = {"sums": np.ones(2000)}
    tracemalloc.start()
    try:
        units = Units({"sums": ((2000,), "float64")})
        for _ in range(MAX_UNITS):
            units.add(one)
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        units.add(one)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert units.frames_per_unit == 2
    assert peak - before < 4 * one["sums"].nbytes
    assert [unit["sums"][0] for unit in units._units] == [2.0] * (MAX_UNITS // 2) + [1.0]


@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 40))
def test_parts_merged_and_gone_on_with_hold_every_frame_in_order(first, second, more):
    units = units_of(range(first))
    units.merge(units_of(range(first, first + second)))
    for value in range(first + second, first + second + more):
        units.add({"sums": np.array([value, 1.0]), "counts": np.array([1, 2, 3])})
    frames = first + second + more
    tables = units.tables()
    assert len(units) <= MAX_UNITS
    assert tables["counts"].sum(axis=0).tolist() == [frames, 2 * frames, 3 * frames]
    assert tables["sums"].sum(axis=0).tolist() == [frames * (frames - 1) / 2, frames]
    assert (tables["sums"][:, 1] <= units.frames_per_unit).all()
    assert (np.diff(tables["sums"][:, 0] / tables["sums"][:, 1]) > 0).all()


def test_the_memory_is_bounded():
    units = units_of(range(3000))
    arrays = [sums for unit in units._units for sums in unit.values()]
    buffers = {id(sums.base): sums.base for sums in arrays if sums.base is not None}
    own = [sums for sums in arrays if sums.base is None]
    nbytes = sum(array.nbytes for array in [*own, *buffers.values()])
    assert nbytes <= MAX_UNITS * (2 * 8 + 3 * 4)
    assert {name: table.dtype for name, table in units.tables().items()} == {
        "sums": np.float64,
        "counts": np.int32,
    }


@given(st.integers(0, 300), st.integers(1, 300))
def test_a_deep_copy_stays_as_it_is_and_shares_the_full_units(frames, more):
    units = units_of(range(frames))
    moment = copy.deepcopy(units)
    before = moment.tables()
    for first, second in zip(units._units[:-1], moment._units[:-1], strict=True):
        assert first["sums"] is second["sums"]
    for value in range(more):
        units.add(frame(value))
    for name, table in moment.tables().items():
        np.testing.assert_array_equal(table, before[name])
    moment.add(frame(7.0))
    assert units.tables()["sums"][:, 1].sum() == frames + more


@given(st.integers(0, 300), st.integers(0, 40))
def test_units_made_of_their_tables_go_on_as_the_first_ones(frames, more):
    units = units_of(range(frames))
    restored = Units.from_tables(
        LAYOUT, units.tables(), units.frames_per_unit, units.frames_in_last
    )
    for value in range(more):
        units.add(frame(value))
        restored.add(frame(value))
    assert restored.frames_per_unit == units.frames_per_unit
    for name, table in units.tables().items():
        np.testing.assert_array_equal(table, restored.tables()[name])
