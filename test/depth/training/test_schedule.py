# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uncertainty_depth.core.config.training import TrainingConfig
from uncertainty_depth.depth.training import schedule
from uncertainty_depth.depth.training.schedule import (
    is_finished,
    member_name,
    plateau,
    saved_epochs,
)

ERRORS = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40)


def run(errors: list[float], training: TrainingConfig) -> list[float]:
    """The errors a training would see before it stops."""
    seen: list[float] = []
    for error in errors:
        seen.append(error)
        if is_finished(seen, training):
            break
    return seen


def test_snapshots_follow_the_plateau_and_then_training_ends():
    training = TrainingConfig(epochs=40, snapshots=3, patience=2)
    seen = run([5, 4, 3, 3, 3, 2, 1, 9, 9], training)
    assert len(seen) == 8
    assert saved_epochs(seen, training) == [5, 6, 7]
    assert member_name(7, training, "best") == "epoch_0008"


@pytest.mark.parametrize("method", ["mc_dropout", "deterministic"])
def test_other_methods_keep_the_best_epoch_and_stop_when_patience_runs_out(method):
    training = TrainingConfig(method=method, patience=2)
    seen = run([5, 3, 4, 2, 2, 3, 0], training)
    assert len(seen) == 6
    assert saved_epochs(seen, training) == [3]
    assert member_name(3, training, "best") == "best"


@settings(deadline=None)
@given(
    errors=ERRORS,
    epochs=st.integers(1, 40),
    snapshots=st.integers(1, 12),
    patience=st.integers(1, 5),
)
def test_multi_epochs_always_ends_with_all_snapshots_of_consecutive_epochs(
    errors, epochs, snapshots, patience
):
    training = TrainingConfig(epochs=epochs, snapshots=snapshots, patience=patience)
    seen = run((errors * 40)[:epochs], training)
    kept = saved_epochs(seen, training)
    assert len(kept) == min(snapshots, epochs)
    assert kept == list(range(kept[0], len(seen)))
    reached = plateau(seen, patience)
    assert kept[0] == (epochs - len(kept) if reached is None else min(reached, epochs - len(kept)))


def test_the_learning_rate_falls_along_a_cosine_and_is_constant_by_default():
    constant = TrainingConfig(epochs=5)
    assert [schedule.fraction_of_rate(epoch, constant) for epoch in range(5)] == [1.0] * 5
    falling = replace(constant, final_learning_rate=0.1)
    rates = [schedule.fraction_of_rate(epoch, falling) for epoch in range(5)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == pytest.approx(1.0)
    assert rates[2] == pytest.approx(0.55)
    assert rates[4] == pytest.approx(0.1)
    assert schedule.fraction_of_rate(0, replace(falling, epochs=1)) == pytest.approx(1.0)
