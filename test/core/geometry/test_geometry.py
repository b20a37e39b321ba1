# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The camera and the projection against naive loops and closed forms."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from test.conftest import refused
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.geometry.camera import (
    Camera,
    ground_truth_from_cloud,
    image_coordinates,
    project,
)
from uncertainty_depth.core.geometry.transforms import (
    parameters_from,
    transform_from,
    transforms_from_option,
)

CAMERA = Camera(32, 24, np.array([[20.0, 0, 15.5], [0, 22.0, 11.5], [0, 0, 1]]))
seeds = st.integers(0, 2**32 - 1)


def random_transform(rng: np.random.Generator) -> np.ndarray:
    return transform_from(*rng.normal(0, 0.3, 3), *(rng.normal(0, 0.2, 3)), 1.0)


def naive_projection(points, transform, camera):
    depth = np.full((camera.height, camera.width), np.nan, np.float32)
    for point in points.astype(np.float64):
        x, y, z = (transform @ [*point, 1.0])[:3]
        if not z > 1e-3:
            continue
        u, v, _ = camera.intrinsics @ [x / z, y / z, 1.0]
        column = int(np.floor(u + 0.5))
        row = int(np.floor(v + 0.5))
        if 0 <= column < camera.width and 0 <= row < camera.height and not depth[row, column] <= z:
            depth[row, column] = z
    return depth


def naive_occlusion(depth, tolerance, window):
    kept = depth.copy()
    half = window // 2
    for row, column in np.argwhere(np.isfinite(depth)):
        around = depth[
            max(0, row - half) : row + half + 1, max(0, column - half) : column + half + 1
        ]
        if depth[row, column] / np.float32(1 + tolerance) > np.nanmin(around):
            kept[row, column] = np.nan
    return kept


@settings(max_examples=40, deadline=None)
@given(seed=seeds, count=st.integers(0, 300), dtype=st.sampled_from([np.float32, np.float64]))
def test_projection_equals_the_naive_loop(seed, count, dtype):
    rng = np.random.default_rng(seed)
    points = rng.normal([0, 0, 3], [2, 2, 2], (count, 3)).astype(dtype)
    transform = random_transform(rng)
    assert_allclose(
        project(points, transform, CAMERA), naive_projection(points, transform, CAMERA), rtol=1e-6
    )


def test_points_that_are_not_finite_or_behind_are_ignored():
    ignored = [[0, 0, np.nan], [np.nan, 0, 2], [np.inf, 0, 2], [0, 0, -2], [0, 0, 0]]
    points = np.array([[0, 0, 2], *ignored, [0, 0, np.inf]], np.float32)
    depth = project(points, np.eye(4), CAMERA)
    assert_array_equal(depth[np.isfinite(depth)], [2])


@pytest.mark.parametrize(("u", "column"), [(-0.5, 0), (0.49, 0), (0.5, 1), (31.49, 31)])
def test_an_integer_coordinate_is_the_centre_of_a_pixel(u, column):
    point = np.array([[(u - 15.5) / 20.0, 0.0, 1.0]])
    columns, rows, depth = image_coordinates(point, np.eye(4), CAMERA)
    assert (columns.tolist(), rows.tolist(), depth.tolist()) == ([column], [12], [1.0])


@settings(max_examples=40, deadline=None)
@given(seed=seeds, count=st.integers(0, 2000))
def test_ground_truth_is_projection_then_occlusion(seed, count):
    rng = np.random.default_rng(seed)
    points = rng.normal([0, 0, 3], 1, (count, 3)).astype(np.float32)
    projected = naive_projection(points, np.eye(4), CAMERA)
    expected = naive_occlusion(projected, tolerance=0.1, window=7)
    if count > 1000:
        assert np.isnan(expected).sum() > np.isnan(projected).sum()
    assert_allclose(ground_truth_from_cloud(points, np.eye(4), CAMERA), expected, rtol=1e-6)


@given(seed=seeds)
@settings(max_examples=50, deadline=None)
def test_transforms_and_their_parameters_are_inverse(seed):
    rng = np.random.default_rng(seed)
    transform = transform_from(*rng.normal(0, 10, 3), *rng.normal(0, 1, 4))
    assert_allclose(transform[:3, :3] @ transform[:3, :3].T, np.eye(3), atol=1e-12)
    assert_allclose(transform_from(*parameters_from(transform)), transform, atol=1e-12)


def test_a_quarter_turn_about_z_takes_x_to_y():
    turn = transform_from(1, 2, 3, 0, 0, np.sqrt(0.5), np.sqrt(0.5))
    assert_allclose(turn @ [1, 0, 0, 1], [1, 3, 3, 1], atol=1e-12)


@pytest.mark.parametrize(
    "values", [(0, 0, 0, 0, 0, 0, 0), (np.nan, 0, 0, 0, 0, 0, 1), (0, 0, 0, np.inf, 0, 0, 1)]
)
def test_what_is_no_transform_is_refused(values):
    with pytest.raises(ConfigError, match="quaternion"):
        transform_from(*values)


def test_the_option_needs_seven_numbers():
    with pytest.raises(ConfigError, match="has 3 numbers; expected 7"):
        transforms_from_option((1.0, 2.0, 3.0))
    first = (1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0)
    second = (4.0, 5.0, 6.0, 0.0, 0.0, 0.0, 1.0)
    (transform,) = transforms_from_option(first)
    assert_array_equal(transform[:3, 3], [1, 2, 3])
    with pytest.raises(ConfigError, match=r"has 7 numbers; expected 14: .* of each of 2 LiDARs"):
        transforms_from_option(first, lidars=2)
    assert [pose[2, 3] for pose in transforms_from_option(first + second, lidars=2)] == [3, 6]


def test_a_camera_scales_with_its_image_whose_borders_stay_where_they_are():
    scaled = CAMERA.scaled(64, 12)
    assert (scaled.width, scaled.height) == (64, 12)
    assert_array_equal(scaled.intrinsics, [[40, 0, 31.5], [0, 11, 5.5], [0, 0, 1]])
    assert CAMERA.scaled(32, 24) is CAMERA


def test_a_scaled_camera_sees_points_where_opencv_resizes_their_pixels_to():
    point = np.array([[-0.3, 0.15, 1.0]])
    (u, v), *_ = CAMERA.pixels(point)
    rows, columns = np.mgrid[:24, :32]
    spot = np.exp(-((columns - u) ** 2 + (rows - v) ** 2) / 8)
    for size in [(16, 12), (96, 48), (64, 24)]:
        interpolation = cv2.INTER_LINEAR if size[0] > 32 else cv2.INTER_AREA
        resized = cv2.resize(spot, size, interpolation=interpolation)
        rows, columns = np.mgrid[: size[1], : size[0]]
        centre = [np.average(columns, weights=resized), np.average(rows, weights=resized)]
        assert_allclose(CAMERA.scaled(*size).pixels(point)[0], centre, atol=0.02)


def test_a_camera_info_of_another_aspect_than_the_image_is_refused_and_of_another_size_scaled():
    assert CAMERA.for_image(64, 48).width == 64
    assert CAMERA.for_image(11, 8).width == 11  # a third, rounded
    with refused("camera_info_wrong_aspect", "an image is 32x32, its camera info 32x24"):
        CAMERA.for_image(32, 32)
    with refused("camera_info_wrong_size", "expected at most 4 times its width"):
        CAMERA.for_image(4000, 3000)
