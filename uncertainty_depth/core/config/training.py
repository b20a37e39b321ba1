# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Options for a network and its training."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.core.config.predictor import DEVICES, METHOD_ALIASES, TRAINED_METHODS
from uncertainty_depth.core.options import MAX_COUNT, MAX_SEED, option

HEADS = ("none", "laplace", "gaussian")


@dataclass(frozen=True)
class NetworkConfig:
    """The network: an encoder with an up-projection decoder, or a pretrained depth model."""

    backbone: str = option(
        "resnet18",
        "encoder: resnet10 to resnet200, tiny to tiny34, mobilenet_v2, a folder or hub id of a "
        "pretrained backbone; or a depth model to fine-tune (Depth Anything, DepthPro, DPT, "
        "ZoeDepth, GLPN)",
    )
    decoder_width: int = option(
        256,
        "channels after the first up-projection; halved by each further one",
        limits=(16, 2048),
        expert=True,
    )
    dropout: float = option(
        0.2,
        "dropout rate after each of the first three up-projections, or after each fusion stage "
        "of a depth model",
        limits=(0.0, 0.9),
    )
    last_activation: str = option(
        "leaky_relu",
        "activation before the last convolution; relu can give zero spread where all units are "
        "inactive",
        choices=("relu", "leaky_relu"),
        expert=True,
    )
    head: str = option(
        "laplace",
        "variance head: likelihood whose scale a second output channel predicts",
        choices=HEADS,
    )
    input_size: tuple[int, int] = option(
        (160, 128),
        "width and height of the network input, pixels; a depth model brings its own default",
        limits=(32, 4096),
    )
    depth_range: tuple[float, float] = option(
        (0.3, 12.0),
        "minimum and maximum depth the network can predict, metres; a metric depth model brings "
        "its own default",
        limits=(1e-3, 1e4),
    )
    canonical_focal_length: float = option(
        0.0,
        "canonical focal length, as sqrt(fx fy / (width height)): depth is predicted for such a "
        "camera and rescaled to each camera's own; 0: none, for robots with one camera",
        limits=(0.0, 100.0),
    )


@dataclass(frozen=True)
class TrainingConfig:
    """How the network is trained."""

    method: str = option(
        "multi_epochs",
        "uncertainty method the model is trained for, and its default when it predicts",
        choices=TRAINED_METHODS,
        aliases=METHOD_ALIASES,
    )
    epochs: int = option(150, "maximum number of epochs", limits=(1, MAX_COUNT))
    batch_size: int = option(16, "frames per batch", limits=(1, 65536))
    learning_rate: float = option(
        1e-3,
        "learning rate; the default is a tenth for a depth model",
        limits=(0.0, 10.0),
    )
    encoder_learning_rate: float = option(
        0.0,
        "learning rate of the encoder, for one that starts from encoder_weights; 0: same as "
        "the decoder",
        limits=(0.0, 10.0),
        expert=True,
    )
    final_learning_rate: float = option(
        1.0,
        "learning rate of the last epoch as a fraction of the first's, approached along a "
        "cosine; 1 keeps it constant",
        limits=(0.0, 1.0),
        expert=True,
    )
    weight_decay: float = option(
        1e-4, "decoupled weight decay (AdamW)", limits=(0.0, 10.0), expert=True
    )
    average_decay: float = option(
        0.0,
        "decay per batch of the running average of the weights that is validated and saved, e.g. "
        "0.995; 0 saves the weights themselves",
        limits=(0.0, 0.99999),
        expert=True,
    )
    snapshots: int = option(
        8,
        "number of snapshots of multi_epochs: one per epoch, once the validation error has "
        "stopped improving",
        limits=(1, 1024),
        expert=True,
    )
    members: int = option(
        5,
        "number of networks of multi_inits and bagging",
        limits=(1, 1024),
    )
    distill: str = option(
        "",
        "model folder of a teacher: train one network to predict its mean and sigma "
        "(method distilled)",
    )
    from_model: str = option(
        "",
        "model folder to fine-tune: its network and method are kept, each network starts from "
        "its member",
        flag="--from",
    )
    encoder_weights: str = option(
        "",
        "safetensors file of weights that the encoder starts from, under the encoder's own names; "
        "empty: random, or the pretrained backbone's",
        expert=True,
    )
    patience: int = option(
        30,
        "number of epochs without a lower validation error that count as a plateau",
        limits=(1, MAX_COUNT),
        expert=True,
    )
    freeze_encoder: bool = option(
        False,
        "train the decoder only, so that snapshots share one encoder; on by default for a depth "
        "model",
        expert=True,
    )
    validation_fraction: float = option(
        0.1,
        "fraction of the frames used for validation only",
        limits=(0.01, 0.9),
        expert=True,
    )
    augment: bool = option(
        True,
        "augment with random flips, zoom, brightness, contrast and colour; off by default for "
        "DepthPro with its field of view",
        expert=True,
    )
    seed: int = option(
        0,
        "random seed of initial weights, frame order, augmentation and validation split",
        limits=(0, MAX_SEED),
    )
    device: str = option(
        "auto",
        "device to train on, cuda:1 for the second GPU; auto: the GPU if there is one",
        choices=DEVICES,
    )
    max_frames: int = option(
        0,
        "maximum number of frames used, evenly spaced; 0 uses all",
        limits=(0, MAX_COUNT),
    )
