# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Values that options choose among, and their limits."""

from __future__ import annotations

TRAINED_METHODS = [
    "deterministic",
    "mc_dropout",
    "mirrored_dropout",
    "multi_epochs",
    "log_likelihood",
    "multi_inits",
    "bagging",
    "distilled",
]
"""What `train` can train; a list, as `METHODS`: a project may add a method of its own."""
UNTRAINED_METHODS = ["deterministic", "mc_dropout", "mirrored_dropout"]
"""Methods that a network can be run with as it is, without a member or a head of their own."""
METHODS = list(TRAINED_METHODS)
"""What a model can predict with."""
METHOD_ALIASES = {"deep_ensemble": "multi_inits", "snapshot_ensemble": "multi_epochs"}
"""Usual names of methods that the papers of this package call otherwise."""
DEVICES = ("auto", "cpu", "cuda", "cuda:N")
PRECISIONS = ("auto", "fp32", "fp16", "bf16")
ENGINES = ("torch", "openvino", "onnxruntime")
HEADS = ("none", "laplace", "gaussian")
MAX_SEED = 2**31 - 1
MAX_COUNT = 10_000_000
MAX_PIXELS = 16_000_000
"""Of an image, unless the option max_pixels says otherwise: 4000x4000."""
MAX_DEPTH_M = 10_000.0
MAX_DURATION_S = 86_400.0
DISTORTED_IMAGES = ("rectify", "keep", "already_rectified")
