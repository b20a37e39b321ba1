# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncertainty_depth.core.config.predictor import TRAINED_METHODS
from uncertainty_depth.core.config.training import NetworkConfig, TrainingConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.depth.networks.hourglass import Hourglass
from uncertainty_depth.depth.training import objective, schedule
from uncertainty_depth.depth.training.frames import read_frames
from uncertainty_depth.depth.training.plan import (
    ONLY_FOR,
    constant_guess,
    make_plan,
    member_seed,
    served,
    settle,
    without_effect,
)
from uncertainty_depth.depth.training.schedule import (
    is_finished,
    member_name,
    plateau,
    saved_epochs,
)


def plan(network: NetworkConfig, method: str, **options):
    training = TrainingConfig(method=method, **options)
    return make_plan(*settle(network, training))


def test_ensembles_of_neighbouring_seeds_have_no_member_in_common():
    assert len({member_seed(seed, number) for seed in range(20) for number in range(1, 21)}) == 400


def test_bootstrap_samples_differ_and_leave_out_about_a_third(network):
    indices = list(range(10, 1010))
    samples = [member.frames(indices) for member in plan(network, "bagging", members=5)]
    assert len({tuple(sample) for sample in samples}) == 5
    for sample in samples:
        assert len(sample) == 1000
        assert set(sample) <= set(indices)
        assert len(set(sample)) / 1000 == pytest.approx(1 - 1 / np.e, abs=0.05)
    assert samples == [member.frames(indices) for member in plan(network, "bagging", members=5)]


@pytest.mark.parametrize(("method", "distill"), [("bagging", "model"), ("distilled", "")])
def test_distilling_and_the_method_must_agree(method, distill, network):
    with pytest.raises(
        ConfigError,
        match=f"method is '{method}' but distill is '{distill}'; "
        "expected 'distilled' with --distill MODEL",
    ):
        plan(network, method, distill=distill)


def test_the_best_member_comes_last_and_those_without_weights_are_left_out(network):
    members = plan(network, "multi_inits", members=4)
    histories = [[{"rmse_log": error} for error in errors] for errors in ([3, 1, 2], [2], [])]
    assert served(members, histories) == ["member_02", "member_01"]
    helper = replace(members[1], helps=True)
    assert served([members[0], helper], histories[:2]) == ["member_02", "member_01"]
    assert served([helper, members[0]], histories[:2]) == ["member_02", "member_01"]


OTHERS = {"members": 3, "snapshots": 2}


@pytest.mark.parametrize("method", sorted(set(TRAINED_METHODS) - {"distilled"}))
@pytest.mark.parametrize("name", ONLY_FOR)
def test_an_option_changes_what_is_trained_for_its_methods_alone(name, method, network):
    def made(**options):
        members = plan(network, method, epochs=9, patience=3, **options)
        return [
            (
                one.name,
                one.network,
                one.objective,
                schedule.saved_epochs([3, 2, 1, 2, 2, 2, 2, 2, 2], one.training),
            )
            for one in members
        ]

    assert (made() != made(**{name: OTHERS[name]})) == (method in ONLY_FOR[name])


@pytest.mark.parametrize(
    ("options", "given", "found"),
    [
        (
            {"method": "mc_dropout"},
            {"members", "method", "epochs"},
            "mc_dropout ignores --members",
        ),
        ({"method": "bagging"}, {"members"}, ""),
        (
            {"distill": "teacher"},
            {"snapshots", "distill"},
            "distilled ignores --snapshots",
        ),
        ({}, {"snapshots"}, ""),
        ({"method": "mc_dropout"}, set(), ""),
    ],
)
def test_only_options_that_were_given_and_do_nothing_are_without_effect(options, given, found):
    assert without_effect(TrainingConfig(**options), given) == found


@pytest.mark.parametrize("head", ["laplace", "gaussian"])
def test_a_likelihood_starts_where_it_can_be_trained(head, source, network):
    """Far from the thousands it costs to start with a scale that is far too small."""
    frames = read_frames(source, (64, 64))
    hourglass = Hourglass(replace(network, head=head))
    hourglass.start_from_constant(*constant_guess(frames))
    images, truth = frames.batch(range(8))
    output = hourglass.train()(images)
    depth_m, _ = constant_guess(frames)
    assert output.depth_m.median().item() == pytest.approx(depth_m, rel=0.2)
    assert objective.LOSSES[head](*output, truth).item() < 4


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
