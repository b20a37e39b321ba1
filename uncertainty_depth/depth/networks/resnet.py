# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""ResNet (He et al. 2016) as an encoder, without transformers' three seconds of import.

Submodules and weight names match transformers' `ResNetBackbone`. Random weights are drawn in the
same way, so one seed gives both the same weights and the same maps.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from torch import Tensor, nn

STAGES = 4
REDUCTION = 4
"""Channels of a bottleneck's output for each inside it."""


@dataclass(frozen=True)
class ResNetConfig:
    """A ResNet's config, with the names and defaults of transformers' config."""

    layer_type: str = "bottleneck"
    depths: tuple[int, ...] = (3, 4, 6, 3)
    hidden_sizes: tuple[int, ...] = (256, 512, 1024, 2048)
    embedding_size: int = 64
    num_channels: int = 3
    downsample_in_first_stage: bool = False
    downsample_in_bottleneck: bool = False
    hidden_act: str = "relu"
    model_type: str = "resnet"

    def to_dict(self) -> dict[str, Any]:
        """Return the values as JSON has them."""
        lists = {"depths": list(self.depths), "hidden_sizes": list(self.hidden_sizes)}
        return {**asdict(self), **lists}


class Maps(NamedTuple):
    """A backbone's output: feature maps, finest first."""

    feature_maps: tuple[Tensor, ...]


class ResNet(nn.Module):
    """A ResNet with random weights: (B, 3, h, w) to its four stages' maps."""

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__()
        self.config = config
        self.channels = list(config.hidden_sizes)
        stem = _convolution(config.num_channels, config.embedding_size, kernel=7, stride=2)
        pooler = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.embedder = nn.Sequential(OrderedDict(embedder=stem, pooler=pooler))
        inputs = (config.embedding_size, *config.hidden_sizes)
        strides = (2 if config.downsample_in_first_stage else 1, 2, 2, 2)
        stages = []
        for number, depth in enumerate(config.depths):
            outputs = inputs[number + 1]
            first = _block(config, inputs[number], outputs, strides[number])
            others = [_block(config, outputs, outputs, 1) for _ in range(depth - 1)]
            stages.append(nn.Sequential(OrderedDict(layers=nn.Sequential(first, *others))))
        self.encoder = nn.ModuleDict({"stages": nn.ModuleList(stages)})
        self.apply(_initialise)

    def forward(self, pixels: Tensor) -> Maps:
        """Return the feature maps of normalised pixels."""
        maps = [self.embedder(pixels)]
        for stage in self.encoder["stages"].children():
            maps.append(stage(maps[-1]))
        return Maps(tuple(maps[1:]))


class Block(nn.Module):
    """Convolutions beside a shortcut."""

    def __init__(self, shortcut: nn.Module, layer: nn.Module) -> None:
        super().__init__()
        self.shortcut = shortcut
        self.layer = layer
        self.activation = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's (B, C, h, w) maps."""
        result = self.layer(x)
        result += self.shortcut(x)
        return self.activation(result)


def read_config(values: Mapping[str, Any]) -> ResNetConfig | None:
    """Return the config from plain values; None if they do not describe such a ResNet."""
    names = {field.name for field in fields(ResNetConfig)}
    known: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in values.items()
        if name in names
    }
    config = ResNetConfig(**known)
    numbers = (config.embedding_size, config.num_channels)
    fits = (
        values.get("model_type") == config.model_type == "resnet"
        and config.hidden_act == "relu"
        and config.layer_type in ("basic", "bottleneck")
        and _are_sizes(config.depths, STAGES)
        and _are_sizes(config.hidden_sizes, STAGES)
        and _are_sizes(numbers, len(numbers))
        and isinstance(config.downsample_in_first_stage, bool)
        and isinstance(config.downsample_in_bottleneck, bool)
    )
    return config if fits else None


def _are_sizes(values: Any, number: int) -> bool:
    return (
        isinstance(values, tuple)
        and len(values) == number
        and all(type(value) is int and value > 0 for value in values)
    )


def _block(config: ResNetConfig, inputs: int, outputs: int, stride: int) -> Block:
    is_same = inputs == outputs and stride == 1
    shortcut = nn.Identity() if is_same else _convolution(inputs, outputs, 1, stride, False)
    if config.layer_type == "basic":
        layers = (
            _convolution(inputs, outputs, stride=stride),
            _convolution(outputs, outputs, activates=False),
        )
        return Block(shortcut, nn.Sequential(*layers))
    inside = outputs // REDUCTION
    strides = (stride, 1) if config.downsample_in_bottleneck else (1, stride)
    bottleneck = nn.Sequential(
        _convolution(inputs, inside, kernel=1, stride=strides[0]),
        _convolution(inside, inside, stride=strides[1]),
        _convolution(inside, outputs, kernel=1, activates=False),
    )
    return Block(shortcut, bottleneck)


def _convolution(
    inputs: int, outputs: int, kernel: int = 3, stride: int = 1, activates: bool = True
) -> nn.Sequential:
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    layers["convolution"] = nn.Conv2d(
        inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False
    )
    layers["normalization"] = nn.BatchNorm2d(outputs)
    if activates:
        layers["activation"] = nn.ReLU()
    return nn.Sequential(layers)


def _initialise(module: nn.Module) -> None:
    """Draw a convolution's weights after He et al. 2015, twice, as transformers does."""
    if isinstance(module, nn.Conv2d):
        nn.init.normal_(module.weight)
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
