# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""ROS 1's and ROS 2's camera info messages."""

from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from test.conftest import refused
from test.frames.messages.conftest import decoded_or_refused
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import image_coordinates
from uncertainty_depth.frames.messages.camera_info import (
    camera_from_info,
    fields_from_camera,
    oddities,
    rectifier_from_info,
)

K = [500.0, 0, 320, 0, 510, 240, 0, 0, 1]
P = [400.0, 0, 310, -40, 0, 410, 230, 0, 0, 0, 1, 0]


def whole(k=K, p=P, **more):
    """A camera info as ROS has it."""
    default = {"width": 640, "height": 480, "d": np.zeros(5), "r": np.eye(3).ravel()}
    default["distortion_model"] = "plumb_bob"
    return SimpleNamespace(k=k, p=p, **(default | more))


def test_k_is_of_the_raw_image_and_p_of_the_rectified():
    rectifier = rectifier_from_info(whole())
    assert (rectifier.raw.width, rectifier.raw.height) == (640, 480)
    assert_array_equal(rectifier.raw.intrinsics, np.reshape(K, (3, 3)))
    assert_array_equal(rectifier.rectified.intrinsics, [[400, 0, 310], [0, 410, 230], [0, 0, 1]])
    assert not rectifier.is_rectified


@pytest.mark.parametrize("missing", ["k", "p"])
def test_what_is_zero_is_taken_from_the_other_and_ros_1_spells_it_with_capitals(missing):
    p = np.insert(np.reshape(K, (3, 3)), 3, 0, axis=1).ravel()
    message = whole(p=p) if missing == "k" else whole()
    setattr(message, missing, np.zeros(9 if missing == "k" else 12))
    ros1 = SimpleNamespace(
        K=message.k, P=message.p, R=message.r, D=message.d, width=640, height=480
    )
    for each in (message, ros1):
        rectifier = rectifier_from_info(each)
        assert rectifier.is_rectified
        assert_array_equal(camera_from_info(each).intrinsics, np.reshape(K, (3, 3)))


@pytest.mark.parametrize(
    "change",
    [
        {"d": [0.0, 0, 0, 1e-3, 0]},
        {"r": cv2.Rodrigues(np.array([0.0, 1e-3, 0]))[0].ravel()},
        {"k": [400.5, 0, 310, 0, 410, 230, 0, 0, 1]},
    ],
)
def test_an_image_is_rectified_where_d_is_zero_r_no_rotation_and_k_the_left_of_p(change):
    k = [400.0, 0, 310, 0, 410, 230, 0, 0, 1]
    roi = SimpleNamespace(x_offset=100, y_offset=50, width=200, height=120)
    for region in ({}, {"roi": roi, "binning_x": 2, "binning_y": 2}):
        assert rectifier_from_info(whole(k, **region)).is_rectified
        assert not rectifier_from_info(whole(**({"k": k} | change | region))).is_rectified


def test_the_fourth_column_of_p_moves_points_as_image_geometry_moves_them():
    """A stereo pair's right camera, fx 700 px and baseline 0.12 m: 16.8 px at 5 m."""
    k = [700.0, 0, 320, 0, 700, 240, 0, 0, 1]
    p = [700.0, 0, 320, -84, 0, 700, 240, 7, 0, 0, 1, 0]
    point = np.array([[0.5, -0.25, 5.0]])
    right = camera_from_info(whole(k, p))
    left = camera_from_info(whole(k, [700.0, 0, 320, 0, 0, 700, 240, 0, 0, 0, 1, 0]))
    moved, fixed = (
        camera.pixels(point + camera.frame_to_camera[:3, 3]) for camera in (right, left)
    )
    assert_allclose(fixed, [[0.5 / 5 * 700 + 320, -0.25 / 5 * 700 + 240]])
    assert_allclose(moved - fixed, [[-16.8, 1.4]])
    columns, rows, depth = image_coordinates(point, np.eye(4), right)
    assert (columns.tolist(), rows.tolist(), depth.tolist()) == ([373], [206], [5.0])
    assert camera_from_info(whole(k, p)).frame_to_camera[0, 3] == -0.12


def test_a_region_of_interest_is_cut_out_and_then_binned_without_pixels_that_fill_no_bin():
    roi = SimpleNamespace(x_offset=100, y_offset=50, width=200, height=120)
    camera = rectifier_from_info(whole(roi=roi)).rectified
    assert (camera.width, camera.height) == (200, 120)
    assert_array_equal(camera.intrinsics, [[400, 0, 210], [0, 410, 180], [0, 0, 1]])
    none = SimpleNamespace(x_offset=0, y_offset=0, width=0, height=0)
    assert rectifier_from_info(whole(roi=none)).rectified.width == 640
    odd = SimpleNamespace(x_offset=100, y_offset=50, width=201, height=123)
    for region in (roi, odd):
        binned = rectifier_from_info(whole(roi=region, binning_x=2, binning_y=4)).rectified
        assert (binned.width, binned.height) == (100, 30)
        # A binned pixel has the centre that its pixels' rectangle has.
        assert_allclose(binned.intrinsics, [[200, 0, 104.75], [0, 102.5, 44.625], [0, 0, 1]])


MODELS = {
    "plumb_bob": [-0.28, 0.07, 0.001, -0.002, 0.003],
    "rational_polynomial": [0.4, 0.05, 0.001, -0.0005, 0.002, 0.7, 0.12, 0.01],
    "equidistant": [-0.02, 0.004, -0.001, 0.0002],
}
TURN = cv2.Rodrigues(np.array([0.01, -0.02, 0.005]))[0]


@pytest.mark.parametrize("model", MODELS)
def test_a_camera_survives_its_way_through_a_message(model):
    roi = SimpleNamespace(x_offset=100, y_offset=50, width=200, height=120)
    for more in ({}, {"roi": roi, "binning_x": 2, "binning_y": 2}):
        message = whole(d=MODELS[model], r=TURN.ravel(), distortion_model=model, **more)
        rectifier = rectifier_from_info(message)
        for camera in (rectifier.raw, rectifier.rectified):
            again = camera_from_info(SimpleNamespace(**fields_from_camera(camera)._asdict()))
            assert (again.width, again.height) == (camera.width, camera.height)
            assert_array_equal(again.intrinsics, camera.intrinsics)
            assert_array_equal(again.frame_to_camera, camera.frame_to_camera)
            points = np.random.default_rng(0).normal([0, 0, 3], 0.5, (50, 3))
            assert_array_equal(again.pixels(points), camera.pixels(points))


def test_the_third_number_of_ps_last_column_moves_nothing_and_is_said():
    """An Astra's driver writes .889 there; image_geometry ignores it."""
    clean = [700.0, 0, 320, -35, 0, 700, 240, 0, 0, 0, 1, 0]
    odd = [*clean[:11], 0.88855]
    k = [700.0, 0, 320, 0, 700, 240, 0, 0, 1]
    camera, expected = (camera_from_info(whole(k, p)) for p in (odd, clean))
    assert_array_equal(camera.frame_to_camera, expected.frame_to_camera)
    assert oddities(whole(k, clean)) == []
    (sentence,) = oddities(whole(k, odd))
    assert "0.88855 in P[2,3], which is ignored" in sentence


@pytest.mark.parametrize("offset", [(-35_000.0, 0), (0, -35_000.0)])
def test_an_offset_in_millimetres_is_refused(offset):
    """A 50 mm baseline; in metres it would be 50 m."""
    p = [700.0, 0, 320, offset[0], 0, 700, 240, offset[1], 0, 0, 1, 0]
    with refused("camera_info_wrong_offset", r"50 m beside its frame; .* not millimetres"):
        rectifier_from_info(whole([700.0, 0, 320, 0, 700, 240, 0, 0, 1], p))


IDENTITY = [1.0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]


def test_identity_is_no_calibration():
    rectifier = rectifier_from_info(whole(p=IDENTITY))
    assert rectifier.is_rectified
    assert_array_equal(rectifier.rectified.intrinsics, np.reshape(K, (3, 3)))
    assert oddities(whole(p=IDENTITY)) == ["has the identity as P: it is taken from K"]
    of_p = rectifier_from_info(whole(k=np.eye(3).ravel()))
    assert_array_equal(of_p.raw.intrinsics, np.reshape(P, (3, 4))[:, :3])
    with pytest.raises(MessageError, match="is the camera calibrated"):
        rectifier_from_info(whole(k=np.eye(3).ravel(), p=IDENTITY))


@pytest.mark.parametrize(
    ("across", "down", "is_said"), [(0, 0, True), (320, 480, True), (-3, 240, True), (1, 1, False)]
)
def test_a_principal_point_outside_the_image_is_said(across, down, is_said):
    """A matrix by columns has (0, 0)."""
    message = whole([500.0, 0, across, 0, 500, down, 0, 0, 1], np.zeros(12))
    message.width, message.height = 640, 480
    assert ["principal point at" in one for one in oddities(message)] == [True] * is_said


@pytest.mark.parametrize(("scale", "is_said"), [(2, True), (0.5, True), (1.1, False), (1, False)])
def test_a_p_of_another_resolution_than_k_is_said(scale, is_said):
    k = np.array([500.0, 0, 320, 0, 500, 240, 0, 0, 1])
    p = np.insert(np.reshape(k, (3, 3)) * [[scale], [scale], [1]], 3, 0, axis=1).ravel()
    sentences = oddities(whole(k, p))
    assert len(sentences) == is_said
    assert all(f"a P of {scale:.2g} times K" in sentence for sentence in sentences)


@pytest.mark.parametrize(
    ("model", "count", "name"),
    [
        ("equidistant", 4, "equidistant"),
        ("equidistant", 4, "fisheye"),
        ("rational_polynomial", 8, "rational_polynomial"),
        ("plumb_bob", 5, "plumb_bob"),
        ("plumb_bob", 5, "Plumb Bob"),
        ("plumb_bob", 5, "RADTAN"),
        ("rational_polynomial", 8, "rational-polynomial"),
        ("equidistant", 4, "Kannala Brandt4"),
    ],
)
@pytest.mark.parametrize("zeros", [0, 1, 2, 6])
def test_zeros_beyond_the_coefficients_that_a_model_has_are_none(model, count, name, zeros):
    """A T265 has five numbers, OpenCV's tilted model and DepthAI fourteen."""
    d = [*MODELS[model], *[0.0] * zeros]
    distortion = rectifier_from_info(whole(d=d, distortion_model=name)).raw.distortion
    assert distortion.model == model
    assert_array_equal(distortion.coefficients[:count], MODELS[model])
    expected = rectifier_from_info(whole(d=MODELS[model], distortion_model=model)).raw.distortion
    rays = np.random.default_rng(0).normal(0, 0.3, (20, 2))
    assert_array_equal(distortion.distorted(rays), expected.distorted(rays))


def test_a_tilted_sensor_is_refused():
    d = [*MODELS["rational_polynomial"], 0, 0, 0, 0, 0.01, 0]
    with refused("camera_info_unknown_distortion", r"with 14 coefficients; expected .* no tilt"):
        rectifier_from_info(whole(d=d, distortion_model="rational_polynomial"))


REFUSED = [
    ("camera_info_zero", {"k": [0.0] * 9, "p": [0.0] * 12}),
    ("camera_info_zero", {"k": [1, 2, 0, 2, 4, 0, 0, 0, 1]}),
    ("camera_info_not_finite", {"p": [np.nan] * 12}),
    ("camera_info_not_finite", {"d": [0.1, np.inf, 0, 0]}),
    ("camera_info_not_finite", {"d": [1e300, 0, 0, 0]}),
    ("camera_info_no_rotation", {"r": np.full(9, 0.5)}),
    ("camera_info_unknown_distortion", {"d": [0.1, 0, 0, 0], "distortion_model": "omni"}),
    ("camera_info_unknown_distortion", {"d": [0.1, 0]}),
    ("camera_info_zero_size", {"width": 0}),
    ("camera_info_zero_size", {"height": 0}),
    ("camera_info_undecodable", {"k": [400.0] * 3}),
    ("camera_info_undecodable", {"k": [400.0] * 10}),
    ("camera_info_undecodable", {"k": "text"}),
    ("camera_info_undecodable", {"k": [[1.0], [2.0, 3.0]]}),
]


@pytest.mark.parametrize(("reason", "fields"), REFUSED)
def test_a_camera_info_that_calibrates_no_camera_is_refused(reason, fields):
    with refused(reason):
        camera_from_info(whole(**fields))


NUMBERS = st.floats() | st.integers(-5, 5) | st.sampled_from([1e308, 5e-324, 400.0])
SIZES = st.integers(0, 2**32 - 1) | st.integers(0, 2000)
REGIONS = st.builds(SimpleNamespace, x_offset=SIZES, y_offset=SIZES, width=SIZES, height=SIZES)


def lists(*counts):
    return st.sampled_from(counts).flatmap(lambda n: st.lists(NUMBERS, min_size=n, max_size=n))


@given(
    message=st.builds(
        SimpleNamespace,
        k=lists(9, 0, 3) | st.just(K),
        p=lists(12, 0) | st.just(P),
        r=lists(9, 0) | st.just(np.eye(3).ravel()),
        d=lists(0, 4, 5, 8, 14),
        width=SIZES,
        height=SIZES,
        binning_x=SIZES,
        binning_y=SIZES,
        distortion_model=st.sampled_from([*MODELS, "", "x"]),
        roi=REGIONS,
    )
)
def test_any_camera_info_is_a_finite_camera_or_a_message_error(message):
    rectifier = decoded_or_refused(rectifier_from_info, message)
    for camera in (rectifier.raw, rectifier.rectified) if rectifier else ():
        assert np.isfinite(camera.intrinsics).all()
        assert np.isfinite(camera.frame_to_camera).all()
        assert (camera.intrinsics[[0, 1], [0, 1]] > 0).all()
