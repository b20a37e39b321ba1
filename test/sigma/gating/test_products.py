# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The maps and clouds made from one frame, against each pixel's own ray."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from uncertainty_depth.core.config.nodes import GatingConfig
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.sigma.gating import (
    RADII,
    SigmaProducts,
    confident_pixels,
    lower_bound,
    nearest_bound,
)

WIDTH = 8
HEIGHT = 6
K = np.array([[10.0, 0, 3.5], [0, 12.0, 2.5], [0, 0, 1]])
TURNED = np.array([[0, -1, 0, 0.2], [1, 0, 0, -0.1], [0, 0, 1, 0.05], [0, 0, 0, 1.0]])


@pytest.fixture
def maps():
    random = np.random.default_rng(3)
    depth = random.uniform(1, 9, (HEIGHT, WIDTH)).astype(np.float32)
    sigma = random.uniform(0.05, 1, (HEIGHT, WIDTH)).astype(np.float32)
    depth[0, 0] = sigma[0, 0] = np.nan
    depth[5, 6] = np.inf
    return depth, sigma


def products(maps, config=None, camera=None, image=None):
    camera = camera or Camera(WIDTH, HEIGHT, K)
    return SigmaProducts(*maps, config or GatingConfig(), 1.5, camera, image)


def xyz(points):
    return np.stack([points[axis] for axis in "xyz"], axis=-1).astype(np.float64)


def depth_and_pixels(points, camera):
    in_camera = xyz(points).reshape(-1, 3) @ camera.frame_to_camera[:3, :3].T
    in_camera += camera.frame_to_camera[:3, 3]
    return in_camera[:, 2], camera.pixels(in_camera)


@pytest.mark.parametrize("pose", [np.eye(4), TURNED])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_points_lie_on_the_rays_of_their_pixels(maps, stride, pose):
    camera = Camera(WIDTH, HEIGHT, K, pose)
    points = products(maps, GatingConfig(point_stride=stride), camera).points
    rows, columns = np.mgrid[:HEIGHT:stride, :WIDTH:stride]
    known = np.isfinite(maps[0][::stride, ::stride])
    assert points.shape == rows.shape
    assert_array_equal(np.isfinite(points["x"]), known)
    depth, pixels = depth_and_pixels(points[known], camera)
    assert_allclose(depth, maps[0][::stride, ::stride][known], rtol=1e-5)
    assert_allclose(pixels, np.stack([columns[known], rows[known]], axis=1), atol=1e-4)


@pytest.mark.parametrize("stride", [1, 2])
def test_gated_depth_and_cloud_are_the_trusted_part(maps, stride):
    made = products(maps, GatingConfig(point_stride=stride))
    assert 0 < made.is_confident.sum() < made.is_confident.size
    shown = np.where(made.is_confident, maps[0], np.nan)
    assert_array_equal(made.confident_depth_m, shown)
    trusted = made.is_confident[::stride, ::stride] & np.isfinite(maps[0][::stride, ::stride])
    assert_array_equal(made.confident_points, made.points[trusted])
    assert np.isfinite(xyz(made.confident_points)).all()


@pytest.mark.parametrize("sigmas", [0.0, 1.0, 4.0])
def test_clearing_points_lie_k_sigmas_before_the_depth_of_every_ray(maps, sigmas):
    """So free space is never cleared beyond the gated cloud."""
    camera = Camera(WIDTH, HEIGHT, K)
    bound = maps[0] - np.float32(sigmas) * maps[1]
    is_known = (bound > 0) & np.isfinite(bound)
    assert (bound <= 0).any() == (sigmas == 4)
    config = GatingConfig(clearing_sigmas=sigmas, clearing_margin=0.0)
    points = products(maps, config, camera).clearing_points
    assert (points["clearing_sigmas"] == sigmas).all()
    depth, pixels = depth_and_pixels(points, camera)
    assert_allclose(depth, bound[is_known], rtol=1e-5)
    rows, columns = np.nonzero(is_known)
    assert_allclose(pixels, np.stack([columns, rows], axis=1), atol=1e-4)


def test_clearing_points_lie_at_most_at_a_fraction_of_the_depth(maps):
    camera = Camera(WIDTH, HEIGHT, K)
    config = GatingConfig(clearing_sigmas=1.0, clearing_fraction=0.6, clearing_margin=0.0)
    depth, _ = depth_and_pixels(products(maps, config, camera).clearing_points, camera)
    bound = np.minimum(maps[0] - maps[1], 0.6 * maps[0])
    assert_allclose(depth, bound[(bound > 0) & np.isfinite(bound)], rtol=1e-5)
    assert (bound == maps[0] - maps[1]).any()


@pytest.mark.parametrize("margin_m", [0.0, 0.05, 0.3])
def test_a_clearing_ray_ends_at_the_nearest_bound_that_it_passes(margin_m):
    """Against a loop: each point shortens the rays within its margin, in whole pixels."""
    random = np.random.default_rng(3)
    bound_m = random.uniform(0.2, 6, (24, 30)).astype(np.float32)
    bound_m[random.random(bound_m.shape) < 0.1] = np.nan
    bound_m[5, 7] = 0.0
    focal_length = 37.0
    expected_m = bound_m.copy()
    rows, columns = np.indices(bound_m.shape)
    for row, column in zip(*np.nonzero(np.isfinite(bound_m)), strict=True):
        point_m = bound_m[row, column]
        size = focal_length * margin_m / point_m if point_m else np.inf
        radius = max((one for one in RADII if margin_m and one <= size), default=0)
        near = (abs(rows - row) <= radius) & (abs(columns - column) <= radius)
        expected_m[near] = np.minimum(expected_m[near], point_m)  # NaN stays
    assert_array_equal(nearest_bound(bound_m, margin_m, focal_length), expected_m)


def test_a_margin_reaches_as_far_around_what_is_near():
    """Half a metre before a lens as a 640x480 camera has it, 0.1 m are a sixth of the image."""
    bound_m = np.full((480, 640), 5.0, np.float32)
    bound_m[240, 320] = 0.5
    nearest_m = nearest_bound(bound_m, 0.1, 525.0)
    reach = int((nearest_m[240] == 0.5).sum()) // 2
    assert 0.7 * 105 <= reach <= 105


def test_elevation_mapping_gets_the_variance_of_sigma(maps):
    """Its structured light model: variance = (model deviation)^2 / (epsilon + ratio^2).

    With `normal_factor_d: 1` and `normal_factor_e: 1`, the others 0, the deviation is the depth.
    """
    points = products(maps).points
    known = np.isfinite(points["z"])
    deviation = points["z"][known].astype(np.float64)
    ratio = points["confidence_ratio"][known].astype(np.float64)
    epsilon = np.finfo(np.float32).tiny
    assert_allclose(deviation**2 / (epsilon + ratio**2), maps[1][known] ** 2.0, rtol=1e-6)


def test_a_sigma_of_zero_is_no_division_error(maps, recwarn):
    maps[1][:] = 0
    points = products(maps).points
    assert np.isposinf(points["confidence_ratio"][1:5]).all()
    assert not recwarn.list


def test_points_without_an_image_have_no_color(maps):
    assert "rgb" not in products(maps).points.dtype.names
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    image[2, 4] = 1, 2, 3
    points = products(maps, GatingConfig(point_stride=2), image=image).points
    packed = np.ascontiguousarray(points["rgb"]).view(np.uint32)
    assert packed[1, 2] == 0x010203
    assert packed.sum() == 0x010203


@pytest.mark.parametrize("camera", [None, Camera(WIDTH, HEIGHT, np.zeros((3, 3)))])
def test_there_are_no_clouds_without_a_calibrated_camera(maps, camera):
    made = SigmaProducts(*maps, GatingConfig(), 1.0, camera)
    assert not made.has_points
    with pytest.raises(ValueError, match="uncalibrated"):
        made.points  # noqa: B018


def maps_of(pairs):
    depth, sigma = np.array(pairs, np.float32).T
    return depth[None], sigma[None]


@pytest.mark.parametrize(
    ("max_sigma", "max_relative_sigma", "expected"),
    [
        (0.5, 0.125, [True, True, False, False, False, False]),
        (0.5, 0.0, [True, True, True, False, False, False]),
        (0.0, 0.125, [True, True, False, True, False, False]),
        (0.0, 0.0, [True, True, True, True, False, False]),
    ],
)
def test_a_pixel_is_trusted_up_to_both_limits(max_sigma, max_relative_sigma, expected):
    """In order: certain, on both limits, relative sigma too big, sigma too big, unknown twice."""
    config = GatingConfig(max_sigma=max_sigma, max_relative_sigma=max_relative_sigma)
    depth, sigma = maps_of(
        [(8, 0), (4, 0.5), (2, 0.5), (80, 0.75), (math.nan, math.nan), (4, math.nan)]
    )
    assert_array_equal(confident_pixels(depth, sigma, config)[0], expected)


def test_depth_beyond_range_is_judged_by_its_sigma_alone():
    depth, sigma = maps_of([(math.inf, 0.1), (math.inf, 9), (-1, 0.1), (math.nan, 0.1)])
    assert confident_pixels(depth, sigma, GatingConfig())[0].tolist() == [True] + 3 * [False]
    without = GatingConfig(max_sigma=0.0, max_relative_sigma=0.0)
    assert not confident_pixels(depth, sigma, without)[0, 3]


def test_nothing_warns_of_missing_depth(recwarn):
    depth = np.full((3, 4), np.nan, np.float32)
    assert not confident_pixels(depth, depth, GatingConfig()).any()
    assert np.isnan(lower_bound(depth, depth, 1.0)).all()
    assert not recwarn.list
