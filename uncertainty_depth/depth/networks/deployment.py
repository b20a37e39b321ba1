# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Prepare a trained network for inference.

Its BatchNorm is folded into the convolutions. It is in channels-last order, on its device and in
its precision.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.depth.networks.depth_network import DepthNetwork

logger = logging.getLogger(__name__)

DTYPES = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
}
CAPABILITIES = {"fp16": (7, 0), "tf32": (8, 0), "bf16": (8, 0)}
"""Compute capability from which a GPU multiplies matrices of a precision faster than float32."""
_arithmetic = threading.RLock()


def choose_device(name: str) -> torch.device:
    """Return and log the device for auto (the GPU if there is one), cpu, cuda, or cuda:0, ...

    Raises:
        ConfigError: cuda is requested, but torch finds no CUDA device, or none with this number.
    """
    available = torch.cuda.is_available()
    if name.startswith("cuda") and not available:
        cuda = torch.version.cuda
        built = f"CUDA {cuda}, which needs a GPU and its driver" if cuda else "the CPU"
        raise ConfigError(
            f"device is {name!r}, but torch finds no CUDA device: {torch.__version__} was built "
            f"for {built}; expected another torch, or 'auto' or 'cpu'"
        )
    if name == "cpu" or not available:
        logger.info("the network runs on the CPU, threads: %d", torch.get_num_threads())
        return torch.device("cpu")
    device = torch.device("cuda" if name == "auto" else name)
    if device.index is not None and device.index >= torch.cuda.device_count():
        raise ConfigError(
            f"device is {name!r}, but torch finds CUDA devices up to "
            f"'cuda:{torch.cuda.device_count() - 1}'"
        )
    logger.info("the network runs on the GPU, %s", torch.cuda.get_device_name(device))
    return device


def check_precision(device: torch.device, precision: str) -> None:
    """Raise `ConfigError` if the device does not compute in the precision."""
    if precision == "tf32" and device.type != "cuda":
        raise ConfigError(
            f"precision is 'tf32', which is of GPUs alone, but the device is {device}; "
            "expected 'auto' or 'fp32'"
        )
    if precision in ("bf16", "tf32") and device.type == "cuda" and not is_fast(device, precision):
        raise ConfigError(
            f"precision is {precision!r}, which {torch.cuda.get_device_name(device)} does not "
            "have; expected 'fp16' or 'fp32'"
        )


def is_fast(device: torch.device, precision: str) -> bool:
    """Return whether a GPU is faster in fp16, tf32 or bf16 than in fp32."""
    return torch.cuda.get_device_capability(device) >= CAPABILITIES[precision]


def has_bfloat16(device: torch.device) -> bool:
    """Return whether bfloat16 is faster here: a GPU from Ampere on, a CPU with AVX-512 BF16."""
    if device.type == "cuda":
        return torch.cuda.is_available() and is_fast(device, "bf16")
    return bool(getattr(torch.cpu, "_is_avx512_bf16_supported", bool)())


def prepare(network: DepthNetwork, device: torch.device, precision: str) -> DepthNetwork:
    """Change the network, in place and for good, for inference on a device in one of `DTYPES`."""
    network.eval().requires_grad_(False)
    for part in network.foldable:
        fold_batchnorm(part)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # not in stubs
    return network.to(device=device, dtype=DTYPES[precision])


@contextmanager
def cuda_arithmetic(device: torch.device, tf32: bool) -> Iterator[None]:
    """Choose how a GPU computes in this block: cuDNN's fastest kernels, TF32 or exact float32.

    PyTorch has one switch a process, not one a network. So they are set back at the end, and one
    thread at a time computes.
    """
    if device.type != "cuda":
        yield
        return
    with _arithmetic:
        switches = _switches(tf32)
        before = [getattr(owner, name) for owner, name, _ in switches]
        try:
            for owner, name, value in switches:
                setattr(owner, name, value)
            yield
        finally:
            for (owner, name, _), value in zip(switches, before, strict=True):
                setattr(owner, name, value)


def _switches(tf32: bool) -> list[tuple[Any, str, Any]]:
    """Return PyTorch's switches, as owner, name and value."""
    cudnn = torch.backends.cudnn
    matmul = torch.backends.cuda.matmul
    if hasattr(cudnn, "conv"):  # from PyTorch 2.9 on; the old switches then raise beside these
        name = "fp32_precision"
        owners: list[Any] = [cudnn.conv, matmul]
        value: Any = "tf32" if tf32 else "ieee"
    else:
        name = "allow_tf32"
        owners = [cudnn, matmul]
        value = tf32
    return [(cudnn, "benchmark", True), *((owner, name, value) for owner in owners)]


def fold_batchnorm(module: nn.Module) -> None:
    """Fold every BatchNorm2d registered right after a (transposed) convolution into it."""
    for (name, conv), (norm_name, norm) in pairwise(list(module.named_children())):
        if isinstance(conv, (nn.Conv2d, nn.ConvTranspose2d)) and isinstance(norm, nn.BatchNorm2d):
            is_transposed = isinstance(conv, nn.ConvTranspose2d)
            setattr(module, name, fuse_conv_bn_eval(conv, norm, transpose=is_transposed))
            setattr(module, norm_name, nn.Identity())
    for child in module.children():
        fold_batchnorm(child)
