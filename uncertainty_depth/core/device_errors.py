# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a device's errors mean: out of memory, a lost GPU, a PyTorch built for another one.

PyTorch, its libraries and the engines have no types for them, but words.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from uncertainty_depth.core.errors import (
    ConfigError,
    MessageError,
    UncertaintyDepthError,
    first_line,
)

if TYPE_CHECKING:
    import torch

OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "failed to allocate memory",  # ONNX Runtime
    "std::bad_alloc",  # OpenVINO
    "cudnn_status_alloc_failed",
    "cublas_status_alloc_failed",
    "nvml_success == r",  # PyTorch on a Jetson, whose memory no NVML watches
)
NOT_BUILT_FOR_IT = ("no kernel image", "unsupported toolchain", "driver version is insufficient")
"""What CUDA says to a PyTorch that was built for other GPUs, or for a newer driver."""


class DeviceLostError(UncertaintyDepthError):
    """Nothing can be computed on the GPU any more before the process starts anew."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out, of the GPU or of the computer."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(words in text for words in OUT_OF_MEMORY)


def free_memory() -> None:
    """Return unused memory to the GPU."""
    gc.collect()
    if (cuda := _cuda()) is not None:
        cuda.empty_cache()


def device_memory_bytes() -> int:
    """Return this process's GPU memory; 0 without a GPU."""
    if (cuda := _cuda()) is None:
        return 0
    return sum(map(cuda.memory_reserved, range(cuda.device_count())))


def _cuda() -> Any:
    """Return PyTorch's module for GPUs; None without a GPU, or before PyTorch is imported."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_available() else None


@contextmanager
def explained(
    device: torch.device, explain: Callable[[BaseException, torch.device], UncertaintyDepthError]
) -> Iterator[None]:
    """Raise what `explain` makes of the device's errors here, or `DeviceLostError`."""
    try:
        yield
    except UncertaintyDepthError:
        raise
    except Exception as error:
        if _is_lost(device):
            told: UncertaintyDepthError = DeviceLostError(
                f"{device} is lost until the process starts anew: {first_line(error)}"
            )
        else:
            told = explain(error, device)
        raise told from error.with_traceback(None)  # which holds the tensors


def at_load(precision: str, error: BaseException, device: torch.device) -> ConfigError:
    """Return why a device cannot run a model; raise the error itself if it is not the device's."""
    reason = first_line(error)
    if is_out_of_memory(error):
        return ConfigError(
            f"the model does not fit into the memory of {device}: {reason}; expected fewer "
            "samples, a model of a smaller input size, or another device"
        )
    if not isinstance(error, (RuntimeError, NotImplementedError)):
        raise error
    if any(words in str(error).lower() for words in NOT_BUILT_FOR_IT):
        return ConfigError(
            f"this PyTorch, {sys.modules['torch'].__version__}, was not built for {device} or "
            f"its driver: {reason}; expected a PyTorch for it, or device cpu"
        )
    return ConfigError(f"precision is {precision!r}, which does not work on {device}: {reason}")


def at_run_time(error: BaseException, device: torch.device) -> UncertaintyDepthError:
    """Return why a frame was not predicted; raise the error itself if it is not the device's."""
    if not is_out_of_memory(error):
        raise error
    return MessageError(
        "out_of_memory",
        f"the memory of {device} is too small for a frame: {first_line(error)}; expected a model "
        "of a smaller input size, or another device",
    )


def _is_lost(device: torch.device) -> bool:
    """Return whether CUDA answers every call with an error, as it does after a bad access."""
    if device.type != "cuda":
        return False
    try:
        sys.modules["torch"].cuda.synchronize(device)
    except RuntimeError as error:
        return not is_out_of_memory(error)
    return False
