# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The synthetic source, and the bag made of it."""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from synthetic.config import SynthesisConfig
from synthetic.source import PAUSE_NS, SyntheticSource, World, synthesize
from uncertainty_depth.core.config.source import ODOMETRY_FRAME, SourceConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.records import Frame
from uncertainty_depth.frames.bag import BagSource
from uncertainty_depth.stream.motion import with_motion
from uncertainty_depth.stream.opening import open_source

CONFIG = SynthesisConfig(worlds=2, frames=3, seed=4, width=80, height=60, rings=16)
PINNED = SynthesisConfig(width=96, height=64, rings=4, test_objects=True)
# the shipped models were trained on these worlds
SHA256 = {
    "world 0 image": "ded3d95c264f90c3",
    "world 5 image": "dd7b40d18ec1a309",
    "world 5 cloud": "1ccd7f28696d5985",
}
DEPTH_MEAN_AND_DEVIATION_M = {0: (2.64907826, 1.55979219), 5: (2.86850190, 0.99736755)}


def with_(**changes) -> SynthesisConfig:
    return dataclasses.replace(CONFIG, **changes)


@pytest.fixture(scope="module")
def frames() -> list[Frame]:
    return list(SyntheticSource(CONFIG))


def assert_same(first: Frame, second: Frame) -> None:
    assert first.stamp_ns == second.stamp_ns
    np.testing.assert_array_equal(first.image, second.image)
    np.testing.assert_array_equal(first.ground_truth_m, second.ground_truth_m)


def test_frames_are_what_a_source_promises(frames):
    assert len(frames) == len(SyntheticSource(CONFIG)) == 6
    for frame in frames:
        assert frame.image.shape == (60, 80, 3)
        assert frame.image.dtype == np.uint8
        assert frame.ground_truth_m.shape == (60, 80)
        assert frame.ground_truth_m.dtype == np.float32
        assert (frame.camera.width, frame.camera.height) == (80, 60)
        assert 20 < frame.image.mean() < 235
        assert frame.image.std() > 5
    stamps = [frame.stamp_ns for frame in frames]
    period_ns = 100_000_000
    assert np.diff(stamps).tolist() == [
        *(period_ns, period_ns, period_ns + PAUSE_NS, period_ns, period_ns)
    ]


def test_a_source_can_be_read_again_and_again(frames):
    source = SyntheticSource(CONFIG)
    for first, second, third in zip(source, source, frames, strict=True):
        assert_same(first, second)
        assert_same(first, third)


def test_dense_ground_truth_covers_every_pixel_and_agrees_with_the_lidar(frames):
    for sparse, dense in zip(frames, SyntheticSource(with_(dense=True)), strict=True):
        np.testing.assert_array_equal(sparse.image, dense.image)
        assert np.isfinite(dense.ground_truth_m).all()
        known = np.isfinite(sparse.ground_truth_m)
        relative = (
            np.abs(sparse.ground_truth_m - dense.ground_truth_m)[known]
            / dense.ground_truth_m[known]
        )
        assert known.sum() > 300
        assert np.median(relative) < 0.015


def test_the_bag_holds_the_same_frames_as_the_source(frames, tmp_path):
    synthesize(tmp_path / "bag", CONFIG, progress=False)
    from_bag = list(BagSource(tmp_path / "bag", SourceConfig()))
    assert len(from_bag) == len(frames)
    for read, rendered in zip(from_bag, frames, strict=True):
        assert isinstance(read, Frame), read
        assert read.stamp_ns == rendered.stamp_ns
        np.testing.assert_array_equal(read.image, rendered.image)
        np.testing.assert_allclose(read.camera.intrinsics, rendered.camera.intrinsics)
        differs = ~np.isclose(
            read.ground_truth_m, rendered.ground_truth_m, atol=1e-5, equal_nan=True
        )
        # /tf_static holds quaternions: a point on the border of two pixels may change sides
        assert differs.mean() < 1e-3


def test_a_dense_bag_has_the_exact_depth_as_an_image(tmp_path):
    from rosbags.highlevel import AnyReader

    synthesize(tmp_path / "bag", with_(worlds=1, frames=1, dense=True), progress=False)
    with AnyReader([tmp_path / "bag"]) as reader:
        (connection,) = (each for each in reader.connections if each.topic == "/camera/depth")
        (message,) = (
            reader.deserialize(raw, connection.msgtype)
            for _, _, raw in reader.messages([connection])
        )
    (frame,) = SyntheticSource(with_(worlds=1, frames=1, dense=True))
    assert message.encoding == "32FC1"
    np.testing.assert_array_equal(
        message.data.view(np.float32).reshape(60, 80), frame.ground_truth_m
    )


def sha256(array: np.ndarray) -> str:
    """Return the SHA-256 of an array's bytes: its first 16 hexadecimal digits."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def test_two_camera_frames_and_a_lidar_turn_have_the_recorded_bytes() -> None:
    digests = {}
    for number, frame in ((0, 0), (5, 7)):
        world = World(PINNED, number)
        view = world.view(frame)
        digests[f"world {number} image"] = sha256(world.photograph(frame, view))
        # its bits differ between processors
        found = view.depth_m.mean(dtype=float), view.depth_m.std(dtype=float)
        assert found == pytest.approx(DEPTH_MEAN_AND_DEVIATION_M[number], rel=1e-6)
    # whole millimetres: its trigonometry differs in the last bit between processors
    points_mm = np.rint(1000 * world.cloud(7)[:, :3]).astype(np.int32)
    digests["world 5 cloud"] = sha256(points_mm)
    assert digests == SHA256


@pytest.mark.parametrize("scenes", ["varied", "no.such_module", "json", ""])
def test_worlds_of_an_unknown_module_are_refused_before_the_first_frame(scenes):
    with pytest.raises(ConfigError, match=f"scenes is {scenes!r}.*expected rooms"):
        open_source(f"synthetic:scenes={scenes}", SourceConfig())


def test_the_bags_odometry_measures_what_the_exact_poses_do(tmp_path):
    """Two worlds: the second begins at another place, as after a gap in a recording."""
    config = with_(frames=6, rate=5.0, width=160, height=120)
    synthesize(tmp_path / "bag", config, progress=False)
    bag = BagSource(tmp_path / "bag", SourceConfig(odometry_frame=ODOMETRY_FRAME))
    rendered = [frame.measurements for frame in with_motion(SyntheticSource(config))]
    recorded = [frame.measurements for frame in with_motion(bag)]
    counts = list(map(len, rendered))
    assert counts[0] == counts[6] == 0, "each world is tracked anew"
    assert sum(counts) > 200
    for of_source, of_bag in zip(rendered, recorded, strict=True):
        assert_array_equal(of_bag.rows, of_source.rows)
        assert_array_equal(of_bag.columns, of_source.columns)
        assert_allclose(of_bag.depth_m, of_source.depth_m, rtol=1e-6)
