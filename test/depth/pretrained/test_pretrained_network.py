# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A wrapped model gives what the model gives, in metres, and its dropout is where samples part."""

import copy

import pytest
import torch

from test.depth.pretrained.conftest import MEAN, METRIC, RELATIVE, STD, by_hand, random_model
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.depth.estimators import Ensemble, McDropout
from uncertainty_depth.depth.model_folder import folder as model_folder
from uncertainty_depth.depth.model_folder import writing
from uncertainty_depth.depth.networks.deployment import prepare
from uncertainty_depth.depth.networks.families import metric_range
from uncertainty_depth.depth.networks.pretrained import (
    InverseDepth,
    InverseMetric,
    Metric,
    PretrainedDepth,
)

SIZES = {"dpt": (64, 64), "depth_pro": (128, 128)}
"""The reference takes nothing but squares there, or one size."""
OF_14 = ("depth_anything", "dinov2")
"""Kinds with 14-pixel patches."""


def image(family: str, count: int = 2) -> torch.Tensor:
    torch.manual_seed(3)
    size = (112, 84) if any(part in family for part in OF_14) else (64, 96)
    return torch.rand(count, 3, *SIZES.get(family, size))


@torch.no_grad()
@pytest.mark.parametrize("family", [*METRIC, *RELATIVE])
def test_the_output_is_the_models_own_bit_for_bit_and_survives_the_folder(
    family, network, tmp_path
):
    images = image(family)
    wrapped = network(family, head="laplace")
    found = wrapped.decoder(wrapped.encode(images))[:, 0]
    expected = by_hand(family, images)
    assert expected.std() > 1e-3
    assert torch.equal(found, expected)
    torch.nn.init.constant_(wrapped.decoder.units.log_scale, 0.3)
    writing.create(tmp_path / "model", wrapped, {})
    writing.write_member(tmp_path / "model", "a", wrapped)
    writing.set_members(tmp_path / "model", ["a"], "mc_dropout")
    read = model_folder.read_model(tmp_path / "model").load("a")
    for one, other in zip(read(images), wrapped(images), strict=True):
        # not to the bit: on some processors a sum depends on where in memory its terms lie
        torch.testing.assert_close(one, other)


def test_without_a_model_of_the_field_of_view_depth_is_inverse_up_to_what_training_finds(network):
    images = image("depth_pro")
    wrapped = network("depth_pro_without_fov")
    with torch.no_grad():
        expected = by_hand("depth_pro_without_fov", images)
        assert torch.equal(wrapped.decoder(wrapped.encode(images))[:, 0], expected)
    assert isinstance(wrapped.decoder.units, InverseDepth)


@torch.no_grad()
def test_dpt_with_the_head_of_dinov2_gives_metres(network):
    """Of wide layers, as the class has it fixed: not among the kinds, for speed."""
    images = torch.rand(1, 3, 28, 42)
    wrapped = network("dpt_metric")
    assert metric_range(wrapped.decoder.neck.config) == (1e-3, 80.0)
    metres = wrapped.decoder.units(wrapped.decoder(wrapped.encode(images)))
    assert torch.equal(metres[:, 0], by_hand("dpt_metric", images))


@pytest.mark.parametrize("relative", RELATIVE)
def test_a_larger_relative_output_is_nearer_and_all_depth_is_finite(relative, network):
    wrapped = network(relative)
    output = wrapped.decoder(wrapped.encode(image(relative)))
    depth = wrapped(image(relative)).depth_m
    assert torch.isfinite(depth).all()
    assert (depth > 0).all()
    order = wrapped.depth_of(output).flatten()[output.flatten().argsort()]
    assert (order.diff() <= 0).all()


def test_the_depth_range_is_not_left_and_the_gradient_goes_through(network):
    wrapped = network("glpn", depth_range=(2.0, 3.0))
    raw = torch.tensor([[[[0.5, 2.5, 9.0]]]], requires_grad=True)
    depth = wrapped.depth_of(raw)
    depth.sum().backward()
    torch.testing.assert_close(depth.flatten(), torch.tensor([2.0, 2.5, 3.0]))
    assert raw.grad.flatten().tolist() == [1.0, 1.0, 1.0]


KINDS = ("depth_anything_metric", "depth_pro", "dpt", "glpn", "zoedepth")


@pytest.mark.parametrize("family", KINDS)
def test_trunk_and_branches_are_the_whole_network(family, network):
    """The same noise in the dropouts gives the same maps, whether the trunk is shared or not."""
    wrapped = network(family, head="gaussian")
    images = image(family, 1)
    wrapped.decoder.dropouts.train()
    torch.manual_seed(4)
    whole = wrapped(images)
    trunk = wrapped.decoder.trunk(wrapped.encode(images))
    torch.manual_seed(4)
    raw = wrapped.decoder.branches(trunk, list(wrapped.decoder.dropouts))
    parts = wrapped.to_metres(raw, images.shape[-2:])
    assert torch.equal(whole.depth_m, parts.depth_m)
    assert torch.equal(whole.scale_m, parts.scale_m)
    calls = []
    shared = [wrapped.encoder]
    if hasattr(wrapped.decoder, "neck"):
        shared += wrapped.decoder.neck.convs
    for module in shared:
        module.register_forward_hook(lambda module, *_: calls.append(module))
    estimate = McDropout(wrapped).estimate(images, 7, PredictorConfig(samples=20))
    assert calls == shared, "samples run the encoder and the neck's maps once"
    assert estimate.epistemic.max() > 0


@pytest.mark.parametrize("family", KINDS)
def test_a_frozen_encoder_gets_no_gradient_and_all_of_the_head_that_matters_does(family, network):
    wrapped = network(family, head="laplace")
    wrapped.freeze_encoder()
    output = wrapped.train()(image(family))
    (output.depth_m.log().sum() + output.scale_m.log().sum()).backward()
    assert not any(weights.requires_grad for weights in wrapped.encoder.parameters())
    idle = [name for name, weights in wrapped.decoder.named_parameters() if weights.grad is None]
    first = ("layers.0.residual_layer1", "intermediate.0.residual_layer1")
    of_one_domain = ("patch_transformer", "classifier", ".nyu.", ".kitti.")
    unused = (*first, "relative_head.conv3", *of_one_domain)
    assert all(any(part in name for part in unused) for name in idle)


@pytest.mark.parametrize(
    ("family", "precision", "rtol"),
    [*((family, "fp32", 1e-4) for family in KINDS), ("depth_anything_metric", "bf16", 0.3)],
)
def test_a_prepared_network_predicts_the_same(family, precision, rtol, network):
    wrapped = network(family)
    images = image(family, 1)
    expected = wrapped(images).depth_m
    found = prepare(copy.deepcopy(wrapped), torch.device("cpu"), precision)(images).depth_m
    assert found.dtype == torch.float32
    assert ((found - expected).abs().median() <= rtol * expected.abs().median()).item()


@pytest.mark.parametrize("family", KINDS)
def test_a_gpu_decodes_snapshots_together_to_the_maps_that_each_gives(family, network):
    first = prepare(network(family, head="laplace"), torch.device("cpu"), "fp32")
    second = copy.deepcopy(first)
    second.encoder = first.encoder
    for parameter in second.decoder.parameters():
        parameter.mul_(1.01)
    ensemble = Ensemble([first, second])
    config = PredictorConfig(samples=2)
    images = image(family, 1)
    expected = ensemble.estimate(images, 1, config)
    together = Ensemble([first, second])
    together.few_launches = True
    found = together.estimate(images, 1, config)
    torch.testing.assert_close(found.depth_m, expected.depth_m, rtol=1e-4, atol=0)
    torch.testing.assert_close(found.aleatoric, expected.aleatoric, rtol=1e-3, atol=0)
    torch.testing.assert_close(found.epistemic, expected.epistemic, rtol=1e-2, atol=1e-6)
    assert expected.epistemic.max() > 0


@torch.no_grad()
def test_a_wrapped_model_still_runs_by_itself():
    images = image("dpt")
    model = copy.deepcopy(random_model("dpt"))
    expected = model(images).predicted_depth
    model.config.image_mean, model.config.image_std = MEAN, STD
    PretrainedDepth(NetworkConfig(backbone="dpt"), model).train()
    assert torch.equal(model(images).predicted_depth, expected)


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
