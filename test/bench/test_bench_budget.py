# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The bench counts what it says it counts; how fast the machine is, no test asserts."""

from __future__ import annotations

import pytest

from uncertainty_depth.bench import budget


def test_a_comparison_holds_both_ways_on_the_same_frames() -> None:
    found = budget.run("synthetic:worlds=1,frames=2,seed=3,width=48,height=36", rounds=2)
    assert found.passes == 8
    assert found.budget_ms > 0
    assert found.without.samples == 8
    assert 2 <= found.within.samples <= 4  # still learning: 2 and 4 in turn
    for outcome in (found.without, found.within):
        assert 0 <= outcome.over <= 1
        assert outcome.median_ms > 0
        assert set(outcome.metrics) == set(budget.METRICS)
    text = budget.table(found)
    ratio = found.within.metrics["n-MeRCI"] / found.without.metrics["n-MeRCI"]
    assert f"{ratio:8.2f}" in text


def test_the_busy_process_ends_with_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    popen = budget.subprocess.Popen
    monkeypatch.setattr(
        budget.subprocess, "Popen", lambda command: started.append(popen(command)) or started[0]
    )
    with budget.busy_process():
        assert started[0].poll() is None
    assert started[0].poll() is not None
