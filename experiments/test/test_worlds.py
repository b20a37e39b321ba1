# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Varied worlds: many cameras, near homes and far streets, and the robot's own rooms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.worlds.street import street
from experiments.worlds.varied import FOCAL_LENGTHS
from synthetic.config import SynthesisConfig
from synthetic.render import cast
from synthetic.source import MAX_DEPTH_M, SyntheticSource, World, synthesize
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.geometry.focal_length import relative_focal_length
from uncertainty_depth.core.records import Frame
from uncertainty_depth.stream.opening import open_source, trained_on

WORLDS = 14
CONFIG = SynthesisConfig(
    worlds=WORLDS,
    frames=1,
    seed=5,
    scenes="experiments.worlds.varied",
    dense=True,
    width=64,
    height=48,
)
NEAR = replace(CONFIG, scenes="experiments.worlds.near", worlds=16)


@pytest.fixture(scope="module")
def frames() -> list[Frame]:
    return list(SyntheticSource(CONFIG))


@pytest.fixture(scope="module")
def near() -> list[Frame]:
    return list(SyntheticSource(NEAR))


def test_cameras_and_depths_vary(frames: list[Frame]) -> None:
    focal_lengths = [relative_focal_length(frame.camera) for frame in frames]
    assert max(focal_lengths) > 1.5 * min(focal_lengths)
    low, high = FOCAL_LENGTHS
    assert all(0.95 * low <= value <= 1.05 * high for value in focal_lengths)
    assert len({frame.image.shape for frame in frames}) > 3
    assert max(np.nanmax(frame.ground_truth_m) for frame in frames) <= MAX_DEPTH_M
    medians = [np.nanmedian(frame.ground_truth_m) for frame in frames]
    assert max(medians) > 5 * min(medians)
    for frame in frames:
        assert frame.image.shape[:2] == frame.ground_truth_m.shape
        assert (frame.camera.height, frame.camera.width) == frame.ground_truth_m.shape


@pytest.mark.parametrize(("config", "number"), [(CONFIG, 9), (NEAR, 11)])
def test_worlds_do_not_depend_on_the_frames_read_before(
    config: SynthesisConfig, number: int, frames: list[Frame], near: list[Frame]
) -> None:
    world = World(config, number)
    view = world.view(0)
    read = (near if config is NEAR else frames)[number]
    np.testing.assert_array_equal(world.photograph(0, view), read.image)
    known = np.isfinite(read.ground_truth_m)
    np.testing.assert_array_equal(view.depth_m[known], read.ground_truth_m[known])


def test_the_robots_own_rooms_are_among_them() -> None:
    rooms = SynthesisConfig(frames=1, seed=5, dense=True, width=64, height=48)
    for number in range(WORLDS):
        varied = World(CONFIG, number)
        same = World(rooms, number)
        if len(varied.solids) == len(same.solids):
            image = varied.photograph(0, varied.view(0))
            np.testing.assert_array_equal(image, same.photograph(0, same.view(0)))
            return
    raise AssertionError("no world of the rooms among the varied ones")


def test_the_lidar_agrees_with_the_depth_image() -> None:
    world = World(CONFIG, 9)
    points = world.cloud(0)[:, :3]
    moved = points @ world.lidar_to_camera[:3, :3].T + world.lidar_to_camera[:3, 3]
    pixels = moved @ world.camera.intrinsics.T
    ahead = moved[:, 2] > 0.1
    u, v = np.rint(pixels[ahead, :2] / pixels[ahead, 2:]).astype(int).T
    inside = (u >= 0) & (u < world.camera.width) & (v >= 0) & (v < world.camera.height)
    depth = world.view(0).depth_m[v[inside], u[inside]]
    ratio = moved[ahead, 2][inside] / depth
    assert inside.sum() > 20
    assert np.median(ratio) == pytest.approx(1, abs=0.02)


def test_the_suns_shadows_are_where_its_rays_are_stopped() -> None:
    scene = street(np.random.default_rng(1))
    sun = np.asarray(scene.lamps[0].position, np.float32)
    ground = np.stack(np.meshgrid(np.linspace(0, 30, 40), np.linspace(-8, 8, 30)), axis=-1)
    points = np.concatenate([ground.reshape(-1, 2), np.zeros((1200, 1))], axis=1).T
    eye = np.array([12.0, 0.0, 60.0], np.float32)
    rays = (points - eye[:, None]).astype(np.float32)
    hits = cast(scene, eye, rays)
    offsets = eye[:, None] + hits.t * rays - sun[:, None]
    is_lit = scene.lamps[0].shadows(scene).lit(offsets, hits.solid) > 0.5
    is_reached = cast(scene, sun, offsets).t > 0.999
    assert 0.2 < is_reached.mean() < 0.8
    assert (is_lit == is_reached).mean() > 0.9


def test_a_bag_of_varied_worlds_is_refused(tmp_path) -> None:
    with pytest.raises(ConfigError, match="may each have another camera"):
        synthesize(tmp_path / "bag", CONFIG, progress=False)


def test_a_model_trained_on_varied_worlds_has_seen_rooms_of_the_same_seed() -> None:
    training = {"source": "synthetic:worlds=4,frames=1,seed=5,scenes=experiments.worlds.varied"}
    assert trained_on("model", training, ["synthetic:worlds=4,frames=1,seed=5"])
    assert not trained_on("model", training, ["synthetic:worlds=4,frames=1,seed=6"])
    assert trained_on(
        "model", training, ["synthetic:worlds=9,frames=1,seed=5,scenes=experiments.worlds.varied"]
    )
    assert open_source(
        "synthetic:scenes=experiments.worlds.varied,worlds=1", SourceConfig()
    ).name.endswith("worlds.varied")


def test_near_worlds_are_table_tops_and_what_low_robots_see(near: list[Frame]) -> None:
    """In a table-top's middle lies the table, within the reach of an arm or a hand."""
    middles = np.array(
        [frame.ground_truth_m[frame.camera.height // 2, frame.camera.width // 2] for frame in near]
    )
    assert 0.4 < np.mean(middles < 1.65) < 0.9
    assert middles.min() < 0.6
    assert middles.max() > 2.5
    lenses = [relative_focal_length(frame.camera) for frame in near]
    assert max(lenses) > 1.5 * min(lenses)
