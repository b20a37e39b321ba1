# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Folding and casting change no more than rounding; the device is the one asked for."""

import copy
import logging

import cv2
import numpy as np
import pytest
import torch

from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.device_errors import DeviceLostError
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.depth.networks.deployment import (
    check_precision,
    choose_device,
    has_bfloat16,
    prepare,
)
from uncertainty_depth.depth.networks.encoder import resize_image
from uncertainty_depth.depth.networks.hourglass import Hourglass
from uncertainty_depth.depth.predictor import Predictor


@pytest.fixture
def network():
    """A network whose BatchNorm statistics are not those of a fresh one."""
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
