"""Which class of network a backbone makes."""

from __future__ import annotations

from torch import nn

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.network.backbone import make_backbone
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.network.hourglass import Hourglass
from uncertainty_depth.pretrained.families import is_depth_model
from uncertainty_depth.pretrained.network import PretrainedDepth

ARCHITECTURES = (Hourglass.architecture, PretrainedDepth.architecture)


def make_network(config: NetworkConfig, backbone: nn.Module | None = None) -> DepthNetwork:
    """A pretrained depth model gives a network by itself, any other backbone an hourglass; `backbone` takes the place of the one that `config` names.

    Raises:
        ConfigError: a value of the config is out of range.
        ModelError: the backbone cannot be made.
    """
    backbone = make_backbone(config.backbone) if backbone is None else backbone
    return (
        PretrainedDepth(config, backbone)
        if is_depth_model(backbone.config)
        else Hourglass(config, backbone)
    )
