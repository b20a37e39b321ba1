# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Maps have the image's size, and are the same in any process, thread, precision and version."""

import json
import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import cv2
import numpy as np
import PIL.Image
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from test.conftest import refused
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.errors import ConfigError, MessageError, ModelError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import SampleRange
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.model_folder.writing import set_calibration
from uncertainty_depth.depth.networks.encoder import image_tensor, resize_image
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.sigma.calibration.sigma_map import SigmaMap

STAMP = 1_700_000_000_123_456_789


@pytest.fixture(scope="module")
def write_model(make_model):
    def write(path, head="laplace", members=2, method="mc_dropout", **options):
        names = tuple(f"m{index}" for index in range(members))
        return make_model(path, method, names, {"epochs": 3}, head=head, **options)

    return write


@pytest.fixture(scope="module")
def model(tmp_path_factory, write_model):
    return write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def predictor(model):
    return Predictor(model, PredictorConfig(samples=4, device="cpu"))


def random_image(height=90, width=120, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


@given(height=st.integers(1, 200), width=st.integers(1, 200))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_maps_have_the_image_s_size(predictor, height, width):
    prediction = predictor.predict(random_image(height, width), STAMP)
    for values in (prediction.depth_m, prediction.sigma_m):
        assert values.shape == (height, width)
        assert values.dtype == np.float32
        assert np.isfinite(values).all()
    assert prediction.depth_m.min() > 0.3
    assert prediction.depth_m.max() < 12.0
    assert prediction.sigma_m.min() > 0.0


def test_images_are_arrays_files_or_pil_s_and_options_keywords(model, tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    path = tmp_path / "image.png"
    PIL.Image.fromarray(image).save(path)
    predictor = Predictor(model, samples=3)
    assert predictor.config == PredictorConfig(samples=3)
    camera = Camera(32, 24, np.array([[30.0, 0, 15.5], [0, 30, 11.5], [0, 0, 1]]))
    expected = predictor.predict(image, camera=camera)
    for form in (path, str(path), PIL.Image.open(path)):
        prediction = predictor.predict(form, camera=np.float32(30))
        np.testing.assert_array_equal(prediction.depth_m, expected.depth_m)
        np.testing.assert_array_equal(prediction.sigma_m, expected.sigma_m)


@pytest.mark.parametrize("camera", ["x", "front", -1.0, 0, float("nan"), [30, 30]])
def test_a_camera_that_is_none_is_refused_in_one_sentence(camera, predictor):
    with pytest.raises(ValueError, match="expected a positive number of pixels"):
        predictor.predict(random_image(), camera=camera)


def test_the_prediction_is_the_resized_network_output(model):
    image = random_image()
    found = Predictor(model, PredictorConfig(method="deterministic", device="cpu")).predict(
        image, STAMP
    )
    network = read_model(model).load("m1")
    with torch.no_grad():
        depth, scale = network(image_tensor(resize_image(image, (80, 64))[None]))
    for values, expected in ((found.depth_m, depth), (found.sigma_m, np.sqrt(2.0) * scale)):
        np.testing.assert_allclose(
            values, cv2.resize(expected[0, 0].numpy(), (120, 90)), rtol=1e-4
        )


def test_concurrent_threads_predict_the_same(predictor):
    expected = [predictor.predict(random_image(seed=n), STAMP + n) for n in range(6)]
    with ThreadPoolExecutor(3) as pool:
        found = list(
            pool.map(lambda n: predictor.predict(random_image(seed=n), STAMP + n), range(6))
        )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.depth_m, other.depth_m, rtol=1e-6)
        np.testing.assert_allclose(one.sigma_m, other.sigma_m, rtol=1e-4)


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 4), (0, 5, 3), (4, 0, 3)])
def test_arrays_that_are_no_images_are_refused(predictor, shape):
    with refused("image_wrong_shape", "image has shape"):
        predictor.predict(np.zeros(shape, np.uint8))
    with pytest.raises(MessageError, match="of float32"):
        predictor.predict(np.zeros((4, 5, 3), np.float32))


def test_the_description_is_json(model, predictor):
    described = json.loads(json.dumps(predictor.describe()))
    assert described["name"] == model.name
    expected = {"method": "mc_dropout", "samples": 4, "device": "cpu", "precision": "fp32"}
    assert described | expected == described
    assert described["training"] == {"epochs": 3}
    network = read_model(model).load("m1")
    assert described["parameters"] == pytest.approx(
        sum(weights.numel() for weights in network.parameters()), rel=0.01
    )


def test_zero_uncertainty_logs_a_warning(tmp_path, caplog, write_model):
    with caplog.at_level(logging.WARNING):
        found = Predictor(
            write_model(tmp_path, head="none"),
            PredictorConfig(method="deterministic", device="cpu"),
        ).predict(random_image())
    assert "predicts zero uncertainty for a black image" in caplog.text
    assert (found.sigma_m == 0.0).all()


LIBRARIES = {
    "torch": ("depth.predictor", "network"),
    "transformers": ("depth.networks.transformers_backbone", "pretrained"),
}
"""With a module that needs each, and the extra that brings it."""
WITHOUT_A_LIBRARY = f"""
import importlib, sys
for library, (module, _) in {LIBRARIES}.items():
    sys.modules[library] = None
    try:
        importlib.import_module(f"uncertainty_depth.{{module}}")
    except Exception as error:
        print(error)
    del sys.modules[library]
    for name in [name for name in sys.modules if name.startswith("uncertainty_depth")]:
        del sys.modules[name]
"""


def test_a_missing_library_is_named_with_the_way_to_install_it():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_A_LIBRARY], capture_output=True, text=True, check=True
    )
    for (library, (_, extra)), told in zip(
        LIBRARIES.items(), done.stdout.splitlines(), strict=True
    ):
        assert f"{library} is not installed; expected the extra {extra!r}" in told


@pytest.mark.parametrize(
    ("own", "asked"),
    [("mc_dropout", "bagging"), ("bagging", "multi_inits"), ("bagging", "multi_epochs")],
)
def test_an_ensemble_method_needs_members_trained_by_it(own, asked, tmp_path, write_model):
    folder = write_model(tmp_path, method=own)
    with pytest.raises(
        ConfigError,
        match=f"method is '{asked}', but .* was trained for '{own}'; expected {own} or ",
    ):
        Predictor(folder, PredictorConfig(method=asked, device="cpu"))
    for method in ("", own, "deterministic", "mc_dropout"):
        assert Predictor(folder, PredictorConfig(method=method, device="cpu")).method == (
            method or own
        )


def test_an_ensemble_of_one_member_logs_a_warning(write_model, tmp_path, caplog):
    write_model(tmp_path, members=1)
    Predictor(tmp_path, PredictorConfig(device="cpu"))
    assert "one member" not in caplog.text
    Predictor(tmp_path, PredictorConfig(device="cpu", method="multi_epochs"))
    assert "one member" in caplog.text


@pytest.mark.parametrize("method", ["mc_dropout", "multi_epochs"])
def test_a_range_of_samples_gives_the_same_maps_again_and_all_are_the_default(
    tmp_path, method, write_model
):
    folder = write_model(tmp_path / "model", members=3, method=method)
    predictor = Predictor(folder, PredictorConfig(samples=3, device="cpu"))
    assert predictor.passes == 3
    image = random_image()
    complete = predictor.predict(image, STAMP)
    ranges = [SampleRange(first, 2) for first in range(3)]
    parts = [predictor.predict(image, STAMP, samples=used) for used in ranges]
    again = [predictor.predict(image, STAMP, samples=used) for used in reversed(ranges)][::-1]
    for part, repeated in zip(parts, again, strict=True):
        assert np.array_equal(part.depth_m, repeated.depth_m)
        assert np.array_equal(part.sigma_m, repeated.sigma_m)
    # each sample is in two ranges
    mean = np.mean([part.depth_m for part in parts], axis=0)
    np.testing.assert_allclose(mean, complete.depth_m, rtol=1e-5)
    assert not np.array_equal(parts[0].depth_m, parts[1].depth_m)
    everything = predictor.predict(image, STAMP, samples=SampleRange(0, 3))
    assert np.array_equal(everything.depth_m, complete.depth_m)
    assert np.array_equal(everything.sigma_m, complete.sigma_m)


def test_a_canonical_model_scales_depth_and_raw_sigma_by_the_cameras_focal_length(
    tmp_path, write_model
):
    """An affine map after the camera's factor on sigma; before it the offset would be scaled."""
    folder = write_model(tmp_path / "model", members=1, canonical_focal_length=0.8)
    set_calibration(folder, "mc_dropout", SigmaMap("affine", (0.0, 1.0), (0.5, 2.5)), {})
    image = random_image()
    raw, calibrated = (
        Predictor(folder, PredictorConfig(samples=2, device="cpu", calibrated=is_calibrated))
        for is_calibrated in (False, True)
    )
    cameras = (None, 1.6 * np.sqrt(120 * 90))
    canonical, long_lens = (raw.predict(image, STAMP, camera) for camera in cameras)
    np.testing.assert_allclose(long_lens.depth_m, 2 * canonical.depth_m, rtol=1e-5)
    np.testing.assert_allclose(long_lens.sigma_m, 2 * canonical.sigma_m, rtol=1e-5)
    for camera, own in zip(cameras, (canonical, long_lens), strict=True):
        mapped = calibrated.predict(image, STAMP, camera)
        np.testing.assert_array_equal(mapped.depth_m, own.depth_m)
        np.testing.assert_allclose(mapped.sigma_m, 0.5 + 2 * own.sigma_m, rtol=1e-4)


def test_pixels_that_the_lens_does_not_see_get_neither_depth_nor_sigma(predictor):
    image = random_image()
    seen = np.random.default_rng(1).random(image.shape[:2]) < 0.8
    camera = Camera.pinhole(90.0, width=image.shape[1], height=image.shape[0])
    whole = predictor.predict(image, camera=camera)
    part = predictor.predict(image, camera=replace(camera, seen=seen))
    for name in ("depth_m", "sigma_m"):
        values = np.where(seen, getattr(whole, name), np.nan)
        np.testing.assert_array_equal(getattr(part, name), values)


def test_what_a_network_cannot_compute_has_no_value(tmp_path, write_model):
    """Finite weights whose products overflow for this image, and not for the trial's black one."""
    folder = write_model(tmp_path / "overflowing", members=1)
    (weights,) = folder.glob("m0*.safetensors")
    tensors = load_file(weights)
    tensors["encoder.mean"] *= 0
    first = next(name for name in tensors if name.endswith("convolution.weight"))
    tensors[first] = torch.full_like(tensors[first], 1e38)
    save_file(tensors, weights)
    prediction = Predictor(folder, PredictorConfig(samples=2, device="cpu")).predict(
        random_image(), STAMP
    )
    assert np.isnan(prediction.depth_m).all()
    assert np.isnan(prediction.sigma_m).all()


def test_weights_that_give_no_depth_at_all_are_refused_when_they_are_loaded(write_model, tmp_path):
    """Finite ones, whose products overflow for any image."""
    folder = write_model(tmp_path / "diverged", members=1)
    (weights,) = folder.glob("m0*.safetensors")
    save_file({name: it * 1e30 for name, it in load_file(weights).items()}, weights)
    with pytest.raises(ModelError, match="diverged gives a black image no finite depth"):
        Predictor(folder)


COLUMNS, ROWS = np.meshgrid(np.linspace(0, 1, 120), np.linspace(0, 1, 90))
IMAGE = np.stack(
    [200 * COLUMNS, 255 * np.cos(9 * ROWS) ** 2, 60 + 99 * (COLUMNS > ROWS)], axis=-1
).astype(np.uint8)
PIXELS = ([10, 45, 80, 45], [20, 60, 100, 110])
EXPECTED = {
    # model, method: depth and sigma of four pixels, metres, and the unfamiliarity
    ("demo", "mc_dropout"): (
        [1.04254, 1.06851, 1.01949, 1.01332], [0.388908, 0.418458, 0.315157, 0.322067], 2.28302
    ),
    ("demo", "deterministic"): (
        [0.998237, 1.0794, 1.00337, 0.995874], [0.386098, 0.405472, 0.295814, 0.331876], 2.28302
    ),
    ("indoor", "mirrored"): (
        [1.01343, 0.795694, 0.811985, 0.850598], [0.604022, 0.512707, 0.504918, 0.488177], 3.17873
    ),
}  # fmt: skip


@pytest.mark.parametrize(("model", "method"), EXPECTED)
def test_a_shipped_model_predicts_the_numbers_that_it_was_shipped_with(model, method):
    depth_m, sigma_m, unfamiliarity = EXPECTED[model, method]
    predictor = Predictor(model, method=method, samples=3, device="cpu", calibrated=False)
    made = predictor.predict(IMAGE, 1_700_000_000_123_456_789, camera=100)
    np.testing.assert_allclose(made.depth_m[PIXELS], depth_m, rtol=1e-4)
    np.testing.assert_allclose(made.sigma_m[PIXELS], sigma_m, rtol=1e-3)
    assert made.unfamiliarity == pytest.approx(unfamiliarity, rel=1e-3)
