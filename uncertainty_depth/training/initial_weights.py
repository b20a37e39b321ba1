# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The network of a member before its first epoch."""

from __future__ import annotations

import torch

from uncertainty_depth.config.choices import NORMALISED
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.network.architectures import make_network
from uncertainty_depth.network.backbone import make_backbone
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.pretrained.network import PretrainedDepth
from uncertainty_depth.training.member import Member


def initial_network(member: Member) -> DepthNetwork:
    """Return the network with random, pretrained or fine-tuned initial weights, as planned.

    Raises:
        ModelError: the backbone or the model folder to start from cannot be used.
        ConfigError: the backbone cannot be trained.
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
