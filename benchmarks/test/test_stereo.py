# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The benchmark of stereo: its matcher on known pairs, its reflections, its shuffled truth."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from benchmarks.stereo import Drive, GlossyRenderer, Pair, matched, shuffled
from synthetic import furnishing, sensors
from synthetic.render import Renderer

SHIFT_PX = 20
SCALE = 40.0  # baseline times focal length: 2 m


@pytest.fixture
def pair():
    """A wall with texture, 2 m ahead, with a bare patch in it."""
    left = np.random.default_rng(0).integers(40, 216, (120, 240)).astype(np.uint8)
    left[30:90, 120:200] = 128
    right = np.roll(left, -SHIFT_PX, axis=1)
    truth_m = np.full(left.shape, SCALE / SHIFT_PX, np.float32)
    return matched(Drive(disparities=64), left, right, SCALE, truth_m)


def test_a_textured_wall_has_its_depth_and_a_bare_patch_is_less_certain(pair):
    textured = np.s_[10:25, 90:220]
    np.testing.assert_allclose(pair.depth_m[textured], pair.truth_m[textured], rtol=0.01)
    for name in ("texture", "correlation"):
        uncertainty = pair.uncertainties[name]
        assert uncertainty[50:70, 140:180].mean() > 2 * uncertainty[textured].mean() + 0.1, name
    assert pair.uncertainties["left-right difference"][textured].max() < 0.5


def test_only_glossy_solids_are_brighter():
    scene = furnishing.build(7, 0)
    rig = sensors.Rig.usual(80, 60, np.random.default_rng(0))
    pose = sensors.base_to_world(*scene.drive.pose(0.0)) @ rig.camera_to_base
    matt = sensors.CameraView(Renderer(scene), rig.camera, pose)
    gloss = np.array([0.3 * (solid.label == "floor") for solid in scene.solids], np.float32)
    glossy = sensors.CameraView(GlossyRenderer(scene, gloss, 0.2), rig.camera, pose)
    on_floor = gloss[matt.solid] > 0
    inside = cv2.erode(matt.solid, np.ones((3, 3))) == cv2.dilate(matt.solid, np.ones((3, 3)))
    added = (glossy.radiance - matt.radiance).mean(axis=2)
    assert on_floor[inside].any()
    assert (added[on_floor & inside] > 0).mean() > 0.9
    assert not added[~on_floor & inside].any()


@pytest.mark.parametrize("within_frames", [True, False])
def test_shuffling_keeps_the_errors_and_loses_their_places(within_frames):
    random = np.random.default_rng(1)
    depths = random.uniform(1, 5, (2, 30, 40)).astype(np.float32)
    depths[0, 0, 0] = np.nan
    spreads = (0.01, 0.3)
    truths = [
        (depth * np.exp(random.normal(0, spread, depth.shape))).astype(np.float32)
        for depth, spread in zip(depths, spreads, strict=True)
    ]
    taught = [Pair(depth, truth) for depth, truth in zip(depths, truths, strict=True)]
    made = shuffled(taught, within_frames)

    def errors(pairs):
        return [np.log(pair.truth_m / pair.depth_m)[np.isfinite(pair.depth_m)] for pair in pairs]

    before, after = errors(taught), errors(made)
    same = np.sort(np.concatenate(before)), np.sort(np.concatenate(after))
    np.testing.assert_allclose(*same, atol=1e-5)
    assert abs(np.corrcoef(before[1], after[1])[0, 1]) < 0.1
    assert (np.std(after[0]) < 0.02) == within_frames
