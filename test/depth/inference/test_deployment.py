# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Folding and casting change no more than rounding; device and precision are those asked for."""

import copy
import logging

import cv2
import numpy as np
import pytest
import torch

from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.device_errors import DeviceLostError
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.depth.estimators import Deterministic, McDropout
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.networks.deployment import (
    check_precision,
    choose_device,
    cuda_arithmetic,
    has_bfloat16,
    prepare,
)
from uncertainty_depth.depth.networks.encoder import resize_image
from uncertainty_depth.depth.networks.hourglass import Hourglass
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.depth.predictor_settings import choose_precision


@pytest.fixture
def network():
    """A network whose BatchNorm statistics are no fresh one's."""
    torch.manual_seed(0)
    made = Hourglass(NetworkConfig(backbone="tiny", decoder_width=16, head="laplace")).train()
    with torch.no_grad():
        for _ in range(5):
            made(torch.rand(4, 3, 64, 64))
    return made.eval()


@pytest.mark.parametrize(("precision", "rtol"), [("fp32", 1e-5), ("bf16", 3e-2), ("fp16", 3e-3)])
def test_a_prepared_network_predicts_the_same(network, precision, rtol):
    image = torch.rand(1, 3, 64, 96)
    ready = prepare(copy.deepcopy(network), torch.device("cpu"), precision)
    assert not any(isinstance(module, torch.nn.BatchNorm2d) for module in ready.modules())
    found = ready(image)
    expected = network(image)
    assert found.depth_m.dtype == torch.float32
    torch.testing.assert_close(found.depth_m, expected.depth_m, rtol=rtol, atol=0.0)
    torch.testing.assert_close(found.scale_m, expected.scale_m, rtol=5 * rtol, atol=0.0)


@pytest.fixture
def pretend(monkeypatch):
    """Pretend that there are GPUs, of which only the second computes in bfloat16."""

    def make(number):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: number > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: number)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda one: f"GPU {one.index or 0}")
        capability = {None: (7, 5), 0: (7, 5), 1: (8, 6)}
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda one: capability[one.index])

    return make


@pytest.mark.parametrize(
    ("name", "gpus", "device", "told"),
    [
        ("auto", 0, "cpu", "CPU, threads: "),
        ("cpu", 0, "cpu", "CPU, threads: "),
        ("auto", 2, "cuda", "GPU, GPU 0"),
        ("cuda", 2, "cuda", "GPU, GPU 0"),
        ("cuda:0", 2, "cuda:0", "GPU, GPU 0"),
        ("cuda:1", 2, "cuda:1", "GPU, GPU 1"),
    ],
)
def test_the_device_that_is_there_is_chosen_and_logged(name, gpus, device, told, pretend, caplog):
    pretend(gpus)
    with caplog.at_level(logging.INFO):
        assert choose_device(name) == torch.device(device)
    assert f"the network runs on the {told}" in caplog.text


@pytest.mark.parametrize(
    ("words", "kind", "sentence"),
    [
        ("CUDA unknown error - set up wrongly\nmore", DeviceLostError, "^cuda is lost .*wrongly$"),
        ("CUDA error: out of memory", ConfigError, "does not fit into the memory of cuda: CUDA"),
    ],
)
def test_a_gpu_that_cannot_even_be_asked_is_one_sentence(
    words, kind, sentence, pretend, monkeypatch
):
    def refuse(*_):
        raise RuntimeError(words)

    pretend(1)
    monkeypatch.setattr(torch.cuda, "get_device_name", refuse)
    monkeypatch.setattr(torch.cuda, "synchronize", refuse)
    with pytest.raises(kind, match=sentence):
        Predictor("demo", device="cuda")


@pytest.mark.parametrize(
    ("name", "gpus", "build", "sentence"),
    [
        ("cuda", 0, None, "^device is 'cuda', but torch finds no CUDA .* built for the CPU; exp"),
        ("cuda", 0, "13.0", "built for CUDA 13.0, which needs a GPU and its driver; expected ano"),
        ("cuda:2", 2, "13.0", "^device is 'cuda:2', but torch finds CUDA devices up to 'cuda:1'"),
    ],
)
def test_a_gpu_that_is_not_there_is_an_error_that_says_why(
    name, gpus, build, sentence, pretend, monkeypatch
):
    pretend(gpus)
    monkeypatch.setattr(torch.version, "cuda", build)
    with pytest.raises(ConfigError, match=sentence):
        choose_device(name)


def test_bf16_is_for_gpus_that_have_it(pretend):
    pretend(2)
    check_precision(torch.device("cuda:1"), "bf16")
    check_precision(torch.device("cuda:0"), "fp16")
    with pytest.raises(ConfigError, match="'bf16', which GPU 0 does not have; expected 'fp16'"):
        check_precision(torch.device("cuda:0"), "bf16")
    assert has_bfloat16(torch.device("cuda:1"))
    assert not has_bfloat16(torch.device("cuda"))


def test_images_shrink_by_areas_and_grow_bilinearly():
    image = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    blocks = image.reshape(20, 2, 30, 2, 3).mean((1, 3))
    assert np.abs(resize_image(image, (30, 20)) - blocks).max() <= 0.5 + 1e-6
    assert np.array_equal(
        resize_image(image, (90, 80)), cv2.resize(image, (90, 80), interpolation=cv2.INTER_LINEAR)
    )
    assert np.array_equal(resize_image(image, (60, 40)), image)


pytestmark = pytest.mark.usefixtures("one_thread")
CPU = torch.device("cpu")
GPU = torch.device("cuda")
SIZE = (64, 64)


def loads_of(network):
    """Return what loads a network in a precision, and the precisions that were loaded."""
    loaded = []

    def load(precision):
        loaded.append(precision)
        return McDropout(prepare(copy.deepcopy(network), CPU, precision))

    return load, loaded


def test_half_precision_is_taken_where_its_maps_are_those_of_float32(network):
    load, loaded = loads_of(network)
    estimator, precision = choose_precision(load, ("fp16", "tf32"), SIZE, CPU)
    assert precision == "fp16"
    assert loaded == ["fp32", "fp16"]
    assert next(estimator.networks[0].decoder.parameters()).dtype == torch.float16


def test_what_overflows_half_precision_is_not_computed_in_it(network):
    """The decoder's input is 1e6 times as large as before, and its first layer undoes it."""
    large = copy.deepcopy(network)
    with torch.no_grad():
        large.decoder.bridge[1].weight *= 1e6
        large.decoder.bridge[1].bias *= 1e6
        large.decoder.ups[0].unpool.weight /= 1e6
    _, precision = choose_precision(loads_of(large)[0], ("fp16", "tf32"), SIZE, CPU)
    assert precision == "tf32"
    _, precision = choose_precision(loads_of(large)[0], ("fp16",), SIZE, CPU)
    assert precision == "fp32"


def test_bfloat16_is_too_coarse_for_the_shipped_network():
    model = read_model("indoor")

    def load(precision):
        return Deterministic(prepare(model.load(model.members[-1]), CPU, precision))

    assert choose_precision(load, ("bf16",), model.network.input_size, CPU)[1] == "fp32"


def test_without_a_faster_precision_nothing_is_tried(network):
    load, loaded = loads_of(network)
    assert choose_precision(load, (), SIZE, CPU)[1] == "fp32"
    assert loaded == ["fp32"]


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_mean_and_std_of_the_images_stay_float32(network, precision):
    encoder = prepare(copy.deepcopy(network), CPU, precision).encoder
    assert torch.equal(encoder.mean, network.encoder.mean)
    assert torch.equal(encoder.std, network.encoder.std)


def switches():
    cudnn = torch.backends.cudnn
    matmul = torch.backends.cuda.matmul
    return cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32


@pytest.fixture(params=[False, True])
def of_user(request):
    """What another network in the process wants."""
    cudnn = torch.backends.cudnn
    before = switches()
    cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = request.param
    yield
    _, cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.usefixtures("of_user")
@pytest.mark.parametrize("tf32", [False, True])
def test_the_switches_of_other_networks_are_set_back(tf32):
    before = switches()
    expected = "tf32" if tf32 else "ieee"

    def fail_inside():
        with cuda_arithmetic(GPU, tf32):
            assert torch.backends.cudnn.benchmark is True
            assert torch.backends.cudnn.conv.fp32_precision == expected
            assert torch.backends.cuda.matmul.fp32_precision == expected
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        fail_inside()
    assert switches() == before
    with cuda_arithmetic(CPU, tf32):
        assert switches() == before


def test_preparing_a_network_for_a_cpu_touches_no_switch(network, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    prepare(copy.deepcopy(network), CPU, "fp32")
    assert torch.backends.cudnn.allow_tf32 is True


def test_tf32_is_of_gpus():
    with pytest.raises(ConfigError, match="'tf32', which is of GPUs alone, but the device is cpu"):
        check_precision(CPU, "tf32")
