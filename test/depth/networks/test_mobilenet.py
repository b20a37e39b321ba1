# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""MobileNetV2: TensorFlow's padding, the published layout and weights."""

import os
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional

from uncertainty_depth.core.config.training import NetworkConfig, TrainingConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.depth.networks.backbone import (
    backbone_from_mapping,
    backbone_mapping,
    make_backbone,
)
from uncertainty_depth.depth.networks.hourglass import Hourglass
from uncertainty_depth.depth.networks.mobilenet import SameConv2d
from uncertainty_depth.depth.training.plan import make_plan
from uncertainty_depth.depth.training.run import initial_network

DATA = os.environ.get("UNCERTAINTY_DEPTH_DATA", "")
WEIGHTS = Path(DATA or ".") / "weights"
STRIDES = (1, 2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1)
"""The strides in the blocks' depthwise convolutions."""
CHANNELS = [24, 32, 96, 320]


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


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [(6, 8), (7, 9), (6, 9)])
def test_padding_is_tensorflows(size, stride, kernel):
    torch.manual_seed(0)
    layer = SameConv2d(2, 3, kernel, stride, is_linear=True)
    torch.nn.init.normal_(layer.bias)
    x = torch.randn(1, 2, *size)
    weight, bias = (values.detach().numpy() for values in (layer.weight, layer.bias))
    expected = same_convolution(x[0].numpy(), weight, bias, stride)
    np.testing.assert_allclose(layer(x)[0].detach(), expected, atol=1e-5)


def layered(tensors: dict[str, torch.Tensor], pixels: torch.Tensor):
    """Return the maps before each further stride and the last, layer by layer from the tensors."""

    def layer(x: torch.Tensor, key: str, stride: int, is_linear: bool = False) -> torch.Tensor:
        weight = tensors[f"{key}.weight"]
        groups = x.shape[1] // weight.shape[1]
        total = [
            max((-(-size // stride) - 1) * stride + weight.shape[-1] - size, 0)
            for size in (x.shape[-1], x.shape[-2])
        ]
        pads = [part for both in total for part in (both // 2, both - both // 2)]
        bias = tensors[f"{key}.bias"]
        y = functional.conv2d(functional.pad(x, pads), weight, bias, stride, groups=groups)
        return y if is_linear else y.clamp(0, 6)

    x = layer(pixels, "stem", 2)
    maps = []
    for number, stride in enumerate(STRIDES):
        if stride == 2 and number > 1:
            maps.append(x)
        key = f"blocks.{number}"
        y = layer(x, f"{key}.expand", 1) if f"{key}.expand.weight" in tensors else x
        y = layer(layer(y, f"{key}.depthwise", stride), f"{key}.project", 1, is_linear=True)
        x = x + y if stride == 1 and x.shape == y.shape else y
    return [*maps, x]


def test_the_maps_are_those_of_the_layers_one_by_one():
    torch.manual_seed(0)
    backbone = make_backbone("mobilenet_v2")
    tensors = backbone.state_dict()
    for key, value in tensors.items():
        if key.endswith("bias"):
            torch.nn.init.normal_(value)
    assert len({key.split(".")[1] for key in tensors if "blocks" in key}) == len(STRIDES)
    pixels = torch.rand(1, 3, 70, 97)
    with torch.no_grad():
        found = backbone(pixels).feature_maps
        expected = layered(tensors, pixels)
    assert len(found) == len(expected) == 4
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_the_maps_halve_from_a_quarter_of_the_image():
    backbone = make_backbone("mobilenet_v2")
    maps = backbone(torch.rand(1, 3, 96, 130)).feature_maps
    sizes = [(24, 33), (12, 17), (6, 9), (3, 5)]
    expected = [(count, *size) for count, size in zip(CHANNELS, sizes, strict=True)]
    assert [tuple(one.shape[1:]) for one in maps] == expected
    assert backbone.channels == CHANNELS
    again = backbone_from_mapping(backbone_mapping(backbone))
    assert again.config == backbone.config
    assert again.state_dict().keys() == backbone.state_dict().keys()


def test_mobilenet_v2_has_the_published_size():
    # 3.505 million less the classifier, the last convolution, and a weight of each folded norm
    backbone = make_backbone("mobilenet_v2")
    assert sum(weights.numel() for weights in backbone.parameters()) == 1_795_936


def start(path: Path) -> Hourglass:
    network = NetworkConfig(backbone="mobilenet_v2", decoder_width=16)
    training = TrainingConfig(method="mc_dropout", encoder_weights=str(path))
    return initial_network(make_plan(network, training)[0])


def test_encoder_weights_are_read_and_what_an_encoder_lacks_is_left_out(tmp_path):
    torch.manual_seed(7)
    expected = make_backbone("mobilenet_v2").state_dict()
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
def test_weights_of_another_kind_are_refused(change, sentence, tmp_path):
    path = tmp_path / "weights.safetensors"
    if change is not None:
        tensors = {**make_backbone("mobilenet_v2").state_dict(), **change}
        save_file({name: value for name, value in tensors.items() if value is not None}, path)
    with pytest.raises(ConfigError, match=sentence):
        start(path)


@pytest.mark.skipif(not WEIGHTS.is_dir(), reason="the ImageNet weights are not there")
def test_imagenet_weights_recognise_rooms():
    """NYU bathrooms, kitchens and studies are full of ImageNet's classes."""
    path = WEIGHTS / "mobilenet_v2_imagenet.safetensors"
    encoder = start(path).encoder.eval()
    tensors = {key: value.float() for key, value in load_file(path).items()}
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
        scores = functional.linear(
            pooled.flatten(1), tensors["classifier.weight"].flatten(1), tensors["classifier.bias"]
        )
    # with 1001 classes the first is the background
    indoor = {453, 492, 526, 532, 553, 559, 598, 624, 648, 651, 664, 681, 742, 750, 760, 762, 765,
              782, 799, 809, 831, 846, 857, 861, 876, 894, 896, 905, 564, 520, 431, 527, 508, 495,
              482, 423, 588, 619, 721, 732, 739, 789, 794, 827, 851, 854, 868, 883}  # fmt: skip
    predicted = (scores.argmax(1) - (scores.shape[1] - 1000)).tolist()
    assert np.mean([number in indoor for number in predicted]) > 0.6
