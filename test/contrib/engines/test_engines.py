# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Every engine gives the maps that torch gives, by every method: the same units are dropped."""

import importlib.util
import io
import itertools
import sys
from dataclasses import replace

import numpy as np
import pytest

from uncertainty_depth.contrib.engines.runtimes import is_installed
from uncertainty_depth.core.config import PredictorConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.records import SampleRange
from uncertainty_depth.depth.predictor import Predictor

pytestmark = pytest.mark.usefixtures("one_thread")
CONFIG = PredictorConfig(samples=5, seed=3, device="cpu")
IMAGE = np.random.default_rng(0).integers(0, 256, (64, 80, 3), dtype=np.uint8)
STAMP = 1_700_000_000_123_456_789
TOLERANCES = {"fp32": (1e-4, 1e-4), "bf16": (0.03, 0.01)}
"""Largest difference of depth, and mean difference of sigma, as fractions of the depth. bfloat16
has steps of 0.4 %."""
VARIANTS = {
    "mc_dropout": {"head": "laplace"},
    "mirrored_dropout": {"head": "laplace"},
    "multi_epochs": {"head": "gaussian"},
    "deterministic": {"head": "laplace", "sparse_input": "lidar"},
}


@pytest.fixture(scope="module")
def models(tmp_path_factory, make_model):
    """Tiny models of two members; snapshots share their encoder."""
    folder = tmp_path_factory.mktemp("models")
    return {
        method: make_model(folder / method, method, shared=method == "multi_epochs", **options)
        for method, options in VARIANTS.items()
    }


@pytest.fixture(scope="module")
def references(models):
    return {
        method: Predictor(path, CONFIG).predict(IMAGE, STAMP) for method, path in models.items()
    }


def engine_config(engine, precision):
    if not is_installed(engine):
        pytest.skip(f"{engine} is not installed")
    return replace(CONFIG, engine=engine, precision=precision)


def predictor_or_skip(model, config):
    try:
        return Predictor(model, config)
    except ConfigError as error:
        if "does not have on this processor" in str(error):
            pytest.skip(str(error))
        raise


@pytest.mark.parametrize(
    ("engine", "precision", "method"),
    [
        ("openvino", "bf16", "mc_dropout"),
        *itertools.product(("openvino", "onnxruntime"), ("fp32",), VARIANTS),
    ],
)
def test_an_engine_gives_the_maps_of_torch(models, references, method, engine, precision):
    config = engine_config(engine, precision)
    predictor = predictor_or_skip(models[method], config)
    assert predictor.describe()["engine"] == engine
    assert predictor.describe()["precision"] == precision
    found = predictor.predict(IMAGE, STAMP)
    expected = references[method]
    of_depth, of_sigma = TOLERANCES[precision]
    np.testing.assert_allclose(found.depth_m, expected.depth_m, rtol=of_depth)
    assert (expected.sigma_m > 0).mean() > 0.9
    difference = np.abs(found.sigma_m - expected.sigma_m) / expected.depth_m
    assert difference.mean() < of_sigma


@pytest.mark.parametrize("method", ["mc_dropout", "multi_epochs", "deterministic"])
@pytest.mark.parametrize("engine", ["openvino", "onnxruntime"])
def test_the_maps_of_an_image_outlive_the_next(models, method, engine):
    """An engine writes the maps of every image to the same memory."""
    predictor = Predictor(models[method], engine_config(engine, "fp32"))
    images = [np.roll(IMAGE, 20 * number, axis=1) for number in range(3)]
    kept = [predictor.predict(image, STAMP) for image in images]
    for image, found in zip(images, kept, strict=True):
        again = predictor.predict(image, STAMP)
        np.testing.assert_array_equal(found.depth_m, again.depth_m)
        np.testing.assert_array_equal(found.sigma_m, again.sigma_m)


@pytest.mark.parametrize(
    ("engine", "method"), [("openvino", "mc_dropout"), ("onnxruntime", "multi_epochs")]
)
def test_some_of_the_samples_are_those_of_torch(models, method, engine):
    config = engine_config(engine, "fp32")
    some = SampleRange(1, 1)
    expected = Predictor(models[method], CONFIG).predict(IMAGE, STAMP, samples=some)
    found = Predictor(models[method], config).predict(IMAGE, STAMP, samples=some)
    np.testing.assert_allclose(found.depth_m, expected.depth_m, rtol=1e-4)


@pytest.mark.parametrize("engine", ["openvino", "onnxruntime"])
def test_a_terminal_shows_that_a_model_is_compiled(models, engine, monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    config = engine_config(engine, "fp32")
    monkeypatch.setattr(sys, "stderr", terminal)
    Predictor(models["mc_dropout"], config)
    assert "tracing the network" in terminal.getvalue()
    assert "compiling for O" in terminal.getvalue()


def test_an_engine_that_is_missing_is_named_with_what_to_type(models, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install '\.\[openvino\]'"):
        Predictor(models["multi_epochs"], PredictorConfig(engine="openvino", device="cpu"))
