# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The depth limits of a command reach every pixel that it scores."""

import numpy as np
import pytest

from test.conftest import summary_of
from uncertainty_depth.cli.main import main

TRUTH_M = np.repeat(np.float32([0.5, 4, 20]), 20).reshape(6, 10)
ERROR_M = np.repeat(np.float32([1, 0.1, 3]), 20).reshape(6, 10)


@pytest.mark.parametrize(
    ("limits", "scored"),
    [
        ([], slice(0, 6)),
        (["--max-depth", "10"], slice(0, 4)),
        (["--min-depth", "1"], slice(2, 6)),
        (["--min-depth", "1", "--max-depth", "10"], slice(2, 4)),
    ],
)
def test_pixels_outside_the_limits_of_a_command_are_in_no_score(limits, scored, tmp_path):
    for name, values in (("depth", TRUTH_M + ERROR_M), ("ground_truth", TRUTH_M)):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "0.npy", values)
    output = tmp_path / "out"
    assert main(["evaluate", f"predictions:{tmp_path}", *limits, "-o", str(output)]) == 0
    summary = summary_of(output)
    assert summary["depth"]["mae"] == pytest.approx(ERROR_M[scored].mean(), rel=1e-5)
