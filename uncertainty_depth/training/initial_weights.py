# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The network of a member before its first epoch."""

from __future__ import annotations

from pathlib import Path

import torch

from uncertainty_depth.config.choices import NORMALISED
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.model_folder.tensors import read_tensors
from uncertainty_depth.network.architectures import make_network
from uncertainty_depth.network.backbone import make_backbone
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.network.encoder import TransformersModel
from uncertainty_depth.pretrained.network import PretrainedDepth
from uncertainty_depth.training.member import Member


def initial_network(member: Member) -> DepthNetwork:
    """Return the network with random, pretrained or fine-tuned initial weights, as planned.

    Raises:
        ModelError: the backbone or the model folder to start from cannot be used.
        ConfigError: the backbone cannot be trained, or the encoder's weights are not its own.
    """
    if member.start:
        folder, name = member.start
        model = read(folder)
        network = model.build(name)
        network.load_state_dict(model.load(name).state_dict())
    else:
        torch.manual_seed(member.encoder_seed)
        name = member.network.backbone
        backbone = None if name == NORMALISED else make_backbone(name)
        if member.training.encoder_weights:
            load_encoder_weights(backbone, Path(member.training.encoder_weights))
        if member.encoder_seed != member.training.seed:
            torch.manual_seed(member.training.seed)
        network = make_network(member.network, backbone)
    if network.architecture == PretrainedDepth.architecture and network.config.sparse_input:
        raise ConfigError(
            f"backbone {member.network.backbone!r} takes sparse depth as its prompt, and can be "
            "served but not trained here; expected `uncertainty-depth wrap`, or a ResNet with "
            "--sparse-input"
        )
    if member.training.freeze_encoder:
        network.freeze_encoder()
    return network


def load_encoder_weights(backbone: TransformersModel, path: Path) -> None:
    """Load a backbone's weights from a safetensors file; further tensors are left out.

    Those are the classifier and its last convolution, which an encoder does not have.

    Raises:
        ConfigError: there is no such file, or it does not hold every tensor of the backbone.
        ModelError: the file is damaged.
    """
    if backbone is None or not path.is_file():
        problem = "the network has no backbone" if backbone is None else "there is no such file"
        raise ConfigError(
            f"encoder_weights is {str(path)!r}, but {problem}; expected a safetensors file of the "
            "weights of --backbone"
        )
    tensors = read_tensors(path)
    expected = backbone.state_dict()
    for name, value in expected.items():
        found = tuple(tensors[name].shape) if name in tensors else "missing"
        if found != tuple(value.shape):
            raise ConfigError(
                f"{path} is not of the backbone's kind: tensor {name} is {found}; expected "
                f"{tuple(value.shape)}"
            )
    backbone.load_state_dict({name: tensors[name].to(expected[name].dtype) for name in expected})
