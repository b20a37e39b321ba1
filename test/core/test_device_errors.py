# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A device's errors, as PyTorch and its libraries word them, are told by what they mean."""

import pytest
import torch

from uncertainty_depth.core.device_errors import (
    DeviceLostError,
    at_load,
    at_run_time,
    explained,
    is_out_of_memory,
)
from uncertainty_depth.core.errors import ConfigError, MessageError

CPU = torch.device("cpu")
GPU = torch.device("cuda:0")
OUT_OF_MEMORY = {
    "GPU": torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has a total capacity of 7.79 GiB"
    ),
    "driver": RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be"),
    "cuDNN": RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    "cuBLAS": RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"),
    "Jetson": RuntimeError(
        "NVML_SUCCESS == r INTERNAL ASSERT FAILED at "
        '"/opt/pytorch/c10/cuda/CUDACachingAllocator.cpp":1131, please report a bug to PyTorch.'
    ),
    "CPU": RuntimeError(
        "[enforce fail at alloc_cpu.cpp:75] DefaultCPUAllocator: can't allocate memory"
    ),
    "NumPy": MemoryError("Unable to allocate 1.00 TiB"),
    "ONNX Runtime": Exception("Failed to allocate memory for requested buffer of size 9437184"),
}
SHAPES = RuntimeError("shapes do not match")
NO_KERNEL = RuntimeError(
    "CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors"
)
BAD_ACCESS = RuntimeError("CUDA error: an illegal memory access was encountered\nCUDA kernel")


@pytest.mark.parametrize("name", OUT_OF_MEMORY)
def test_memory_that_ran_out_is_recognised_in_all_forms(name):
    error = OUT_OF_MEMORY[name]
    assert is_out_of_memory(error)
    told = at_load("fp32", error, GPU)
    assert isinstance(told, ConfigError)
    assert str(told).startswith("the model does not fit into the memory of cuda:0: ")
    assert "precision" not in str(told)
    told = at_run_time(error, GPU)
    assert isinstance(told, MessageError)
    assert told.reason == "out_of_memory"
    assert "\n" not in str(told)


@pytest.mark.parametrize("error", [SHAPES, NO_KERNEL, BAD_ACCESS])
def test_other_errors_are_not_about_memory(error):
    assert not is_out_of_memory(error)
    with pytest.raises(RuntimeError) as raised:
        at_run_time(error, GPU)
    assert raised.value is error


def test_a_pytorch_for_other_gpus_is_named_as_that():
    told = str(at_load("fp32", NO_KERNEL, GPU))
    assert told.startswith(f"this PyTorch, {torch.__version__}, was not built for cuda:0 or its")
    assert told.endswith("expected a PyTorch for it, or device cpu")
    assert "precision is 'fp16', which does not work on cuda:0" in str(
        at_load("fp16", SHAPES, GPU)
    )


@pytest.mark.parametrize("name", ["GPU", "Jetson"])
def test_a_gpu_that_answers_again_is_not_lost(name, monkeypatch):
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    with pytest.raises(MessageError), explained(GPU, at_run_time):
        raise OUT_OF_MEMORY[name]


def test_a_gpu_that_answers_every_call_with_an_error_is_lost(monkeypatch):
    def synchronize(device):
        assert device == GPU
        raise BAD_ACCESS

    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    with pytest.raises(DeviceLostError) as raised, explained(GPU, at_run_time):
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nCUDA kernel")
    assert str(raised.value) == (
        "cuda:0 is lost until the process starts anew: CUDA error: an illegal memory access was "
        "encountered"
    )
    with pytest.raises(RuntimeError, match="shapes"), explained(CPU, at_run_time):
        raise SHAPES
