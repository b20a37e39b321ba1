# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The two kinds of files in a model folder: `model.json`, and safetensors, never a pickle."""

from __future__ import annotations

import json
import math
import reprlib
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from uncertainty_depth.core import atomic, strict
from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.core.model_location import MAX_BYTES, check_location
from uncertainty_depth.depth.networks.hourglass import ARCHITECTURES

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
METADATA = "__metadata__"
LENGTH_BYTES = 8
MAX_HEADER_BYTES = 2**27
ALIGNMENT = 8
MAX_MEMBERS = 1024
MAX_INTEGER = 2**20
"""Largest integer accepted in a backbone's config: four times the largest vocabulary."""
MAX_PARTS = 1024
"""Layers, stages or heads of a backbone, and values in a list of its config."""
PARTS = ("layers", "depth", "stages", "blocks", "heads", "experts")
SPARE_VALUES = 2**24
SPARE_TENSORS = 4096
"""Slack above twice what is stored, so that a small mismatch is told tensor by tensor."""
REMOTE = ("auto_map", "backbone", "use_pretrained_backbone", "quantization_config")
"""Keys that make transformers fetch a config, weights or code from a hub."""
FORMAT = 1
KEYS: dict[str, type] = {
    "architecture": str,
    "network": dict,
    "backbone": dict,
    "method": str,
    "members": list,
    "shared_encoder": bool,
    "training": dict,
}


class TensorFileError(ValueError):
    """A file is not of the format, or truncated."""


class Entry(NamedTuple):
    """Where a tensor is: its type, shape and range of bytes after the header."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    stop: int


class TensorFile(NamedTuple):
    """A file's header, checked against its size; tensors are read when asked for.

    `entries` describe the tensors, `metadata` holds the file's own words; tensors begin at
    `start`.
    """

    path: Path
    entries: dict[str, Entry]
    metadata: dict[str, str]
    start: int

    @classmethod
    def open(cls, path: Path) -> TensorFile:
        """Read a file's header; raise `TensorFileError` if damaged, `OSError` if unreadable."""
        with strict.open_file(path) as file:
            length = int.from_bytes(file.read(LENGTH_BYTES), "little")
            size = path.stat().st_size - LENGTH_BYTES - length
            if size < 0 or length > MAX_HEADER_BYTES:
                raise TensorFileError(f"its header of {length} bytes does not fit into it")
            text = file.read(length)
        try:
            header = strict.read_json(text, MAX_HEADER_BYTES)
        except strict.FormatError as error:
            raise TensorFileError(f"its header is no JSON: {error}") from error
        if not isinstance(header, dict):
            raise TensorFileError("its header is no JSON object")
        metadata = header.pop(METADATA, {})
        entries = {name: _entry(name, value) for name, value in header.items()}
        stop = 0
        for name, entry in sorted(entries.items(), key=lambda item: item[1].start):
            if entry.start != stop:
                raise TensorFileError(f"tensor {name} starts at {entry.start}, not at {stop}")
            stop = entry.stop
        if stop != size:
            raise TensorFileError(f"it has {size} bytes of tensors; its header says {stop}")
        return cls(path, entries, metadata if isinstance(metadata, dict) else {}, length + 8)

    def tensors(self) -> dict[str, Tensor]:
        """Read all tensors; raise `OSError` if they cannot be."""
        content = torch.from_numpy(np.fromfile(self.path, np.uint8, offset=self.start))
        tensors = {}
        for name, (dtype, shape, start, stop) in self.entries.items():
            own = content[start:stop]
            if start % dtype.itemsize:
                own = own.clone()
            is_empty = start == stop
            tensors[name] = (
                torch.empty(shape, dtype=dtype) if is_empty else own.view(dtype).view(shape)
            )
        return tensors


def _entry(name: str, value: Any) -> Entry:
    try:
        dtype = DTYPES[value["dtype"]]
        shape = tuple(value["shape"])
        start, stop = value["data_offsets"]
    except (KeyError, TypeError, ValueError) as error:
        raise TensorFileError(f"its header says of {name} {str(value)[:80]!r}") from error
    numbers = (*shape, start, stop)
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise TensorFileError(f"its header says of {name} {str(value)[:80]!r}")
    if stop - start != math.prod(shape) * dtype.itemsize:
        raise TensorFileError(f"tensor {name} has {stop - start} bytes for shape {shape}")
    return Entry(dtype, shape, start, stop)


def packed(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """Return a file's bytes: the tensors, the widest types first so that each is aligned."""
    header: dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
    parts = []
    stop = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0])):
        flat = tensor.detach().cpu().contiguous().flatten()
        parts.append(flat.view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")
        start = stop
        stop = start + len(parts[-1])
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, stop],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    return b"".join([len(text).to_bytes(LENGTH_BYTES, "little"), text, *parts])


def check_backbone(values: Mapping[str, Any]) -> None:
    """Raise `ModelError` for a backbone's config that would fetch something or never end."""
    for key, value in values.items():
        if (key in REMOTE or "attn_implementation" in key) and value:
            raise ModelError(
                f"backbone has {key} = {str(value)[:80]!r}; expected a config that is complete "
                "without a hub"
            )
        if isinstance(value, dict):
            check_backbone(value)
        numbers = value if isinstance(value, list) else [value]
        if len(numbers) > MAX_PARTS:
            raise ModelError(
                f"backbone has {len(numbers)} values of {key}; expected at most {MAX_PARTS}"
            )
        maximum = MAX_PARTS if any(part in key for part in PARTS) else MAX_INTEGER
        for number in numbers:
            if isinstance(number, (int, float)) and abs(number) > maximum:
                raise ModelError(f"backbone has {key} = {number}; expected at most {maximum}")


@contextmanager
def not_larger_than(*files: Path) -> Iterator[None]:
    """Stop the construction of a network that is much larger than its stored weights.

    Parameters are counted when a module registers them: PyTorch has reserved their memory by then,
    but not touched it.

    Raises `ModelError`: it is; or a file is missing or damaged.
    """
    shapes = [entry.shape for file in files for entry in _opened(file).entries.values()]
    stored_tensors = len(shapes)
    stored_values = sum(map(math.prod, shapes))
    max_tensors = 2 * stored_tensors + SPARE_TENSORS
    max_values = 2 * stored_values + SPARE_VALUES
    thread = threading.get_ident()
    tensors = values = 0

    def count(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal tensors, values
        if threading.get_ident() != thread or parameter is None:
            return
        tensors += 1
        values += parameter.numel()
        if tensors > max_tensors or values > max_values:
            raise ModelError(
                f"{files[0].parent / 'model.json'} describes a network of more than {tensors - 1} "
                f"tensors and {values - parameter.numel()} weights; expected about the "
                f"{stored_tensors} tensors and {stored_values} weights in "
                f"{' and '.join(file.name for file in files)}"
            )

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


def _opened(path: Path) -> TensorFile:
    try:
        return TensorFile.open(path)
    except FileNotFoundError as error:
        raise ModelError(f"{path} is missing; model.json names it") from error
    except (TensorFileError, OSError) as error:
        raise ModelError(f"{path} is truncated or damaged: {error}") from error


def write_json(folder: Path, content: Mapping[str, Any]) -> None:
    """Write `model.json`, whole or not at all."""
    text = json.dumps({"format": FORMAT, **content}, indent=2)
    atomic.write_text(folder / "model.json", text + "\n")


def read_json(folder: Path) -> dict[str, Any]:
    """Return the content of `model.json`, with all `KEYS`, or raise `ModelError`."""
    check_location(folder)
    path = folder / "model.json"
    try:
        content = strict.read_json_file(path, MAX_BYTES)
    except (strict.FormatError, OSError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from error
    number = content.get("format") if isinstance(content, dict) else None
    if type(number) is not int:
        raise ModelError(f"{path} has format {reprlib.repr(number)}; expected {FORMAT}")
    if number > FORMAT:
        raise ModelError(
            f"{path} has format {number}, newer than {FORMAT}, the newest this version reads; "
            "update uncertainty_depth"
        )
    for key, value_type in KEYS.items():
        if not isinstance(content.get(key), value_type):
            raise ModelError(
                f"{path} has {key} = {reprlib.repr(content.get(key))}; "
                f"expected a {value_type.__name__}"
            )
    if content["architecture"] not in ARCHITECTURES:
        raise ModelError(
            f"{path} has architecture {reprlib.repr(content['architecture'])}; "
            f"expected {' or '.join(map(repr, ARCHITECTURES))}"
        )
    return content


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return all tensors in a file; raise `ModelError` if it is missing or damaged."""
    file = _opened(path)
    try:
        return file.tensors()
    except OSError as error:
        raise ModelError(f"{path} is truncated or damaged: {error}") from error


def check_tensors(path: Path, tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Raise `ModelError` for the first tensor that is not as expected, or not finite."""
    for name in (*expected, *tensors):
        problem = ""
        if name not in tensors:
            problem = f"it lacks tensor {name}"
        elif name not in expected:
            problem = f"it has an unknown tensor {name}"
        elif tensors[name].shape != expected[name].shape:
            problem = (
                f"tensor {name} has shape {tuple(tensors[name].shape)}, expected "
                f"{tuple(expected[name].shape)}"
            )
        if problem:
            raise ModelError(f"{path} is of another architecture than model.json: {problem}")
        if not bool(tensors[name].isfinite().all()):
            raise ModelError(
                f"{path} has NaN or infinity in tensor {name}: the file is damaged; "
                "expected finite weights"
            )


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> Path:
    """Write the tensors to a file, whole or not at all; returns its path."""
    atomic.write_bytes(path, packed(tensors))
    return path
