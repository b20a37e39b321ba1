# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Every engine gives the maps that torch gives, by every method: the same units are dropped."""

import importlib
import importlib.util
import io
import itertools
import sys
from dataclasses import replace

import numpy as np
import pytest

from uncertainty_depth.contrib.engines.graphs import Graph
from uncertainty_depth.contrib.engines.runtimes import is_installed, make_engine
from uncertainty_depth.core.config.predictor import PredictorConfig
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
    "mirrored": {"head": "laplace"},
    "multi_epochs": {"head": "gaussian"},
    "deterministic": {"head": "laplace"},
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


@pytest.fixture
def sessions(monkeypatch, tmp_path):
    """What ONNX Runtime is asked for, if it is one for GPUs on a computer without a GPU."""
    library = pytest.importorskip("onnxruntime")
    providers = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]
    made = []

    def session(onnx, options, providers, provider_options, make=library.InferenceSession):
        made.append(dict(zip(providers, provider_options, strict=True)))
        return make(onnx, options, providers, provider_options)

    monkeypatch.setattr(library, "get_available_providers", lambda: providers)
    monkeypatch.setattr(library, "InferenceSession", session)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return made


ON_ANY = replace(CONFIG, engine="onnxruntime", device="auto")


@pytest.mark.filterwarnings("ignore:Specified provider")
def test_a_provider_that_does_not_load_is_told_with_what_computes(
    sessions, models, references, caplog
):
    predictor = Predictor(models["mc_dropout"], ON_ANY)
    (told,) = [record.getMessage() for record in caplog.records if "load" in record.getMessage()]
    assert told.startswith("TensorrtExecutionProvider and CUDAExecutionProvider of ONNX Runtime")
    assert "did not load, so CPUExecutionProvider computes" in told
    assert predictor.describe()["device"] == "cpu"
    found = predictor.predict(IMAGE, STAMP)
    np.testing.assert_allclose(found.depth_m, references["mc_dropout"].depth_m, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:Specified provider")
@pytest.mark.parametrize("wanted", [{"device": "cuda"}, {"precision": "fp16"}])
def test_what_needs_a_provider_that_does_not_load_is_refused(wanted, sessions, models):
    with pytest.raises(ConfigError, match="did not load, so CPUExecutionProvider computes"):
        Predictor(models["mc_dropout"], replace(ON_ANY, **wanted))


@pytest.mark.filterwarnings("ignore:Specified provider")
def test_tensorrt_keeps_an_engine_for_any_samples_of_these_weights(sessions, make_model, tmp_path):
    folders = []
    for name, weights in (("one", ("m0",)), ("again", ("m0",)), ("other", ("m0", "m1"))):
        path = make_model(tmp_path / name, "mc_dropout", weights)
        sessions.clear()
        Predictor(path, ON_ANY)
        trunk, *_ = sessions
        folders.append(trunk["TensorrtExecutionProvider"]["trt_engine_cache_path"])
    assert folders[0] == folders[1] != folders[2]
    *_, branches = sessions
    assert "TensorrtExecutionProvider" not in branches, "what did not load is not asked again"


def test_tensorrt_is_told_the_fewest_and_the_most_samples(sessions, monkeypatch):
    library = importlib.import_module("onnxruntime")
    asked = []

    class Loaded:
        def __init__(self, onnx, options, providers, provider_options):
            asked.extend(provider_options)

        def get_providers(self):
            return library.get_available_providers()

    monkeypatch.setattr(library, "InferenceSession", Loaded)
    runtime = make_engine("onnxruntime", "fp16", "cuda:1", 8)
    rows = {"noise_0": (4, 6, 16), "noise_1": (8, 12, 8)}
    runtime.compile(Graph(b"", ("shared_0", *rows), ("depth_m",), rows))
    assert runtime.device == "cuda:1"
    tensorrt, cuda, _ = asked
    assert tensorrt["device_id"] == cuda["device_id"] == 1
    assert tensorrt["trt_fp16_enable"] is True
    assert tensorrt["trt_profile_min_shapes"] == "noise_0:1x4x6x16,noise_1:1x8x12x8"
    for kind in ("opt", "max"):
        assert tensorrt[f"trt_profile_{kind}_shapes"] == "noise_0:8x4x6x16,noise_1:8x8x12x8"


@pytest.mark.parametrize("engine", ["openvino", "onnxruntime"])
def test_a_budget_compiles_nothing_while_driving(engine, models, monkeypatch):
    config = replace(engine_config(engine, "fp32"), samples=8)
    predictor = Predictor(models["mc_dropout"], config)
    library = importlib.import_module(engine)
    owner, name = {
        "openvino": (getattr(library, "Core", None), "compile_model"),
        "onnxruntime": (library, "InferenceSession"),
    }[engine]
    monkeypatch.setattr(owner, name, lambda *_, **__: pytest.fail("it compiles"))
    expected = Predictor(models["mc_dropout"], replace(CONFIG, samples=8))
    for count in (2, 3, 8):
        some = SampleRange(1, count)
        found = predictor.predict(IMAGE, STAMP, samples=some)
        maps = expected.predict(IMAGE, STAMP, samples=some)
        np.testing.assert_allclose(found.depth_m, maps.depth_m, rtol=1e-4)
