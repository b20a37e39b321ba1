# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Night falls in the middle of the bag, and the summary says what was covered."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import online_calibration as experiment
from synthetic.config import SynthesisConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.stream.opening import open_source


def row(coverage: float, own_coverage: float) -> dict[str, float]:
    return {"coverage": coverage, "own_coverage": own_coverage, "factor": 1.0}


def test_the_second_half_of_the_worlds_is_at_night(tmp_path) -> None:
    config = SynthesisConfig(worlds=2, frames=2, seed=1, width=48, height=36)
    experiment.write_bag(tmp_path / "bag", config)
    frames = list(open_source(str(tmp_path / "bag"), SourceConfig()))
    brightness = [frame.image.mean() for frame in frames]
    assert len(frames) == 4
    assert max(brightness[2:]) < 0.7 * min(brightness[:2])
    assert all(np.isfinite(frame.ground_truth_m).any() for frame in frames)


def test_the_summary_counts_the_frames_until_coverage_is_back() -> None:
    day = [row(0.95, 0.95)] * 100
    dusk = [row(0.6, 0.6)] * 10
    rows = day + dusk + [row(0.95, 0.6)] * 90
    found = experiment.summary(rows)
    assert found["frames"] == 200
    assert found["own_day"] == pytest.approx(0.95)
    assert found["own_night"] == pytest.approx(0.6)
    # 5 dark frames of 95 are the most whose mean is within 0.02
    assert found["frames_until_covered"] == 5
    assert found["published_after"] == pytest.approx(0.95, abs=0.02)
    assert found["own_after"] == pytest.approx(0.6)
    assert experiment.frames_until_covered(np.full(100, 0.5), 0.95) is None


def test_the_plot_and_the_table_are_made_of_the_rows(tmp_path) -> None:
    rows = [row(0.95, 0.95)] * 50 + [row(0.9, 0.5)] * 50
    experiment.plot(rows, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 10_000
    assert "| 0 | 95.0% | 95.0% | 50.0% | 90.0% | None |" in experiment.table(
        [experiment.summary(rows)]
    )
