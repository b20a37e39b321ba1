# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Limits on what a stranger's `model.json` makes us build, checked before memory is taken.

A description of a few bytes can ask for a network of any size, but its weights lie beside it: the
network may not be much larger than they are.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.depth.model_folder.tensor_files import TensorFile, TensorFileError

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

    Raises:
        ModelError: it is; or a file is missing or damaged.
    """
    stored_tensors, stored_values = map(sum, zip(*map(_count, files), strict=True))
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


def _count(path: Path) -> tuple[int, int]:
    """Return the numbers of tensors and of values in a file, by its header."""
    try:
        shapes = [entry.shape for entry in TensorFile.open(path).entries.values()]
    except FileNotFoundError as error:
        raise ModelError(f"{path} is missing; model.json names it") from error
    except (TensorFileError, OSError) as error:
        raise ModelError(f"{path} is truncated or damaged: {error}") from error
    return len(shapes), sum(map(math.prod, shapes))
