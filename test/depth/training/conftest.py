# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from test.conftest import ListSource, wall
from uncertainty_depth.core.config.training import NetworkConfig, TrainingConfig
from uncertainty_depth.depth.training.run import train


class Killed(BaseException):
    """Ends a training as a kill does: nothing after it runs."""


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def counted_writes(patch: pytest.MonkeyPatch, killed_at: int = 0) -> list[int]:
    """Return the list of files written, which grows; the process dies at the given one."""
    fsync = os.fsync
    writes = []

    def counting(descriptor: int) -> None:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            writes.append(descriptor)
            if len(writes) == killed_at:
                raise Killed
        fsync(descriptor)

    patch.setattr(os, "fsync", counting)
    return writes


Small = tuple[ListSource, NetworkConfig, TrainingConfig]


@pytest.fixture
def network() -> NetworkConfig:
    return NetworkConfig(
        backbone="tiny",
        decoder_width=16,
        head="none",
        input_size=(64, 64),
        depth_range=(0.5, 10.0),
    )


@pytest.fixture
def training() -> TrainingConfig:
    return TrainingConfig(
        epochs=3, snapshots=2, batch_size=8, device="cpu", validation_fraction=0.25
    )


@pytest.fixture
def source() -> ListSource:
    return ListSource([wall(index) for index in range(16)])


@pytest.fixture
def more_frames() -> ListSource:
    return ListSource([wall(index) for index in range(24)])


@pytest.fixture(autouse=True)
def quick(one_thread: None) -> None:
    """For every test in this folder."""


@pytest.fixture
def small(source: ListSource, network: NetworkConfig, training: TrainingConfig) -> Small:
    """Few frames, small images, short epochs."""
    source.records = source.records[:8]
    quick = replace(training, epochs=2, snapshots=2, batch_size=3, members=3)
    return source, replace(network, input_size=(32, 32)), quick


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> dict[object, Path]:
    """What `make` has trained, for the tests that need the same model."""
    return {}


@pytest.fixture
def make(trained, tmp_path_factory) -> Callable[..., Path]:
    """Trains a method in miniature; what is distilled is a deep ensemble beside."""

    def making(small: Small, folder: Path, method: str, **options: object) -> Path:
        source, network, training = small
        if method == "distilled":
            options["distill"] = str(making(small, folder.with_name("teacher"), "multi_inits"))
        training = replace(training, method=method, **options)
        key = repr((network, training))
        if key not in trained:
            first = tmp_path_factory.mktemp("trained") / "model"
            trained[key] = train(source, first, network, training)
        return Path(shutil.copytree(trained[key], folder))

    return making
