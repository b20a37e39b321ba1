# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Images of several cameras in one batch against the same images one by one.

CPU time, as other programs may share the machine; both ways alternate, so that what they do to
caches and clock hits both alike.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from uncertainty_depth.bench.rounds import Calls, Spread, alternate, load, markdown
from uncertainty_depth.config import NetworkConfig, PredictorConfig
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.model_folder.writing import create, set_members, write_member
from uncertainty_depth.network.hourglass import Hourglass
from uncertainty_depth.records import Observation
from uncertainty_depth.shipped_model import SHIPPED_MODEL

CAMERAS = (2, 4)
SIZE = (480, 640)
RESNET = NetworkConfig(backbone="resnet18", input_size=(320, 240), head="laplace")
SAMPLES = {"mc_dropout": 8, "deterministic": 1}
"""Samples of each method."""


class Row(NamedTuple):
    """A comparison.

    Attributes:
        model: what was run.
        method: with its samples.
        cameras: number of images.
        one_by_one_ms: CPU time.
        ratio: of the batch to one by one.
    """

    model: str
    method: str
    cameras: int
    one_by_one_ms: Spread
    ratio: Spread


def run(repetitions: int = 5, network: NetworkConfig = RESNET) -> list[Row]:
    """Time the shipped model and a larger one with random weights, for each method and number."""
    rows = []
    with _untrained(network) as folder:
        models = {"shipped": SHIPPED_MODEL, f"{network.backbone}, random weights": folder}
        for name, path in models.items():
            for method, samples in SAMPLES.items():
                config = PredictorConfig(method=method, samples=samples, device="cpu")
                predictor = Predictor(path, config)
                label = f"{method}, M = {samples}"
                for cameras in CAMERAS:
                    seconds = alternate(
                        _ways(predictor, cameras),
                        repetitions,
                        time.process_time,
                        description=f"{name} {label}, {cameras} cameras",
                    )
                    ratio = Spread.of(seconds["batch"] / seconds["one by one"])
                    one_by_one_ms = Spread.of(1e3 * seconds["one by one"])
                    rows.append(Row(name, label, cameras, one_by_one_ms, ratio))
    return rows


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    head = ("model", "method", "cameras", "one by one, CPU ms", "batch / one by one")
    note = f"{torch.get_num_threads()} threads; {load()}"
    return f"{markdown(head, rows, text_columns=2)}\n\n{note}"


@contextmanager
def _untrained(config: NetworkConfig) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        network = Hourglass(config)
        create(folder, network, {"source": "random weights"})
        write_member(folder, "only", network)
        set_members(folder, ["only"], "mc_dropout")
        yield folder


def _ways(predictor: Predictor, cameras: int) -> Calls:
    rng = np.random.default_rng(0)
    observations = [
        Observation(rng.integers(0, 256, (*SIZE, 3), np.uint8), stamp) for stamp in range(cameras)
    ]

    def one_by_one() -> None:
        for observation in observations:
            predictor.predict_batch([observation])

    return {"one by one": one_by_one, "batch": partial(predictor.predict_batch, observations)}
