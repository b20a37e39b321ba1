# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Camera and LiDAR: depth along the axis, agreement between the two, size of the noise."""

from __future__ import annotations

import numpy as np
import pytest

from synthetic import furnishing, sensors
from synthetic.materials import Material, Plain
from synthetic.render import Lamp, Renderer, Scene
from synthetic.rooms import Drive
from synthetic.solids import Box, Sphere

GREY = Material(Plain((0.5, 0.5, 0.5)), dirt=0.0)
STANDING = Drive(np.array([[0.0, 0.0], [1.0, 0.0]]), 0.0, 0.0)
EXTENT = np.array([[-50, -50, -50], [50, 50, 50]], np.float32)
CAMERA = sensors.make_camera(64, 48)


def random(*numbers: int) -> np.random.Generator:
    return np.random.default_rng(numbers)


def render(solids, lamps=(), ambient=1.0) -> Renderer:
    return Renderer(Scene(list(solids), list(lamps), ambient, STANDING, EXTENT))


@pytest.fixture(scope="module")
def furnished() -> tuple[Renderer, np.ndarray]:
    world = furnishing.build(0, 3, test_objects=True)
    return Renderer(world), sensors.base_to_world(*world.drive.pose(1.0))


def looking_ahead(solids) -> sensors.CameraView:
    """A level camera at the origin."""
    return sensors.CameraView(render(solids), CAMERA, sensors.OPTICAL_TO_CAMERA_LINK)


def test_depth_of_a_sphere_follows_from_its_equation():
    view = looking_ahead([Sphere((4.0, 0.0, 0.0), 1.0, GREY, "sphere")])
    v, u = np.mgrid[:48, :64]
    (fx, _, cx), (_, fy, cy), _ = CAMERA.intrinsics
    rays = np.stack([(u - cx) / fx, (v - cy) / fy, np.ones(u.shape)])
    # |t ray - (0, 0, 4)|^2 = 1
    a = (rays**2).sum(axis=0)
    b = -4.0
    c = 15.0
    root = b * b - a * c
    expected = np.where(root >= 0, (-b - np.sqrt(np.maximum(root, 0))) / a, np.nan)
    clear = np.abs(root) > 1e-3
    np.testing.assert_allclose(view.depth_m[clear], expected[clear], rtol=1e-4)
    assert np.isfinite(view.depth_m[clear]).sum() > 50


def test_light_falls_off_with_the_square_of_the_distance_and_the_cosine():
    floor = Box((0.0, 0.0, -0.5), (20.0, 20.0, 0.5), GREY, "floor")
    lamp = Lamp((0.0, 0.0, 2.0), (1.0, 1.0, 1.0), 3.0)
    renderer = render([floor], [lamp], ambient=0.0)
    x = np.array([0.0, 1.0, 3.0, 7.0], np.float32)
    origin = np.array([0, 0, 10.0], np.float32)
    down = np.stack([x / 10, 0 * x, -np.ones_like(x)])
    hits = sensors.cast(renderer.scene, origin, down)
    square = x**2 + 4
    expected = 0.5 * 3.0 * (2 / np.sqrt(square)) / (square + 0.25)
    np.testing.assert_allclose(
        renderer.radiance(origin, down, hits, 0.001), np.broadcast_to(expected, (3, 4)), rtol=1e-3
    )


def test_a_ball_under_a_lamp_throws_a_shadow_as_wide_as_geometry_says():
    floor = Box((0.0, 0.0, -0.5), (20.0, 20.0, 0.5), GREY, "floor")
    ball = Sphere((0.0, 0.0, 1.0), 0.5, GREY, "sphere")
    lamp = Lamp((0.0, 0.0, 3.0), (1.0, 1.0, 1.0), 1.0)
    renderer = render([floor, ball], [lamp], ambient=0.0)
    edge = 3 * np.tan(np.arcsin(0.5 / 2))  # the cone of rays that touch the ball
    x = np.array([0.8 * edge, 1.2 * edge], np.float32)
    origin = np.array([0, 5.0, 0.5], np.float32)
    rays = np.stack([x, -5 + 0 * x, -0.5 + 0 * x])
    light = renderer.radiance(origin, rays, sensors.cast(renderer.scene, origin, rays), 0.001)[0]
    assert light[0] == 0
    assert light[1] > 0.01


def test_without_noise_every_lidar_point_lies_on_the_surface_the_camera_sees(furnished):
    renderer, base = furnished
    points = sensors.scan(renderer, 32, 0.0, base @ sensors.LIDAR_TO_BASE, random(0))
    in_camera = (
        sensors.LIDAR_TO_CAMERA[:3, :3] @ points[:, :3].T.astype(np.float64)
        + sensors.LIDAR_TO_CAMERA[:3, 3:]
    )
    in_camera = in_camera[:, in_camera[2] > 0.1]
    to_world = base @ sensors.CAMERA_TO_BASE
    rays = (to_world[:3, :3] @ (in_camera / in_camera[2])).astype(np.float32)
    depth = sensors.cast(renderer.scene, to_world[:3, 3].astype(np.float32), rays).t
    error = depth - in_camera[2]
    # no point floats before the first surface; beams along an edge may be rounded past it
    assert np.mean(error > 1e-3) < 5e-4
    # the rest is hidden from the camera, which sits lower
    assert np.mean(np.abs(error) < 1e-3) > 0.85
    assert (error < -0.05).any()


def test_lidar_noise_is_along_the_beam_and_as_large_as_it_claims():
    to_world = np.eye(4)
    # from inside the ball, which is then not hit
    ball = render([Sphere((0.0, 0.0, 0.0), 1.0, GREY, "sphere"), *_box_around(3.0)])
    exact, noisy = (sensors.scan(ball, 32, noise, to_world, random(1)) for noise in (0.0, 2.0))
    assert len(exact) == 32 * sensors.TURN
    assert 0.7 * len(exact) < len(noisy) < 0.97 * len(exact)
    depth = np.abs(noisy[:, :3]).max(axis=1)  # the walls are 3 m away
    slant = depth / np.linalg.norm(noisy[:, :3], axis=1)
    assert ((depth - 3.0) / slant).std() == pytest.approx(2 * sensors.RANGE_NOISE, rel=0.05)
    assert abs(((depth - 3.0) / slant).mean()) < 0.002


def _box_around(distance: float) -> list[Box]:
    wall = distance + 0.5
    return [
        Box(
            (s * wall * x, s * wall * y, s * wall * z),
            (10 - 9.5 * x, 10 - 9.5 * y, 10 - 9.5 * z),
            GREY,
            "wall",
        )
        for s in (-1, 1)
        for x, y, z in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    ]


def test_only_noisy_images_depend_on_the_generator(furnished):
    renderer, base = furnished
    radiance = sensors.CameraView(renderer, CAMERA, base @ sensors.CAMERA_TO_BASE).radiance
    look = sensors.Look.usual(random(9))
    clean, same = (sensors.expose(radiance, 0.0, random(k), look) for k in (1, 2))
    noisy, other = (sensors.expose(radiance, 1.0, random(k), look) for k in (1, 2))
    np.testing.assert_array_equal(clean, same)
    assert (noisy != other).any()
    difference = np.abs(noisy.astype(int) - clean)
    assert 0.5 < difference.mean() < 8
