# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Point clouds in every layout against the numbers they were made from."""

from array import array
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from test.conftest import refused
from test.frames.messages.conftest import cloud_message, decoded_or_refused
from uncertainty_depth.frames.messages.clouds import cloud_points, lidar_points

PREDICTED = [
    SimpleNamespace(name=name, offset=0, datatype=7, count=1)
    for name in ("uncertainty", "confidence_ratio")
]


def points_of(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 20, (count, 3)).astype(np.float32)


LAYOUTS = {
    "packed": {"point_step": 12},
    "with intensity": {},
    "shuffled": {"offsets": (20, 4, 12), "point_step": 32},
    "unaligned": {"offsets": (1, 6, 11), "point_step": 19},
    "float64": {"offsets": (0, 8, 16), "formats": ("f8", "f8", "f8"), "point_step": 26},
    "mixed": {"offsets": (8, 0, 16), "formats": ("f4", "f8", "f4"), "point_step": 20},
    "organised": {"height": 4},
    "padded rows": {"height": 4, "row_padding": 7},
    "rclpy": {"kind": lambda data: array("B", data)},
    "rosbags": {"kind": lambda data: np.frombuffer(data, np.uint8)},
}


@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_every_layout_gives_the_points_in_order(layout, big_endian):
    points = points_of(24)
    found = cloud_points(cloud_message(points, big_endian=big_endian, **layout))
    assert found.dtype == np.float32
    assert_array_equal(found, points)


def test_points_that_are_not_finite_and_beams_without_return_are_left_out():
    points = points_of(9)
    points[1, 0] = np.nan
    points[2, 1] = np.inf
    points[3, 2] = -np.inf
    points[4, 2] = np.nan
    points[5] = 0
    points[6] = -0.0
    points[7] = [0, 0, 1e-3]
    assert_array_equal(cloud_points(cloud_message(points)), points[[0, 7, 8]])
    for none in (np.empty((0, 3)), np.full((5, 3), np.nan), np.zeros((8, 3))):
        assert cloud_points(cloud_message(none)).shape == (0, 3)


@pytest.mark.parametrize("row_step", [0, 16, 10_000])
@pytest.mark.parametrize("height", [1, 4])
def test_a_row_step_that_a_filter_left_behind_does_not_matter_without_padding(row_step, height):
    points = points_of(24)
    cloud = cloud_message(points, height=height)
    cloud.row_step = row_step
    assert_array_equal(cloud_points(cloud), points)


def test_a_wrong_row_step_of_padded_rows_is_refused():
    cloud = cloud_message(points_of(24), height=4, row_padding=7)
    cloud.row_step = 0
    with refused("cloud_wrong_size", "row_step 0 and point_step 16; expected height 4 times"):
        cloud_points(cloud)


@pytest.mark.parametrize("height", [1, 4])
def test_a_point_step_that_is_not_that_of_the_data_is_refused(height):
    """A filter that drops fields leaves point_step behind, or the data."""
    for claimed in (12, 20, 32):
        cloud = cloud_message(points_of(24), height=height)
        cloud.point_step = claimed
        with refused("cloud_wrong_size", f"point_step {claimed}"):
            cloud_points(cloud)


def test_room_behind_the_points_is_no_contradiction():
    cloud = cloud_message(points_of(24))
    cloud.width, cloud.row_step = 20, 20 * 16
    assert_array_equal(cloud_points(cloud), points_of(24)[:20])


CONTRADICTIONS = [
    (
        "cloud_without_xyz",
        "fields ring, x, y, z, x; expected each name once",
        lambda cloud: cloud.fields.append(cloud.fields[1]),
    ),
    (
        "cloud_wrong_size",
        "point_step 16; expected point_step at least 20 for 'intensity'",
        lambda cloud: cloud.fields.append(
            SimpleNamespace(name="intensity", offset=16, datatype=7, count=1)
        ),
    ),
    ("cloud_without_xyz", "no field 'z', only ring, x, y", lambda cloud: cloud.fields.pop()),
    ("cloud_without_xyz", "no field 'x', only none", lambda cloud: cloud.fields.clear()),
    ("cloud_wrong_field_type", "'x' of datatype 4; expected 7", {"datatype": 4}),
    (
        "cloud_wrong_size",
        "point_step 16; expected point_step at least 2147483652",
        {"offset": 2**31},
    ),
    ("cloud_wrong_size", "point_step 8; expected point_step at least 12", {"point_step": 8}),
    ("cloud_wrong_size", "point_step 0", {"point_step": 0}),
    (
        "cloud_wrong_size",
        "96 bytes, row_step 96 and point_step 16; expected height 2 times width 6",
        {"height": 2},
    ),
    ("cloud_wrong_size", "has 0 bytes", {"data": b""}),
    ("cloud_wrong_size", "has 95 bytes", {"data": bytes(95)}),
]


@pytest.mark.parametrize(("reason", "sentence", "change"), CONTRADICTIONS)
def test_clouds_that_contradict_themselves_are_refused(reason, sentence, change):
    cloud = cloud_message(points_of(6))
    if callable(change):
        change(cloud)
    else:
        ((name, value),) = change.items()
        setattr(cloud if hasattr(cloud, name) else cloud.fields[1], name, value)
    with refused(reason, sentence):
        cloud_points(cloud)


@given(
    sizes=st.fixed_dictionaries(
        {name: st.integers(0, 40) for name in ("height", "width", "point_step", "row_step")}
    ),
    offsets=st.tuples(*[st.one_of(st.integers(0, 60), st.integers(0, 2**32 - 1))] * 3),
    data=st.binary(max_size=400),
)
def test_whatever_a_message_claims_it_is_read_or_refused(sizes, offsets, data):
    cloud = cloud_message(points_of(1))
    for field, offset in zip(cloud.fields[1:], offsets, strict=True):
        field.offset = offset
    claim = SimpleNamespace(**{**vars(cloud), **sizes, "data": data})
    found = decoded_or_refused(cloud_points, claim)
    assert found is None or len(found) <= sizes["height"] * sizes["width"]


def test_predicted_points_are_no_lidars():
    cloud = cloud_message(points_of(4))
    assert_array_equal(lidar_points(cloud), cloud_points(cloud))
    cloud.fields.extend(PREDICTED)
    assert len(cloud_points(cloud)) == 4
    with refused("cloud_of_prediction", "it is no ground truth"):
        lidar_points(cloud)
