# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
from dataclasses import replace

import numpy as np
import pytest

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
