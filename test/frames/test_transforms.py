# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Chains of fixed transforms, either way."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from test.frames.conftest import transform_message
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.core.geometry.transforms import parameters_from, transform_from
from uncertainty_depth.frames.messages.decoding import SECOND_NS
from uncertainty_depth.frames.transforms import TransformTree


def random_pose(rng: np.random.Generator) -> np.ndarray:
    return transform_from(*rng.normal(0, 2, 3), *rng.normal(0, 1, 4))


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), frames=st.integers(2, 8))
def test_any_two_frames_of_a_random_tree_are_related_as_their_poses_say(seed, frames):
    rng = np.random.default_rng(seed)
    to_world = [random_pose(rng) for _ in range(frames)]
    tree = TransformTree()
    names = rng.permutation(frames)  # so that any of them may be the root
    for place in range(1, frames):
        parent, child = names[int(rng.integers(place))], names[place]
        tree.add(f"f{parent}", f"f{child}", np.linalg.inv(to_world[parent]) @ to_world[child])
    target, source = rng.integers(frames, size=2)
    expected = np.linalg.inv(to_world[target]) @ to_world[source]
    assert_allclose(tree.lookup(f"f{target}", f"/f{source}"), expected, atol=1e-9)


SHIFT = transform_from(1, 0, 0, 0, 0, 0, 1)


def test_a_frame_is_where_it_was_last_said_to_be_as_in_tf2():
    tree = TransformTree()
    tree.add("base", "camera", np.eye(4))
    tree.add("base", "lidar", transform_from(9, 9, 9, 0, 0, 0, 1))
    tree.add("base", "mast", SHIFT)
    assert tree.notes() == []
    tree.add("mast", "/lidar", SHIFT)
    assert_allclose(tree.lookup("camera", "lidar"), SHIFT @ SHIFT)
    (note,) = tree.notes()
    assert "'lidar' in 'base' and in 'mast': the last one said counts" in note
    tree.add("calibration", "lidar", SHIFT)
    assert not tree.is_connected("camera", "lidar")
    with pytest.raises(SourceError, match="no transform connects"):
        tree.lookup("camera", "lidar")


def test_a_frame_that_is_said_to_be_fixed_does_not_move():
    tree = TransformTree()
    tree.add("base", "lidar", SHIFT)
    tree.add_moving(SECOND_NS, "base", "lidar", SHIFT @ SHIFT)
    for time_ns in (None, SECOND_NS, 9 * SECOND_NS):
        assert_allclose(tree.lookup("base", "lidar", time_ns), SHIFT)


def test_a_moving_frame_changes_its_parent_at_the_time_that_is_said():
    """Between two parents it stays where it was in the first; tf2 does the same."""
    tree = TransformTree()
    tree.add("room", "table", transform_from(0, 5, 0, 0, 0, 0, 1))
    tree.add("room", "gripper", transform_from(0, 0, 5, 0, 0, 0, 1))
    for seconds, parent, x in ((0, "gripper", 0), (1, "gripper", 1), (2, "table", 7)):
        pose = transform_from(x, 0, 0, 0, 0, 0, 1)
        tree.add_moving(seconds * SECOND_NS, parent, "cup", pose)
    places = {0.5: (0.5, 0, 5), 1: (1, 0, 5), 1.5: (1, 0, 5), 2: (7, 5, 0)}
    for seconds, place in places.items():
        found = tree.lookup("room", "cup", int(seconds * SECOND_NS))
        assert_allclose(found[:3, 3], place, atol=1e-12)
    assert_allclose(tree.lookup("room", "cup")[:3, 3], (7, 5, 0))
    assert len(tree.notes()) == 1


def test_a_loop_of_parents_is_one_sentence():
    tree = TransformTree()
    for parent, child in (("a", "b"), ("b", "c"), ("c", "a")):
        tree.add(parent, child, SHIFT)
    assert_allclose(tree.lookup("a", "b"), SHIFT)
    with pytest.raises(SourceError, match="tf places 'a', 'c', 'b' in a loop"):
        tree.lookup("a", "elsewhere")


def stamped(parent, child, parameters):
    message = transform_message(0, parent, child, parameters[:3], parameters[3:])
    return message.transforms[0]


def message_of(*transforms):
    return SimpleNamespace(transforms=transforms)


@pytest.mark.parametrize(
    ("parent", "child"), [("lidar", "lidar"), ("/lidar", "lidar"), ("", "lidar"), ("lidar", "")]
)
def test_a_transform_that_does_not_name_two_frames_is_left_out_as_in_tf2(parent, child):
    tree = TransformTree()
    sound = stamped("base", "lidar", (1, 0, 0, 0, 0, 0, 1))
    odd = stamped(parent, child, (2, 0, 0, 0, 0, 0, 1))
    (sentence,) = tree.add_message(message_of(sound, odd))
    assert sentence.endswith("expected the names of two frames")
    assert_allclose(tree.lookup("base", "lidar"), SHIFT)
    assert tree.frames == ["base", "lidar"]


def test_a_fixed_frame_that_is_said_to_be_elsewhere_is_noted():
    tree = TransformTree()
    for x in (1, 1 + 1e-9):  # rounding
        tree.add_message(message_of(stamped("base", "lidar", (x, 0, 0, 0, 0, 0, 1))))
    assert tree.notes() == []
    tree.add_message(message_of(stamped("base", "lidar", (2, 0, 0, 0, 0, 0, 1))))
    (note,) = tree.copy().notes()
    assert note == (
        "tf gives 'lidar' several fixed poses in 'base': the last one said counts for all frames"
    )


@pytest.mark.parametrize("is_moving", [False, True])
@pytest.mark.parametrize(("length", "is_said"), [(2, True), (0.5, True), (1.005, False)])
def test_a_quaternion_of_another_length_is_scaled_and_said(length, is_said, is_moving):
    tree = TransformTree()
    turn = np.array([0.5, -0.5, 0.5, 0.5])
    tree.add_message(message_of(stamped("base", "lidar", (1, 2, 3, *length * turn))), is_moving)
    assert_allclose(tree.lookup("base", "lidar"), transform_from(1, 2, 3, *turn), atol=1e-12)
    assert ["of length" in note for note in tree.notes()] == [True] * is_said


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
