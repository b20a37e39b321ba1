# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The benchmark compares like with like, and its tables are right; no times are asserted."""

import importlib.util

import pytest

from benchmarks import metrics as bench
from benchmarks.metric_peers import poggi_loop
from uncertainty_depth.metrics import sparsification


def test_the_loop_that_is_timed_gives_the_same_areas():
    pixels = bench.draw(2000, seed=1)
    areas = poggi_loop(*(values.astype("float64") for values in pixels))
    assert areas == pytest.approx(
        {name: sparsification(*pixels, name).ause for name in ("abs_rel", "rmse", "a1")}, rel=1e-9
    )


def test_every_row_has_both_times():
    rows = bench.run((3000,))
    expected = {"AUSE and AURG, poggi, three errors", "Spearman", "all online metrics"}
    if importlib.util.find_spec("sklearn"):
        expected |= {"Brier score", "ECE, two classes"}
    assert expected <= {row.label for row in rows}
    for row in rows:
        assert row.pixels == 3000
        assert row.ours_ms.minimum > 0
        assert row.peer_ms.minimum > 0
    assert bench.table(rows).count("\n") == len(rows) + 3
