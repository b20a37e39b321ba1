# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Coverage by position: one histogram for all levels counts what a mask for each would count."""

import numpy as np

from uncertainty_depth.report.positions import CELLS, covered_by_cell


def test_each_width_counts_the_ratios_within_it_by_cell():
    rng = np.random.default_rng(0)
    cells = rng.integers(0, CELLS, 5000)
    ratio = np.append(rng.exponential(1.0, 4998), [0.0, np.inf])
    widths = np.array([1.0, 2.5, ratio[7], 1.7])
    expected = [np.bincount(cells[ratio <= width], minlength=CELLS) for width in widths]
    np.testing.assert_array_equal(covered_by_cell(cells, ratio, widths), expected)
