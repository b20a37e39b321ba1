# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Lens models, rectification and back projection against OpenCV and naive loops."""

import cv2
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from uncertainty_depth.core.config.nodes import GatingConfig
from uncertainty_depth.core.config.source import DISTORTED_IMAGES
from uncertainty_depth.core.geometry.camera import Camera, Distortion, image_coordinates
from uncertainty_depth.core.geometry.point_cloud import organised_points, positions
from uncertainty_depth.core.geometry.rectification import Rectifier
from uncertainty_depth.sigma.gating import SigmaProducts

MODELS = {
    "plumb_bob": np.array([-0.28, 0.07, 0.001, -0.002, 0.003]),
    "rational_polynomial": np.array([0.4, 0.05, 0.001, -0.0005, 0.002, 0.7, 0.12, 0.01]),
    "equidistant": np.array([-0.02, 0.004, -0.001, 0.0002]),
}
K = np.array([[90.0, 0, 78.3], [0, 92.0, 61.1], [0, 0, 1]])
NEW_K = np.array([[80.0, 0, 80.0], [0, 81.0, 60.0], [0, 0, 1]])
R = cv2.Rodrigues(np.array([0.02, -0.03, 0.01]))[0]
SIZE = (160, 120)


def rectifier_of(model: str) -> Rectifier:
    turned = np.eye(4)
    turned[:3, :3] = R.T
    raw = Camera(*SIZE, K, turned, Distortion(model, MODELS[model]))
    return Rectifier(raw, Camera(*SIZE, NEW_K))


def opencv_map(model: str) -> tuple[np.ndarray, np.ndarray]:
    module = cv2.fisheye if model == "equidistant" else cv2
    return module.initUndistortRectifyMap(K, MODELS[model], R, NEW_K, SIZE, cv2.CV_32FC1)


def by_opencv(camera: Camera, rays: np.ndarray) -> np.ndarray:
    """Return the pixels of points in the camera's own frame."""
    assert camera.distortion is not None
    project = cv2.projectPoints
    if camera.distortion.model == "equidistant":
        rays = rays[:, None]
        project = cv2.fisheye.projectPoints
    none = np.zeros((3, 1))
    coefficients = camera.distortion.coefficients
    return project(rays, none, none, camera.intrinsics, coefficients)[0].reshape(-1, 2)


def blurred(size: int, deviation: float) -> np.ndarray:
    image = np.random.default_rng(1).integers(0, 256, (*SIZE[::-1], 3), np.uint8)
    return cv2.GaussianBlur(image, (size, size), deviation)


@pytest.mark.parametrize("model", MODELS)
def test_points_fall_into_the_raw_image_where_opencv_projects_them(model):
    points = np.random.default_rng(0).normal([0, 0, 4], [1.2, 0.9, 0.3], (500, 3))
    camera = rectifier_of(model).raw
    expected = by_opencv(camera, points @ R)
    assert_allclose(camera.pixels(points @ R), expected, atol=1e-9)
    columns, rows, depth = image_coordinates(points, np.eye(4), camera)
    inside = ((np.rint(expected) >= 0) & (np.rint(expected) < SIZE)).all(axis=1)
    assert inside.sum() > 300
    assert_array_equal(np.stack([columns, rows], axis=1), np.rint(expected[inside]))
    assert_allclose(depth, (points @ R)[inside, 2])


@pytest.mark.parametrize("model", MODELS)
def test_an_image_is_rectified_as_opencv_does_it(model):
    image = blurred(5, 1.5)
    expected = cv2.remap(image, *opencv_map(model), cv2.INTER_LINEAR)
    rectified, camera = rectifier_of(model).image(image)
    assert camera.distortion is None
    assert_array_equal(camera.intrinsics, NEW_K)
    assert np.abs(rectified.astype(int) - expected).max() <= 3  # the map has 1/32 px
    assert np.abs(rectified.astype(int) - image).mean() > 3


@pytest.mark.parametrize("model", MODELS)
def test_pixels_and_their_depth_go_back_to_their_points(model):
    cameras = rectifier_of(model)
    beside = np.eye(4)
    beside[:3, 3] = [-0.12, 0.01, 0]
    for camera in (
        cameras.raw,
        cameras.rectified,
        Camera(*SIZE, K, cameras.raw.frame_to_camera @ beside, cameras.raw.distortion),
    ):
        depth_m = np.random.default_rng(2).uniform(1, 9, SIZE[::-1]).astype(np.float32)
        fields = positions(depth_m, camera)
        points = np.stack([fields[name] for name in "xyz"], axis=1).astype(np.float64)
        in_camera = points @ camera.frame_to_camera[:3, :3].T + camera.frame_to_camera[:3, 3]
        assert_allclose(in_camera[:, 2], depth_m.ravel(), rtol=1e-5)
        rows, columns = np.mgrid[: SIZE[1], : SIZE[0]]
        expected = np.stack([columns.ravel(), rows.ravel()], axis=1)
        assert_allclose(camera.pixels(in_camera), expected, atol=2e-3)


def test_a_depth_image_is_rectified_without_mixing_depths_and_along_the_new_axis():
    """A plane seen by the raw camera, pixel by pixel, against the same plane seen by the other."""
    cameras = rectifier_of("plumb_bob")
    normal = np.array([0.2, -0.1, 1.0])  # of the plane normal . x = 3, in the frame

    def seen(camera: Camera) -> np.ndarray:
        in_frame = camera.rays() @ camera.frame_to_camera[:3, :3]
        return (3 / (in_frame @ normal)).astype(np.float32)

    depth_m = seen(cameras.raw)
    expected = seen(cameras.rectified)
    rectified = cameras.depth(depth_m)
    known = np.isfinite(rectified)
    assert 0.8 < known.mean() <= 1
    assert_allclose(rectified[known], expected[known], rtol=5e-3)  # half a pixel of a slope
    sparse = np.where(np.arange(SIZE[0]) % 3 == 0, depth_m, np.float32(np.nan))
    still_known = cameras.depth(sparse)
    assert 0.25 < np.isfinite(still_known).sum() / known.sum() < 0.4
    kept = np.isfinite(still_known)
    assert_array_equal(still_known[kept], rectified[kept])
    assert_array_equal(Rectifier(cameras.raw, cameras.rectified, "keep").depth(depth_m), depth_m)


def test_a_polynomial_that_folds_back_shows_nothing_from_beyond_its_turn():
    """R(1 - 0.3 r^2) rises up to r = 1.054 and falls to 0 at r = 1.826: there lies the axis."""
    folded = Distortion("plumb_bob", np.array([-0.3, 0, 0, 0]))
    assert folded.max_radius == pytest.approx(np.sqrt(1 / 0.9))
    camera = Camera(*SIZE, K, distortion=folded)
    points = np.array([[1.826, 0, 1], [1.826 * 0.5, 0, 1], [0, 9.0, 1]])
    columns, *_ = image_coordinates(points, np.eye(4), camera)
    assert_array_equal(columns, [round(0.913 * (1 - 0.3 * 0.913**2) * 90 + 78.3)])
    wide = Rectifier(camera, Camera(*SIZE, np.diag([20.0, 20, 1]) + K * 0))
    image, _ = wide.image(np.full((*SIZE[::-1], 3), 255, np.uint8))
    assert not image[30:, 30:].any()  # rays beyond r = 1.5


@pytest.mark.parametrize(
    ("model", "coefficients", "limit"),
    [
        ("plumb_bob", [-0.28, 0.07, 0, 0], np.inf),
        ("rational_polynomial", [0, 0, 0, 0, 0, -1.0, 0, 0], 1.0),  # a pole
        ("equidistant", [0, 0, 0, 0], np.inf),
        ("equidistant", [-1 / 3, 0, 0, 0], np.tan(1.0)),
    ],
)
def test_the_max_radius_of_a_distortion(model, coefficients, limit):
    assert Distortion(model, np.array(coefficients, float)).max_radius == pytest.approx(limit)


# Model, coefficients, f, cx, cy, width and height, most as published or as a driver gives them.
LENSES = {
    "T265, 163 degrees": ("equidistant", [-0.006, 0.04, -0.037, 0.006], 286, 420, 400, 848, 800),
    "TUM-VI": (
        "equidistant",
        [0.0034823894, 0.00071503485, -0.0020532361, 0.00020293674],
        190.978477,
        254.931706,
        256.897442,
        512,
        512,
    ),
    "ideal fisheye, 220 degrees": ("equidistant", [0, 0, 0, 0], 130, 250, 250, 501, 501),
    "fisheye that folds": ("equidistant", [-0.2, 0, 0, 0], 150, 160, 120, 320, 240),
    "EuRoC": (
        "plumb_bob",
        [-0.28340811, 0.07395907, 0.00019359, 1.76187114e-05],
        458.654,
        367.215,
        248.375,
        752,
        480,
    ),
    "wide lens that folds": ("plumb_bob", [-0.3, 0, 0.001, -0.002, 0], 200, 161, 118, 320, 240),
    "Azure Kinect": (
        "rational_polynomial",
        [0.513059, -2.77779, 0.000936, -0.000491, 1.58118, 0.391601, -2.58817, 1.50468],
        305.5,  # at half its size
        318.25,
        183.25,
        640,
        360,
    ),
    "thin prism": (
        "rational_polynomial",
        [0.4, 0.05, 0.001, -0.0005, 0.002, 0.7, 0.12, 0.01, 0.002, -0.001, 0.001, 0.0005],
        300,
        320,
        240,
        640,
        480,
    ),
    "strong barrel": ("plumb_bob", [-0.42, 0.22, 0.001, 0.0005, -0.06], 310, 322, 239, 640, 480),
}


def lens_camera(name: str) -> Camera:
    model, coefficients, f, cx, cy, width, height = LENSES[name]
    matrix = np.array([[f, 0, cx], [0, f, cy], [0, 0, 1.0]])
    return Camera(
        width, height, matrix, distortion=Distortion(model, np.array(coefficients, float))
    )


@pytest.mark.parametrize("name", LENSES)
def test_a_raw_pixels_ray_projects_to_that_pixel(name):
    camera = lens_camera(name)
    rays = camera.rays()
    known = np.isfinite(rays).all(axis=2)
    assert_array_equal(known, np.isfinite(rays).any(axis=2))
    rows, columns = np.nonzero(known)
    pixels = by_opencv(camera, rays[known])
    assert np.hypot(*(pixels - np.stack([columns, rows], axis=1)).T).max() < 0.1


@pytest.mark.parametrize("name", LENSES)
def test_every_ray_that_the_lens_sees_before_90_degrees_comes_back(name):
    camera = lens_camera(name)
    distortion = camera.distortion
    assert distortion is not None
    widest = np.radians(89.9 if distortion.model == "equidistant" else 70)
    end = min(0.95 * np.arctan(distortion.max_radius), widest)
    angle, turn = np.meshgrid(np.linspace(0, end, 200), np.linspace(0, 2 * np.pi, 91))
    rays = (np.tan(angle) * np.stack([np.cos(turn), np.sin(turn)])).reshape(2, -1).T
    back = distortion.undistorted(distortion.distorted(rays))
    assert_allclose(np.arctan(back), np.arctan(rays), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("T265, 163 degrees", np.pi / 2),
        ("TUM-VI", np.pi / 2),
        ("ideal fisheye, 220 degrees", np.pi / 2),
        ("fisheye that folds", np.sqrt(1 / 0.6)),
    ],
)
def test_a_pixel_at_the_end_of_a_fisheye_or_beyond_has_no_ray(name, end):
    """Its radius in the image is that of the angle at which Z is 0, or the polynomial turns."""
    camera = lens_camera(name)
    _, coefficients, f, cx, cy, width, height = LENSES[name]
    limit = f * (end + sum(k * end ** (2 * i + 3) for i, k in enumerate(coefficients)))
    u, v = np.meshgrid(np.arange(width), np.arange(height))
    radius = np.hypot(u - cx, v - cy)
    known = np.isfinite(camera.rays()).all(axis=2)
    assert known[radius < limit - 0.01].all()
    assert not known[radius > limit + 0.01].any()
    assert 0.2 < known.mean() < 1


def test_a_pixel_without_a_ray_has_no_point():
    camera = lens_camera("T265, 163 degrees").scaled(212, 200)
    known = np.isfinite(camera.rays()).all(axis=2)
    depth_m = np.full((200, 212), 2, np.float32)
    assert len(positions(depth_m, camera)) == known.sum()
    organised = organised_points(depth_m, depth_m, camera)
    for field in "xyz":
        assert_array_equal(np.isfinite(organised[field]), known)
    products = SigmaProducts(depth_m, depth_m / 100, GatingConfig(point_stride=1), 2.0, camera)
    assert len(products.confident_points) == known.sum()
    assert len(products.clearing_points) == known.sum()


def test_images_that_are_rectified_are_passed_on_untouched():
    rectifier = Rectifier(Camera(*SIZE, K), Camera(*SIZE, K + 1e-5))
    image = np.zeros((*SIZE[::-1], 3), np.uint8)
    assert rectifier.image(image)[0] is image
    assert not rectifier.rectifies


@pytest.mark.parametrize("option", DISTORTED_IMAGES)
def test_maps_have_the_camera_of_the_image_that_they_are_predicted_from(option):
    cameras = rectifier_of("plumb_bob")
    rectifier = Rectifier(cameras.raw, cameras.rectified, option)
    _, of_image = rectifier.image(blurred(5, 1.5))
    assert rectifier.camera(*SIZE) is of_image
    assert (of_image.distortion is None) == (option != "keep")
    assert (of_image.seen is None) == (option != "rectify")


def test_an_image_of_half_the_size_is_rectified_by_the_scaled_cameras():
    image = blurred(9, 3)
    rectifier = rectifier_of("plumb_bob")
    half = cv2.resize(image, (80, 60), interpolation=cv2.INTER_AREA)
    first_rectified = cv2.resize(rectifier.image(image)[0], (80, 60), interpolation=cv2.INTER_AREA)
    first_halved, camera = rectifier.image(half)
    assert (camera.width, camera.height) == (80, 60)
    middle = np.s_[5:-5, 5:-5]
    assert np.abs(first_halved[middle].astype(int) - first_rectified[middle]).mean() < 1


@pytest.mark.parametrize("model", MODELS)
def test_pixels_that_the_lens_does_not_see_are_those_that_stay_black(model):
    white = np.full((*SIZE[::-1], 3), 255, np.uint8)
    image, camera = rectifier_of(model).image(white)
    gray = image[..., 0]
    assert gray[camera.seen].min() > 230  # OpenCV rounds to a 32nd of a pixel
    assert not camera.seen[gray < 230].any()
    assert abs(camera.seen.mean() - (gray == 255).mean()) < 0.01
    by_opencv = cv2.remap(white, *opencv_map(model), cv2.INTER_LINEAR)[..., 0]
    assert ((by_opencv > 230) == camera.seen).mean() > 0.99


def test_what_is_seen_follows_the_size():
    seen = np.ones(SIZE[::-1], bool)
    seen[:60] = False
    camera = Camera(*SIZE, K, seen=seen)
    assert_array_equal(camera.scaled(80, 60).seen, seen[::2, ::2])
    assert_array_equal(camera.cropped(10, 50, 20, 20).seen, seen[50:70, 10:30])
    values = np.ones(SIZE[::-1], np.float32)
    assert_array_equal(np.isnan(camera.only_seen(values)), ~seen)
