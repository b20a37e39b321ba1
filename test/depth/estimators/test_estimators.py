# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Each estimator against its definition: M whole passes with related samples, NumPy's moments."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.core.records import SampleRange
from uncertainty_depth.depth.estimators import Deterministic, Ensemble, McDropout, Mirrored
from uncertainty_depth.depth.estimators.estimator import Moments
from uncertainty_depth.depth.estimators.mc_dropout import Draw, SeededDropout, StratifiedNoise
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.model_folder.writing import create, set_members, write_member
from uncertainty_depth.depth.networks.depth_network import NetworkOutput
from uncertainty_depth.depth.networks.hourglass import Hourglass

STAMP = 1_700_000_000_123_456_789
CONFIG = PredictorConfig(samples=5, seed=3)
SHAPES = ((16, 4, 6), (8, 8, 12), (4, 16, 24))
"""The maps' shapes at the dropouts."""
IMAGE = torch.rand(1, 3, 50, 70, generator=torch.Generator().manual_seed(0))


def network(head: str = "laplace", seed: int = 0, **options) -> Hourglass:
    torch.manual_seed(seed)
    return Hourglass(NetworkConfig(backbone="tiny", decoder_width=16, head=head, **options)).eval()


class OneDropout(torch.nn.Module):
    """Stands where the network's own nn.Dropout stood, for a whole pass of one sample."""

    def __init__(self, rate: float, noise: torch.Tensor) -> None:
        super().__init__()
        self.rate = rate
        self.noise = noise

    def forward(self, x):
        return SeededDropout(self.rate)(x, self.noise)


def assert_is_of(estimate, outputs, head):
    """Check the estimate against NumPy's, in float64, from whole passes."""
    depths = np.array([output.depth_m[0, 0].double().numpy() for output in outputs])
    aleatoric = np.zeros_like(depths[0])
    if head != "none":
        factor = {"laplace": 2, "gaussian": 1}[head]
        scales = [output.scale_m[0, 0].double().numpy() for output in outputs]
        aleatoric = np.mean([factor * scale**2 for scale in scales], axis=0)
    np.testing.assert_allclose(estimate.depth_m, depths.mean(0), rtol=1e-5)
    np.testing.assert_allclose(estimate.epistemic, depths.var(0), rtol=1e-3, atol=1e-9)
    total = depths.var(0) + aleatoric
    np.testing.assert_allclose(
        estimate.epistemic + estimate.aleatoric, total, rtol=1e-4, atol=1e-9
    )


def naive_dropout(made: Hourglass, image, stamp, config):
    """M whole passes from the pixels on."""
    outputs = []
    rate = made.config.dropout
    noise = StratifiedNoise([Draw(shape, rate) for shape in SHAPES], config.samples)
    for sample in range(config.samples):
        masks = noise.of(noise.draw(config.seed, stamp), [sample])
        made.decoder.dropouts = torch.nn.ModuleList([OneDropout(rate, mask) for mask in masks])
        with torch.no_grad():
            outputs.append(made(image))
    return outputs


@pytest.mark.parametrize("head", ["none", "laplace", "gaussian"])
def test_mc_dropout_is_m_whole_passes(head):
    made = network(head)
    estimate = McDropout(made).estimate(IMAGE, STAMP, CONFIG)
    assert_is_of(estimate, naive_dropout(made, IMAGE, STAMP, CONFIG), head)
    assert estimate.epistemic.min() > 0


@pytest.mark.parametrize(
    ("samples", "wanted", "passes"),
    [(8, None, 2), (1, None, 1), (8, SampleRange(1, 1), 1), (8, SampleRange(1, 2), 2)],
)
@pytest.mark.parametrize("head", ["none", "laplace"])
def test_mirrored_is_a_pass_of_the_image_and_one_of_its_mirror_image(
    head, samples, wanted, passes
):
    made = network(head)
    config = replace(CONFIG, samples=samples)
    estimate = Mirrored(made).estimate(IMAGE, STAMP, config, wanted)
    with torch.no_grad():
        straight, mirrored = made(IMAGE), made(IMAGE.flip(-1))
    turned_back = NetworkOutput(*(it if it is None else it.flip(-1) for it in mirrored))
    assert_is_of(estimate, [straight, turned_back][:passes], head)


def test_the_encoder_runs_once_per_frame():
    made = network()
    calls = {"encoder": 0, "first": 0, "second": 0}
    for name, part in (
        ("encoder", made.encoder),
        ("first", made.decoder.ups[0]),
        ("second", made.decoder.ups[1]),
    ):
        part.register_forward_hook(lambda *_, name=name: calls.update({name: calls[name] + 1}))
    estimator = McDropout(made)
    estimator.estimate(IMAGE, STAMP, CONFIG)
    calls.update(dict.fromkeys(calls, 0))  # the first frame also finds the maps' shapes
    estimator.estimate(IMAGE, STAMP, CONFIG)
    assert calls == {"encoder": 1, "first": 1, "second": 1}


def test_mc_dropout_needs_dropout():
    with pytest.raises(ModelError, match="needs a network with dropout"):
        McDropout(network(dropout=0.0))


@pytest.mark.parametrize("head", ["none", "laplace"])
def test_multi_epochs_is_one_pass_of_each_snapshot(head):
    networks = [network(head, seed) for seed in range(4)]
    estimate = Ensemble(networks).estimate(IMAGE, STAMP, replace(CONFIG, samples=3))
    with torch.no_grad():
        assert_is_of(estimate, [made(IMAGE) for made in networks[-3:]], head)


def test_snapshots_with_a_shared_encoder_run_it_once(tmp_path):
    made = network()
    made.freeze_encoder()
    create(tmp_path, made, {})
    for name in "abc":
        with torch.no_grad():
            made.decoder.final.bias.add_(0.1)
        write_member(tmp_path, name, made)
    set_members(tmp_path, list("abc"), "multi_epochs")
    estimator = Ensemble.load(read_model(tmp_path), lambda loaded: loaded)
    calls = []
    estimator.networks[0].encoder.register_forward_hook(lambda *_: calls.append(1))
    found = estimator.estimate(IMAGE, STAMP, CONFIG)
    assert len(calls) == 1
    apart = Ensemble([read_model(tmp_path).load(name) for name in "abc"]).estimate(
        IMAGE, STAMP, CONFIG
    )
    assert all(map(torch.equal, found[:3], apart[:3]))


def test_deterministic_is_the_network_alone():
    for head, factor in (("laplace", 2.0), ("gaussian", 1.0), ("none", 0.0)):
        made = network(head)
        estimate = Deterministic(made).estimate(IMAGE, STAMP, CONFIG)
        with torch.no_grad():
            depth, scale = made(IMAGE)
        assert torch.equal(estimate.depth_m, depth[0, 0])
        assert torch.equal(estimate.epistemic, torch.zeros_like(depth[0, 0]))
        expected = torch.zeros_like(depth[0, 0]) if scale is None else factor * scale[0, 0] ** 2
        torch.testing.assert_close(estimate.epistemic + estimate.aleatoric, expected)


class Small:
    """Memory for batches of a size: a hook for a layer that all samples pass."""

    def __init__(self, largest):
        self.largest = largest
        self.batches = []

    def __call__(self, layer, inputs):
        self.batches.append(len(inputs[0]))
        if self.batches[-1] > self.largest:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")


def test_memory_that_runs_out_halves_the_samples_at_once_and_keeps_the_maps(caplog):
    config = replace(CONFIG, samples=11)
    expected = McDropout(network()).estimate(IMAGE, STAMP, config)
    made = network()
    memory = Small(3)
    estimator = McDropout(made)
    estimator.estimate(IMAGE, STAMP, config)
    made.decoder.ups[2].register_forward_pre_hook(memory)
    for _ in range(2):
        found = estimator.estimate(IMAGE, STAMP, config)
        torch.testing.assert_close(found[:3], expected[:3], rtol=1e-5, atol=1e-9)
    assert memory.batches == [8, 4, *[2, 2, 2, 2, 2, 1] * 2]
    assert [record.getMessage() for record in caplog.records] == [
        f"memory ran out for {before} samples at once; from now on {after} are computed at once, "
        "which takes longer"
        for before, after in ((8, 4), (4, 2))
    ]


def test_memory_too_small_for_one_sample_is_an_error():
    made = network()
    memory = Small(0)
    estimator = McDropout(made)
    estimator.estimate(IMAGE, STAMP, CONFIG)
    made.decoder.ups[2].register_forward_pre_hook(memory)
    with pytest.raises(RuntimeError, match="out of memory"):
        estimator.estimate(IMAGE, STAMP, CONFIG)
    assert memory.batches == [5, 2, 1]


SHAPE = (20, 50, 60)
UNITS = 60_000
SEED = 1
RATES = (0.05, 0.2, 0.9)


def masks(rate=0.2, samples=8, stamp=5, seed=SEED):
    """(M, units) keep masks for all samples in a frame."""
    noise = StratifiedNoise([Draw(SHAPE, rate)], samples)
    (masks,) = noise.of(noise.draw(seed, stamp), range(samples))
    return masks.numpy().reshape(samples, -1)


@pytest.mark.parametrize("samples", [1, 2, 7, 64])
@pytest.mark.parametrize("rate", RATES)
def test_each_sample_alone_drops_units_at_the_rate_and_independently(samples, rate):
    kept = masks(rate, samples)
    limit = 5 * np.sqrt(UNITS * rate * (1 - rate))
    assert np.abs((1 - kept).sum(1) - rate * UNITS).max() < limit
    neighbours = np.corrcoef(kept[0, :-1], kept[0, 1:])[0, 1]
    assert abs(neighbours) < 5 / np.sqrt(UNITS)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("samples", [2, 8])
def test_stratified_samples_drop_each_unit_its_expected_number_of_times(rate, samples):
    dropped = (1 - masks(rate, samples).astype(int)).sum(0)
    expected = rate * samples
    assert dropped.min() >= np.floor(expected - 1e-3 * samples)
    assert dropped.max() <= np.ceil(expected + 1e-3 * samples)
    assert dropped.mean() == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("rate", RATES)
def test_stratified_samples_are_exchangeable(rate):
    """All pairs have the correlation that follows from how much the number of drops varies."""
    fraction = (rate * 8) % 1
    variance = rate * (1 - rate)
    expected = (fraction * (1 - fraction) - 8 * variance) / (8 * 7 * variance)
    pairs = np.corrcoef(masks(rate))[~np.eye(8, dtype=bool)]
    assert np.abs(pairs - expected).max() < 0.05
    assert pairs.mean() == pytest.approx(expected, abs=0.005)


def test_samples_are_the_same_alone_and_together_and_follow_from_seed_and_stamp():
    together = masks()
    noise = StratifiedNoise([Draw(SHAPE, 0.2)], 8)
    (some,) = noise.of(noise.draw(SEED, 5), [7, 0, 3])
    assert np.array_equal(some.numpy().reshape(3, -1), together[[7, 0, 3]])
    assert not np.array_equal(masks(stamp=6), together)
    assert not np.array_equal(masks(seed=2), together)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("samples", [1, 7, 64])
def test_looked_up_together_as_on_a_gpu_the_masks_are_the_same(samples, rate):
    numbers = [samples - 1, 0, samples // 2]
    noise = StratifiedNoise([Draw(SHAPE, rate), Draw((3, 4, 5), 0.3)], samples)
    for stamp in (4, 5):
        drawn = noise.draw(SEED, stamp)
        together = noise.of(drawn, torch.tensor(numbers, dtype=torch.int32))
        assert all(map(torch.equal, together, noise.of(drawn, numbers)))


OF_SAMPLES = st.tuples(st.integers(1, 12), st.integers(1, 4), st.integers(1, 4))
DEPTHS = hnp.arrays(np.float32, OF_SAMPLES, elements=st.floats(0.125, 100.0, width=32))


def moments_of(depths):
    """One frame's moments, whose samples come one after the other."""
    moments = Moments()
    for one in depths:
        moments.add(torch.from_numpy(one[None]), None)
    return moments.estimate()


@given(depths=DEPTHS)
def test_in_order_it_does_not_matter_how_many_come_together(depths):
    moments = Moments()
    moments.add(torch.from_numpy(depths), None)
    found = moments.estimate()
    assert all(map(torch.equal, found[:3], moments_of(depths)[:3]))


@given(depths=DEPTHS, cuts=st.lists(st.integers(1, 11), max_size=3))
def test_parts_in_one_reduction_each_give_numpys_moments(depths, cuts):
    variances = depths[::-1] ** 2
    moments = Moments(in_order=False)
    parts = zip(*(np.split(values, sorted(cuts)) for values in (depths, variances)), strict=True)
    for depth, variance in parts:
        if len(depth):
            moments.add(torch.tensor(depth), torch.tensor(variance))
    estimate = moments.estimate()
    exact = depths.astype(np.float64)
    np.testing.assert_allclose(estimate.depth_m, exact.mean(0), rtol=1e-6)
    limit = 1e-6 * exact.max() ** 2
    np.testing.assert_allclose(estimate.epistemic, exact.var(0), rtol=1e-4, atol=limit)
    np.testing.assert_allclose(estimate.aleatoric, variances.mean(0), rtol=1e-5)
    depth, sigma = estimate.maps()
    np.testing.assert_array_equal(depth, estimate.depth_m)
    np.testing.assert_allclose(sigma**2, estimate.epistemic + estimate.aleatoric, rtol=1e-5)


@pytest.mark.parametrize("in_order", [True, False])
def test_a_spread_far_smaller_than_the_depth_survives_float32(in_order):
    """The textbook sum of squares would lose it: at 80^2 float32's step is 5e-4."""
    rng = np.random.default_rng(0)
    depths = (80.0 + 1e-3 * rng.standard_normal((1000, 2, 2))).astype(np.float32)
    moments = Moments(in_order)
    for part in np.split(depths, 125):
        moments.add(torch.from_numpy(part), None)
    estimate = moments.estimate()
    exact = depths.astype(np.float64).var(0)
    np.testing.assert_allclose(estimate.epistemic, exact, rtol=1e-2)
