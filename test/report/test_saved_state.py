# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a report holds is read back as it was, and a copy of a running evaluation does not grow."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.saved_state import read_report
from uncertainty_depth.report.verdict import judge

CONTEXT = report.Context("drive", {"method": "mc_dropout"}, options={"rate": 2.0})


@pytest.mark.parametrize("frames", [0, 1, 150])
def test_a_report_is_read_back_in_every_digit(tmp_path, evaluate_moments, moments_of, frames):
    evaluation = evaluate_moments(frames=frames)
    summary = json.loads(json.dumps(evaluation.summary()))
    moment = copy.deepcopy(evaluation)
    for late in moments_of(1, seed=9):  # not of the copy
        evaluation.add_arrays(late.depth, late.sigma, late.truth)
    report.write(moment, tmp_path / "report", CONTEXT, images=False)
    saved = read_report(tmp_path / "report")
    again = saved.evaluation
    assert saved.context.options == {"rate": 2.0}
    np.testing.assert_equal(json.loads(json.dumps(again.summary())), summary)
    assert judge(again, {}, None) == judge(moment, {}, None)
    assert again.cameras.as_dict() == moment.cameras.as_dict()
    for name in ("cell.error", "cell.covered_laplace"):  # for the plot of positions alone
        np.testing.assert_array_equal(again.metrics.total()[name], moment.metrics.total()[name])
    assert [name.frame for name, _ in again.table] == [str(index) for index in range(frames)]
    rows = (tmp_path / "report" / "frames.csv").read_text().splitlines()
    assert len(rows) == (frames + 1 if frames else 0)


def test_merged_rows_are_those_of_the_frames(evaluate_moments):
    """They are computed again from the sums, without the curves."""
    first = evaluate_moments(frames=3)
    merged = Evaluation()
    merged.merge(first, "drive")
    rows = [line.split(",", 1)[1] for line in merged.table.text()][1:]
    assert rows == list(first.table.text())[1:]
