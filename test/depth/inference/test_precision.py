# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The fastest precision that keeps the maps is chosen; PyTorch's switches stay the user's."""

import copy

import pytest
import torch

from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.depth.estimators import Deterministic, McDropout
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.networks.deployment import check_precision, cuda_arithmetic, prepare
from uncertainty_depth.depth.networks.hourglass import Hourglass
from uncertainty_depth.depth.predictor_settings import choose_precision

pytestmark = pytest.mark.usefixtures("one_thread")
CPU = torch.device("cpu")
GPU = torch.device("cuda")
SIZE = (64, 64)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    config = NetworkConfig(backbone="tiny", decoder_width=16, input_size=SIZE, head="laplace")
    return Hourglass(config).eval()


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
    """What another network of the process wants."""
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
