# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The experiment `shift`: the same frames, clean and corrupted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from uncertainty_depth.experiments import shift, shift_report


def frames(level: float, unfamiliarity: float | None = 0.5) -> dict[str, list[float | None]]:
    """Return the scores of three frames."""
    values = [level, level + 0.1, level + 0.2]
    return {
        "mae": values,
        "ause": values,
        "coverage_95": [0.9] * 3,
        "sigma": values,
        "unfamiliarity": [unfamiliarity] * 3,
    }


def test_a_report_has_means_over_kinds_and_tells_corrupted_from_clean(tmp_path: Path) -> None:
    results = {
        "sees it": {
            "clean": frames(1.0),
            "fog_1": frames(1.0),
            "fog_5": frames(2.0, 3.0),
            "night_1": frames(3.0),
            "night_5": frames(4.0, 3.0),
        }
    }
    shift_report.write(tmp_path, results, ("fog", "night"), (1, 5))
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["clean"]["sees it"]["mae"] == pytest.approx(1.1)
    by_kind = summary["corrupted"]["sees it"]
    assert [row["auroc_sigma"] for row in by_kind["fog"]] == [0.5, 1.0]
    assert [row["auroc_unfamiliarity"] for row in by_kind["fog"]] == [0.5, 1.0]
    table = (tmp_path / "table.md").read_text()
    assert "| sees it | MAE (m) | 1.100 | 2.100 | 3.100 |" in table
    assert (tmp_path / "shift.png").stat().st_size > 1000


def test_a_model_without_familiarity_has_no_such_score(tmp_path: Path) -> None:
    results = {"blind": {"clean": frames(1.0, None), "fog_1": frames(1.0, None)}}
    shift_report.write(tmp_path, results, ("fog",), (1,))
    table = (tmp_path / "table.md").read_text()
    assert "| blind | AUROC, unfamiliarity | – | – |" in table


def test_a_run_scores_the_shipped_model_and_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = replace(shift.QUICK, frames=2, kinds=("night",), severities=(5,))
    monkeypatch.setattr(shift, "QUICK", small)
    monkeypatch.setattr(shift, "SHIPPED", ("deterministic",))
    shift.run(tmp_path, 1, quick=True)
    first = (tmp_path / "summary.json").read_text()
    by_kind = json.loads(first)["corrupted"]["shipped, deterministic, its worlds"]
    assert by_kind["night"][0]["auroc_unfamiliarity"] == 1
    assert np.isfinite(by_kind["night"][0]["mae"])
    monkeypatch.setattr(shift, "score", None)  # nothing is scored again
    shift.run(tmp_path, 1, quick=True)
    assert (tmp_path / "summary.json").read_text() == first
