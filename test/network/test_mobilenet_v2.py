# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""MobileNetV2: TensorFlow's padding, the published size, and what its ImageNet weights see."""

from __future__ import annotations

import os
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional

from uncertainty_depth.config import NetworkConfig, TrainingConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.network.backbone import backbone_from_mapping, backbone_mapping
from uncertainty_depth.network.hourglass import Hourglass
from uncertainty_depth.network.mobilenet_v2 import MobileNetV2, SameConv2d
from uncertainty_depth.training.member_run import initial_network
from uncertainty_depth.training.plan import make_plan

DATA = os.environ.get("UNCERTAINTY_DEPTH_DATA", "")
WEIGHTS = Path(DATA or ".") / "weights" / "mobilenet_v2_imagenet.safetensors"
NETWORK = NetworkConfig(backbone="mobilenet_v2", decoder_width=16)


def same_convolution(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, stride: int):
    """TensorFlow's definition, pixel by pixel: tf.nn's notes on SAME padding."""
    _, height, width = x.shape
    kernel = weight.shape[-1]
    rows, columns = -(-height // stride), -(-width // stride)
    above, left = (
        max((count - 1) * stride + kernel - size, 0) // 2
        for count, size in ((rows, height), (columns, width))
    )
    result = np.repeat(bias[:, None], rows * columns, 1).reshape(-1, rows, columns)
    for row, column, i, j in np.ndindex(rows, columns, kernel, kernel):
        y, z = row * stride + i - above, column * stride + j - left
        if 0 <= y < height and 0 <= z < width:
            result[:, row, column] += weight[:, :, i, j] @ x[:, y, z]
    return result


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [(6, 8), (7, 9), (6, 9)])
def test_padding_is_tensorflows(size: tuple[int, int], stride: int) -> None:
    torch.manual_seed(0)
    layer = SameConv2d(2, 3, 3, stride, is_linear=True)
    torch.nn.init.normal_(layer.bias)
    x = torch.randn(1, 2, *size)
    weight, bias = (values.detach().numpy() for values in (layer.weight, layer.bias))
    expected = same_convolution(x[0].numpy(), weight, bias, stride)
    np.testing.assert_allclose(layer(x)[0].detach(), expected, atol=1e-5)


def test_the_maps_halve_from_a_quarter_of_the_image() -> None:
    backbone = MobileNetV2()
    maps = backbone(torch.rand(1, 3, 96, 130)).feature_maps
    assert [tuple(one.shape[1:]) for one in maps] == [
        (24, 24, 33), (32, 12, 17), (96, 6, 9), (320, 3, 5)
    ]  # fmt: skip
    assert backbone.channels == [24, 32, 96, 320]
    # 3.505 million less the classifier, the last convolution, and a weight of each folded norm
    assert sum(weights.numel() for weights in backbone.parameters()) == 1_795_936
    assert isinstance(backbone_from_mapping(backbone_mapping(backbone)), MobileNetV2)


def start(path: Path, **options: str) -> Hourglass:
    training = TrainingConfig(method="mc_dropout", encoder_weights=str(path), **options)
    return initial_network(make_plan(NETWORK, training)[0])


def test_encoder_weights_are_read_and_what_an_encoder_lacks_is_left_out(tmp_path: Path) -> None:
    torch.manual_seed(7)
    expected = MobileNetV2().state_dict()
    path = tmp_path / "weights.safetensors"
    save_file({**expected, "classifier.weight": torch.zeros(3)}, path)
    found = start(path).encoder.backbone.state_dict()
    assert all(torch.equal(found[name], value) for name, value in expected.items())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"stem.weight": torch.zeros(32, 3, 5, 5)}, r"tensor stem.weight is \(32, 3, 5, 5\)"),
        ({"stem.weight": None}, "tensor stem.weight is missing; expected"),
        (None, "there is no such file; expected a safetensors file"),
    ],
)
def test_weights_of_another_kind_are_refused(change, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    if change is not None:
        tensors = {**MobileNetV2().state_dict(), **change}
        save_file({name: value for name, value in tensors.items() if value is not None}, path)
    with pytest.raises(ConfigError, match=sentence):
        start(path)


@pytest.mark.skipif(not WEIGHTS.exists(), reason="the ImageNet weights are not there")
def test_imagenet_weights_recognise_rooms() -> None:
    """NYU bathrooms, kitchens and studies are full of ImageNet's classes."""
    encoder = start(WEIGHTS).encoder.eval()
    tensors = {name: value.float() for name, value in load_file(WEIGHTS).items()}
    folder = Path(DATA) / "nyuv2"
    names = (folder / "test.txt").read_text().split()[::32]
    images = [
        cv2.imread(str(folder / "rgb" / f"{name}.jpg"))[8:-8, 48:-48, ::-1] for name in names
    ]
    pixels = np.stack([cv2.resize(np.ascontiguousarray(image), (224, 224)) for image in images])
    with torch.no_grad():
        deepest = encoder(torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255.0)[-1]
        maps = functional.conv2d(deepest, tensors["head.weight"], tensors["head.bias"])
        pooled = functional.relu6(maps).mean((2, 3), keepdim=True)
        scores = functional.conv2d(
            pooled, tensors["classifier.weight"], tensors["classifier.bias"]
        )
    # class 0 is the background: the usual numbers of ImageNet's classes are one less
    indoor = {453, 492, 526, 532, 553, 559, 598, 624, 648, 651, 664, 681, 742, 750, 760, 762, 765,
              782, 799, 809, 831, 846, 857, 861, 876, 894, 896, 905, 564, 520, 431, 527, 508, 495,
              482, 423, 588, 619, 721, 732, 739, 789, 794, 827, 851, 854, 868, 883}  # fmt: skip
    predicted = (scores.flatten(1).argmax(1) - 1).tolist()
    assert np.mean([number in indoor for number in predicted]) > 0.6
