# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Chains of fixed transforms, either way."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from test.frames.conftest import transform_message
from uncertainty_depth.core.geometry.transforms import parameters_from, transform_from
from uncertainty_depth.frames.transforms import TransformTree


def random_pose(rng: np.random.Generator) -> np.ndarray:
    return transform_from(*rng.normal(0, 2, 3), *rng.normal(0, 1, 4))


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), frames=st.integers(2, 8))
def test_any_two_frames_of_a_random_tree_are_related_as_their_poses_say(seed, frames):
    rng = np.random.default_rng(seed)
    to_world = [random_pose(rng) for _ in range(frames)]
    tree = TransformTree()
    for child in range(1, frames):
        parent = int(rng.integers(child))
        pair = (parent, child) if rng.random() < 0.5 else (child, parent)
        tree.add(
            f"f{pair[0]}", f"f{pair[1]}", np.linalg.inv(to_world[pair[0]]) @ to_world[pair[1]]
        )
    target, source = rng.integers(frames, size=2)
    expected = np.linalg.inv(to_world[target]) @ to_world[source]
    assert_allclose(tree.lookup(f"f{target}", f"/f{source}"), expected, atol=1e-9)


def test_a_frame_with_two_parents_is_reached_from_either():
    shift = transform_from(1, 0, 0, 0, 0, 0, 1)
    tree = TransformTree()
    tree.add("mast", "lidar", shift)
    tree.add("calibration", "lidar", shift)
    tree.add("calibration", "camera", shift)
    assert_allclose(tree.lookup("camera", "lidar"), np.eye(4), atol=1e-12)
    assert_allclose(tree.lookup("mast", "camera"), shift, atol=1e-12)


def stamped(parent, child, parameters):
    message = transform_message(0, parent, child, parameters[:3], parameters[3:])
    return message.transforms[0]


def message_of(*transforms):
    return SimpleNamespace(transforms=transforms)


def test_messages_are_poses_of_the_child_in_the_parent_and_later_ones_replace_earlier():
    pose = random_pose(np.random.default_rng(3))
    tree = TransformTree()
    tree.add_message(message_of(stamped("/base", "camera", (9, 9, 9, 0, 0, 0, 1))))
    tree.add_message(
        message_of(
            stamped("base", "/camera", parameters_from(pose)),
            stamped("base", "lidar", (1, 0, 0, 0, 0, 0, 1)),
        )
    )
    assert tree.frames == ["base", "camera", "lidar"]
    assert_allclose(tree.lookup("base", "camera"), pose, atol=1e-12)


@pytest.mark.parametrize(
    "parameters",
    [
        (0,) * 7,
        (0, 0, 0, 1e200, 1e200, 1e200, 1e200),
        (np.nan, 0, 0, 0, 0, 0, 1),
        (0,) * 6 + (1e-9,),
    ],
    ids=["zero", "overflow", "nan", "tiny"],
)
def test_an_invalid_transform_is_reported_and_the_others_are_used(parameters):
    tree = TransformTree()
    sound = stamped("base", "lidar", (1, 0, 0, 0, 0, 0, 1))
    (sentence,) = tree.add_message(message_of(stamped("a", "b", parameters), sound))
    assert "the transform from 'b' to 'a' is left out" in sentence
    assert tree.frames == ["base", "lidar"]
