# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Images of several cameras in one batch against the same images one by one.

CPU time, as other programs may share the machine; both ways alternate, so that what they do to
caches and clock hits both alike.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from tqdm import trange

from uncertainty_depth.config import NetworkConfig, PredictorConfig
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.model_folder.writing import create, set_members, write_member
from uncertainty_depth.network.hourglass import Hourglass
from uncertainty_depth.records import Observation
from uncertainty_depth.shipped_model import SHIPPED_MODEL

CAMERAS = (2, 4)
SIZE = (480, 640)
RESNET = NetworkConfig(backbone="resnet18", input_size=(320, 240), head="laplace")
METHODS = {"mc_dropout": 8, "deterministic": 1}
"""Samples of each method."""


class Row(NamedTuple):
    """A comparison.

    Attributes:
        model: what was run.
        method: with its samples.
        cameras: number of images.
        one_by_one_ms: CPU time, median.
        ratio: of the batch to one by one: min, median and max over the rounds.
    """

    model: str
    method: str
    cameras: int
    one_by_one_ms: float
    ratio: tuple[float, float, float]


def run(repetitions: int = 5, network: NetworkConfig = RESNET) -> list[Row]:
    """Time the shipped model and a larger one with random weights, for each method and number."""
    rows = []
    with _untrained(network) as folder:
        models = {"shipped": SHIPPED_MODEL, f"{network.backbone}, random weights": folder}
        for name, path in models.items():
            for method, samples in METHODS.items():
                config = PredictorConfig(method=method, samples=samples, device="cpu")
                predictor = Predictor(path, config)
                label = f"{method}, M = {samples}"
                for cameras in CAMERAS:
                    durations = _compare(predictor, cameras, repetitions, f"{name} {label}")
                    rows.append(_row(name, label, cameras, *durations))
    return rows


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| model | method | cameras | one by one, CPU ms | batch / one by one | min | max |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        low, median, high = row.ratio
        lines.append(
            f"| {row.model} | {row.method} | {row.cameras} | {row.one_by_one_ms:.1f} | "
            f"{median:.2f} | {low:.2f} | {high:.2f} |"
        )
    threads = torch.get_num_threads()
    return "\n".join([*lines, "", f"{threads} threads; load average {os.getloadavg()[0]:.1f}"])


@contextmanager
def _untrained(config: NetworkConfig) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        network = Hourglass(config)
        create(folder, network, {"source": "random weights"})
        write_member(folder, "only", network)
        set_members(folder, ["only"], "mc_dropout")
        yield folder


def _compare(
    predictor: Predictor, cameras: int, repetitions: int, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the CPU seconds of each round: one by one, and as a batch."""
    rng = np.random.default_rng(0)
    observations = [
        Observation(rng.integers(0, 256, (*SIZE, 3), np.uint8), stamp) for stamp in range(cameras)
    ]
    ways: list[Callable[[], object]] = [
        lambda: [predictor.predict_batch([one]) for one in observations],
        lambda: predictor.predict_batch(observations),
    ]
    seconds: list[list[float]] = [[], []]
    for repetition in trange(repetitions + 1, desc=f"{name}, {cameras} cameras", unit="round"):
        for durations, way in zip(seconds, ways, strict=True):
            start = time.process_time()
            way()
            if repetition:  # the first one compiles
                durations.append(time.process_time() - start)
    return np.array(seconds[0]), np.array(seconds[1])


def _row(model: str, method: str, cameras: int, one_by_one: np.ndarray, batch: np.ndarray) -> Row:
    ratios = batch / one_by_one
    spread = (float(ratios.min()), float(np.median(ratios)), float(ratios.max()))
    return Row(model, method, cameras, 1e3 * float(np.median(one_by_one)), spread)
