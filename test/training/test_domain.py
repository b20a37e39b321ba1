# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a model folder says of the data its networks were trained on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.records import Frame
from uncertainty_depth.training.frames import TrainingFrames, split
from uncertainty_depth.training.record import domain, median_depth
from uncertainty_depth.training.run import train


def camera(focal_length: float, width: int = 80, height: int = 60) -> Camera:
    intrinsics = np.array([[focal_length, 0, width / 2], [0, focal_length, height / 2], [0, 0, 1]])
    return Camera(width, height, intrinsics)


def test_the_median_is_that_of_each_cell_to_the_millimetre_and_null_where_unknown() -> None:
    random = np.random.default_rng(0)
    depths_m = random.uniform(1, 9, (5, 16, 20)).astype(np.float32)
    depths_m[:3, 0, 0] = np.nan
    depths_m[:, 15, 19] = np.nan
    rows = median_depth(list(depths_m.repeat(3, axis=1).repeat(3, axis=2)))
    assert (len(rows), {len(row) for row in rows}) == (16, {20})
    assert rows[15][19] is None
    assert rows[0][0] == round(float(np.mean(depths_m[3:, 0, 0])), 3)
    assert rows[7][3] == round(float(np.median(depths_m[:, 7, 3])), 3)


def test_training_writes_them_of_its_training_frames_alone(small, tmp_path: Path) -> None:
    source, network, training = small
    source.records = [
        replace(frame, camera=camera(40.0 + index)) for index, frame in enumerate(source.records)
    ]
    folder = train(source, tmp_path / "model", network, training)
    described = read(folder).training
    indices, _ = split(len(source.records), training.validation_fraction, training.seed)
    assert described["camera"]["focal_length_per_width"] == [
        (40 + min(indices)) / 80,
        (40 + max(indices)) / 80,
    ]
    known = [value for row in described["median_depth_m"] for value in row if value is not None]
    assert 1 <= min(known) <= max(known) <= 6


def test_depth_is_learnt_as_a_canonical_camera_sees_it_and_described_as_it_is() -> None:
    camera = Camera(80, 64, np.array([[143.1, 0, 40], [0, 143.1, 32], [0, 0, 1]]))
    frames = TrainingFrames(canonical=1.0)
    image = np.zeros((64, 80, 3), np.uint8)
    depth_m = np.full((64, 80), 4, np.float32)
    frames.add(Frame(0, "frame", camera, image, ground_truth_m=depth_m), 40, 32)
    np.testing.assert_allclose(frames.depths_m[0], 2, rtol=1e-3)
    described = domain(frames, [0])
    assert described["camera"]["relative_focal_length"] == pytest.approx([2, 2], rel=1e-3)
    assert described["median_depth_m"][0][0] == pytest.approx(4, rel=1e-3)
