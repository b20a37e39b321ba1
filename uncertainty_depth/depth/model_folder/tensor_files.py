# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Files of the safetensors format, read and written without its library, which apt lacks.

Eight bytes hold the length of a JSON header, little-endian; the header gives each tensor's type,
shape and place in the bytes that follow. huggingface.co/docs/safetensors has the format.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from uncertainty_depth.core import strict

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
        """Read a file's header.

        Raises:
            TensorFileError: it has another format, or is truncated.
            OSError: it cannot be read.
        """
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
        return {name: _tensor(content, entry) for name, entry in self.entries.items()}


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


def _tensor(content: Tensor, entry: Entry) -> Tensor:
    if entry.start == entry.stop:
        return torch.empty(entry.shape, dtype=entry.dtype)
    own = content[entry.start : entry.stop]
    if entry.start % entry.dtype.itemsize:
        own = own.clone()
    return own.view(entry.dtype).view(entry.shape)


def packed(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """Return a file's bytes: the tensors, the widest types first so that each is aligned."""
    header: dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
    parts = []
    stop = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0])):
        flat = tensor.detach().cpu().contiguous().flatten()
        parts.append(flat.view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")
        start, stop = stop, stop + len(parts[-1])
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, stop],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    return b"".join([len(text).to_bytes(LENGTH_BYTES, "little"), text, *parts])
