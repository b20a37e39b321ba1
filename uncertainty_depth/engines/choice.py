# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Choose the fastest engine by measuring it, once for a model on a machine."""

from __future__ import annotations

import hashlib
import importlib.metadata
import itertools
import json
import logging
import os
import platform
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from uncertainty_depth import atomic, strict_json
from uncertainty_depth.config import TRAINING_FREE_METHODS, RawPredictorConfig
from uncertainty_depth.config.choices import PRECISIONS
from uncertainty_depth.engines.loading import Loaded, load
from uncertainty_depth.engines.runtimes import is_installed
from uncertainty_depth.model_folder.folder import ModelFolder
from uncertainty_depth.shipped_model import is_shipped

logger = logging.getLogger(__name__)

FILE = "engine.json"
MAX_FILE_BYTES = 2**20
ENGINES = ("torch", "openvino", "onnxruntime")
REPETITIONS = 3


class Choice(NamedTuple):
    """An engine, a name of `ENGINES`, and its precision."""

    engine: str
    precision: str


def choose(model: ModelFolder, method: str, config: RawPredictorConfig) -> Choice:
    """Return engine and precision of a config; "auto" is measured, or remembered. Logs it.

    Args:
        model: the folder; the choice is remembered beside it.
        method: that is run.
        config: `engine`, `precision`, `device`, `samples` and `chunk` are used.
    """
    if config.engine != "auto":
        return Choice(config.engine, config.precision)
    circumstances = _circumstances(method, config)
    choice = _recall(model.path).get(circumstances)
    if choice is not None:
        logger.info("engine auto: %s in %s, as measured before", *choice)
        return choice
    milliseconds = dict(_measured(model, method, config))
    choice = min(milliseconds, key=lambda name: milliseconds[name])
    times = ", ".join(f"{name} {p} {ms:.1f} ms" for (name, p), ms in milliseconds.items())
    logger.info("engine auto: %s in %s is the fastest (%s)", *choice, times)
    _remember(model.path, circumstances, choice)
    return choice


def _measured(
    model: ModelFolder, method: str, config: RawPredictorConfig
) -> Iterator[tuple[Choice, float]]:
    """Yield every choice that works here, and the milliseconds of its fastest frame."""
    for choice in _candidates(method, config):
        try:
            loaded = load(model, method, *choice, config.device)
            milliseconds = _fastest_frame_ms(loaded, model.network.input_size, config)
        # Whatever a graph that an engine cannot compile raises: the next engine may.
        except Exception as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            logger.warning("engine %s in %s does not run this model: %s", *choice, reason)
            if choice.engine == "torch":
                raise
            continue
        yield Choice(choice.engine, loaded.precision), milliseconds


def _candidates(method: str, config: RawPredictorConfig) -> list[Choice]:
    """Return torch, first, and the installed engines for the method and the precision."""
    precision = config.precision
    candidates = [Choice("torch", "fp32" if precision == "auto" else precision)]
    if precision == "auto" and _has_fast_bf16():
        candidates.append(Choice("torch", "bf16"))
    if method in TRAINING_FREE_METHODS:
        return candidates
    for name in ENGINES[1:]:
        has_precision = name == "openvino" or precision in ("auto", "fp32")
        has_device = name != "openvino" or not config.device.startswith("cuda")
        if is_installed(name) and has_precision and has_device:
            candidates.append(Choice(name, precision))
    return candidates


def _has_fast_bf16() -> bool:
    """Return whether the processor computes in bfloat16 itself."""
    supported = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return bool(supported and supported())


def _fastest_frame_ms(loaded: Loaded, size: Sequence[int], config: RawPredictorConfig) -> float:
    width, height = size
    image = torch.zeros((1, 3, height, width), device=loaded.device)
    durations = []
    for stamp_ns in range(REPETITIONS + 1):
        start = time.perf_counter()
        loaded.estimator.estimate(image, stamp_ns, config).maps()  # type: ignore[arg-type]
        durations.append(time.perf_counter() - start)
    return 1e3 * min(durations[1:])  # the first one compiles


def _circumstances(method: str, config: RawPredictorConfig) -> str:
    """Return everything that the choice depends on besides the model, as one line."""
    versions = []
    for name in ENGINES:
        if is_installed(name):
            versions.append(f"{name} {importlib.metadata.version(name)}")
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    options = f"{method}, samples {config.samples}, chunk {config.chunk}, {config.device}"
    machine = f"{_processor()}, {gpu}, threads {torch.get_num_threads()}"
    return "; ".join([options, config.precision, machine, *versions])


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _files(model: Path) -> list[Path]:
    """Return where a choice may be remembered: beside the model, or in the user's cache."""
    described = model / "model.json"
    is_folder = described.is_file()  # else it is wrapped in memory, and its files are not ours
    content = described.read_bytes() if is_folder else str(model).encode()
    key = hashlib.sha256(content).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    files = [cache / "uncertainty_depth" / f"{model.name}-{key}" / FILE]
    if is_folder and not is_shipped(model):
        files.insert(0, model / FILE)
    return files


def _recall(model: Path) -> dict[str, Choice]:
    """Return the remembered choices by their circumstances; what is not a choice is forgotten."""
    for file in _files(model):
        try:
            choices = strict_json.read_file(file, MAX_FILE_BYTES)
        except (OSError, strict_json.JsonError):
            continue
        entries = choices.items() if isinstance(choices, dict) else ()
        return {
            circumstances: Choice(*entry) for circumstances, entry in entries if _is_choice(entry)
        }
    return {}


def _is_choice(entry: Any) -> bool:
    known = itertools.product(ENGINES, PRECISIONS)
    return isinstance(entry, list) and any(entry == list(choice) for choice in known)


def _remember(model: Path, circumstances: str, choice: Choice) -> None:
    content = json.dumps(_recall(model) | {circumstances: list(choice)}, indent=2)
    for file in _files(model):
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            atomic.write_bytes(file, content.encode())
        except OSError:
            continue
        return
    logger.warning("engine auto: the choice cannot be stored and will be measured again")
