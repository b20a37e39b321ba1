# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The worlds of a seed stay bit-identical: the shipped model was trained on them."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from uncertainty_depth.config import SynthesisConfig
from uncertainty_depth.synthetic.source import World

CONFIG = SynthesisConfig(width=96, height=64, rings=4, test_objects=True)
SHA256 = {
    "world 0 image": "ded3d95c264f90c3",
    "world 5 image": "dd7b40d18ec1a309",
    "world 5 cloud": "1ccd7f28696d5985",
}
DEPTH_MEAN_AND_DEVIATION_M = {0: (2.64907826, 1.55979219), 5: (2.86850190, 0.99736755)}


def sha256(array: np.ndarray) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of an array's bytes."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def test_two_camera_frames_and_a_lidar_turn_have_the_recorded_bytes() -> None:
    digests = {}
    for number, frame in ((0, 0), (5, 7)):
        world = World(CONFIG, number)
        view = world.view(frame)
        digests[f"world {number} image"] = sha256(world.photograph(frame, view))
        # its bits differ between processors
        found = view.depth_m.mean(dtype=float), view.depth_m.std(dtype=float)
        assert found == pytest.approx(DEPTH_MEAN_AND_DEVIATION_M[number], rel=1e-6)
    # whole millimetres: its trigonometry differs in the last bit between processors
    points_mm = np.rint(1000 * world.cloud(7)[:, :3]).astype(np.int32)
    digests["world 5 cloud"] = sha256(points_mm)
    assert digests == SHA256
