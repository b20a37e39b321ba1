# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Propagated variance and memory against what they are of, on small networks."""

import copy

import numpy as np
import pytest
import torch

from experiments import samples_report
from experiments.samples_drives import dropout_ways, member_ways
from experiments.samples_frames import Scene, mean_network
from experiments.samples_scores import score
from experiments.samples_ways import (
    Memory,
    Propagated,
    _by_squares,
    many,
    one_pass,
    sampled,
    ways_of,
)
from uncertainty_depth.config import NetworkConfig, PredictorConfig
from uncertainty_depth.inference.deployment import prepare
from uncertainty_depth.model_folder import writing
from uncertainty_depth.network.encoder import image_tensor
from uncertainty_depth.network.hourglass import Hourglass
from uncertainty_depth.records import Frame
from uncertainty_depth.uncertainty import McDropout

IMAGE = torch.rand(1, 3, 48, 64, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    config = NetworkConfig(backbone="tiny", decoder_width=16, head="laplace", dropout=0.1)
    return prepare(Hourglass(config), torch.device("cpu"), "fp32")


@pytest.mark.parametrize(
    "layer",
    [
        torch.nn.Conv2d(3, 4, 3, padding=1),
        torch.nn.ConvTranspose2d(3, 4, 5, stride=2, padding=2, output_padding=1),
    ],
)
def test_variance_of_independent_inputs_goes_through_a_convolution_exactly(layer):
    deviations = torch.rand(3, 4, 5)
    units = torch.diag_embed(deviations.flatten()).view(60, 3, 4, 5)
    with torch.no_grad():
        responses = layer(units) - layer(torch.zeros(1, 3, 4, 5))
        found = _by_squares(layer, deviations.square()[None])[0]
    torch.testing.assert_close(found, responses.square().sum(0), rtol=1e-4, atol=1e-6)


def test_propagated_sigma_ranks_pixels_as_samples_do_and_is_repeatable(network):
    estimate = Propagated(network).estimate(IMAGE)
    config = PredictorConfig(samples=256, chunk=64)
    many = McDropout(network).estimate(IMAGE, 0, config)
    assert torch.equal(estimate.epistemic, Propagated(network).estimate(IMAGE).epistemic)
    found, expected = estimate.epistemic.sqrt(), many.epistemic.sqrt()
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.5
    assert 1 / 3 < float(found.mean() / expected.mean()) < 3
    torch.testing.assert_close(estimate.aleatoric, many.aleatoric, rtol=0.1, atol=0.0)


def scene_of(pixels, stamp_ns):
    frame = Frame(
        stamp_ns,
        "",
        image=np.zeros((1, 1, 3), np.uint8),
        ground_truth_m=np.ones((1, 1), np.float32),
    )
    return Scene(frame, pixels)


@pytest.mark.parametrize("is_centred", [True, False])
def test_the_memory_of_a_robot_that_stands_still_nears_the_spread_of_many(network, is_centred):
    sample = sampled(network, 1, 1, "independent")
    memory = Memory(sample, one_pass(network) if is_centred else None)
    spreads = []
    for stamp_ns in range(1, 41):
        spreads.append(memory(scene_of(IMAGE, stamp_ns)).epistemic.sqrt().mean())
    reference = McDropout(network).estimate(IMAGE, 0, PredictorConfig(samples=64))
    expected = float(reference.epistemic.sqrt().mean())
    assert float(np.mean(spreads[-20:])) == pytest.approx(expected, rel=0.15)


def test_members_take_turns_and_their_memory_nears_the_spread_of_all(network):
    members = []
    for seed in range(5):
        torch.manual_seed(seed)
        made = Hourglass(network.config)
        members.append(prepare(made, torch.device("cpu"), "fp32"))
    centre = members.pop()
    before = [scene_of(IMAGE, stamp_ns) for stamp_ns in range(1, 40)]
    ways = member_ways(members, centre, before)
    now = scene_of(IMAGE, 40)
    depths = torch.stack([one_pass(member)(now).depth_m for member in members])
    every = ways["all members"](now)
    torch.testing.assert_close(every.epistemic, depths.var(0, correction=0), rtol=1e-3, atol=1e-5)
    memory = ways["memory"](now)
    torch.testing.assert_close(memory.depth_m, depths[3])  # the fourth member's turn
    expected = float(every.epistemic.mean())
    assert float(memory.epistemic.mean()) == pytest.approx(expected, rel=0.3)
    centred = ways["memory, centred"](now)
    centre_m = one_pass(centre)(now).depth_m
    torch.testing.assert_close(centred.depth_m, centre_m)
    about_the_centre = float((depths - centre_m).square().mean())
    assert float(centred.epistemic.mean()) == pytest.approx(about_the_centre, rel=0.3)


def test_the_mean_of_snapshots_on_either_side_of_a_network_is_that_network(tmp_path):
    torch.manual_seed(0)
    middle = Hourglass(NetworkConfig(backbone="tiny", decoder_width=16))
    writing.create(tmp_path, middle, {})
    sides = {"epoch_1": 0.9, "epoch_2": 1.1}  # of every weight and every running mean and variance
    for name, factor in sides.items():
        member = copy.deepcopy(middle)
        for value in (*member.parameters(), *member.buffers()):
            if value.is_floating_point():
                value.data *= factor
        writing.write_member(tmp_path, name, member)
    writing.set_members(tmp_path, list(sides), "multi_epochs")
    expected = one_pass(prepare(middle, torch.device("cpu"), "fp32"))(scene_of(IMAGE, 1)).depth_m
    found = one_pass(mean_network(tmp_path))(scene_of(IMAGE, 1)).depth_m
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_a_table_shows_paired_differences_and_no_score_of_what_has_no_spread(tmp_path):
    def piece(offset):
        scores = dict.fromkeys(samples_report.COLUMNS, 0.5 + offset)
        scores |= {"correlation": 0.9, "relative_error": 0.1, "depth_error": 0.2}
        better = scores | {"n_merci": 0.4 + offset}
        none = scores | {"n_merci": None}
        return {
            "one pass": {"ms": 10.0, "total": scores, "spread": none},
            "stratified 8": {"ms": 30.0, "total": better, "spread": better},
            "independent 64": {"ms": 200.0, "total": scores, "spread": scores},
        }

    results = {"shipped": [piece(0.0), piece(0.1)], "drives": [piece(0.0)]}
    samples_report.write(tmp_path, results, ["2 cm a frame"])
    table = (tmp_path / "table.md").read_text()
    assert (
        "| stratified 8 | 30.0 | 3.00 | 0.200 | 0.100 | 0.900 | 0.4500 (-0.1000 ± 0.0000)" in table
    )
    assert "drives, 2 cm a frame, spread" in table
    assert table.count("| one pass |") == 1  # it has no spread
    assert (tmp_path / "samples.png").stat().st_size > 1000


def test_agreement_and_cost_of_every_way_are_told_and_more_samples_agree_better(network):
    width, height = network.config.input_size
    truth_m = np.random.default_rng(0).uniform(1, 5, (height, width)).astype(np.float32)
    image = np.random.default_rng(1).integers(0, 256, (height, width, 3), np.uint8)
    scene = Scene(Frame(1, "one", image=image, ground_truth_m=truth_m), image_tensor(image[None]))
    every = ways_of(network, 0)
    ways = {name: every[name] for name in ("one pass", "independent 2", "stratified 16")}
    found = score(network, [scene], ways, many(network, 32))
    assert list(found) == list(ways)
    few = found["independent 2"]["spread"]
    more = found["stratified 16"]["spread"]
    assert more["relative_error"] < few["relative_error"]
    assert more["depth_error"] < few["depth_error"]
    assert found["one pass"]["spread"]["relative_error"] == pytest.approx(1.0)
    assert found["one pass"]["spread"]["correlation"] == 0
    assert all(result["ms"] > 0 for result in found.values())


def test_a_memory_at_the_end_of_a_drive_has_seen_the_frames_before(network):
    width, height = network.config.input_size
    scenes = []
    for number in range(4):
        image = np.full((height, width, 3), 60 * number, np.uint8)
        truth_m = np.ones((height, width), np.float32)
        scenes.append(
            Scene(
                Frame(number, "", image=image, ground_truth_m=truth_m), image_tensor(image[None])
            )
        )
    memory = Memory(sampled(network, 1, 3, "independent"), one_pass(network))
    for scene in scenes:
        expected = memory(scene)
    ways = dropout_ways(network, 3, scenes[:-1])
    assert torch.equal(ways["memory, centred"](scenes[-1]).epistemic, expected.epistemic)
    assert ways["memory"](scenes[-1]).epistemic.mean() > expected.epistemic.mean()
