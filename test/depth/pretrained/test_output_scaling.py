# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Outputs become metres by numbers that a few known depths decide."""

import pytest
import torch

from uncertainty_depth.depth.networks.deployment import prepare
from uncertainty_depth.depth.networks.pretrained_heads import InverseDepth, InverseMetric, Metric

OUTPUT = torch.linspace(0.0, 9.0, 50)


def test_inverse_depth_is_fitted_exactly_where_it_is_exact():
    units = InverseDepth()
    units.fit(OUTPUT, 1.0 / (0.07 * OUTPUT + 0.2))
    assert units.log_scale.exp().item() == pytest.approx(0.07, rel=1e-4)
    assert units.log_shift.exp().item() == pytest.approx(0.2, rel=1e-4)


def test_a_shift_that_would_be_negative_keeps_the_mean_inverse_depth_and_is_positive():
    units = InverseDepth()
    depth = 1.0 / (0.5 * OUTPUT.clamp_min(2.0) - 0.9)
    units.fit(OUTPUT, depth)
    assert 0 < units.log_shift.exp().item() <= (1 / depth).min().item()
    assert (1 / units(OUTPUT)).mean().item() == pytest.approx((1 / depth).mean().item(), rel=1e-4)


@pytest.mark.parametrize(
    "output",
    [OUTPUT.flip(0), torch.zeros(50), torch.ones(50)],
    ids=["wrong way round", "dead", "constant"],
)
def test_an_output_that_says_nothing_of_depth_starts_positive_and_finite(output):
    units = InverseDepth()
    units.fit(output, 1.0 / (0.07 * OUTPUT + 0.2))
    assert torch.isfinite(units(output)).all()
    assert (units(output) > 0).all()


def test_metres_are_left_alone_until_they_are_fitted_by_their_median_ratio():
    units = Metric()
    depth = torch.linspace(1.0, 5.0, 50)
    assert torch.equal(units(depth), depth)
    truth = 1.7 * depth
    truth[:10] *= 9
    units.fit(depth, truth)
    torch.testing.assert_close(units(depth), 1.7 * depth)


def test_inverse_metres_are_their_reciprocal_until_they_are_fitted_and_end_where_depth_pro_ends():
    units = InverseMetric()
    inverse = torch.tensor([0.0, 1e-5, 0.1, 2.0, 1e5])
    torch.testing.assert_close(units(inverse), torch.tensor([1e4, 1e4, 10.0, 0.5, 1e-4]))
    units.fit(OUTPUT[1:], 1.7 / OUTPUT[1:])
    torch.testing.assert_close(units(inverse[2:4]), torch.tensor([17.0, 0.85]))


def test_another_precision_leaves_the_factor_alone(network):
    made = network("dpt").eval()
    made.decoder.units.log_scale.data.fill_(-5.03)
    prepared = prepare(made, torch.device("cpu"), "bf16")
    assert prepared.decoder.units.log_scale.item() == pytest.approx(-5.03)
    assert next(prepared.encoder.parameters()).dtype == torch.bfloat16
