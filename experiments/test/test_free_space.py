"""Free distance ahead by a depth map, against closed forms; danger and waste of margins."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import free_space
from experiments.free_space import DANGEROUS, MARGINS, Corridor, OnlineSigma, Settings, distances
from experiments.robot_worlds import View
from uncertainty_depth.synthetic import sensors

CAMERA = sensors.make_camera(160, 120)
RAYS = CAMERA.rays().reshape(-1, 3) @ sensors.CAMERA_TO_BASE[:3, :3].T


def wall(distance_m: float) -> np.ndarray:
    """Return the depth of each pixel of a floor with a wall across it, (P,)."""
    with np.errstate(divide="ignore"):
        floor = np.where(RAYS[:, 2] < 0, -sensors.CAMERA_HEIGHT / RAYS[:, 2], np.inf)
    return np.minimum(floor, distance_m / RAYS[:, 0])


@pytest.mark.parametrize("distance_m", [0.8, 2.0, 4.5])
def test_the_free_distance_is_that_of_the_wall(distance_m):
    assert Corridor(RAYS, wall(distance_m), Settings()).free_m() == pytest.approx(distance_m)


def test_without_an_obstacle_it_is_the_horizon():
    settings = Settings()
    assert Corridor(RAYS, wall(40.0), settings).free_m() == settings.horizon_m
    few = wall(40.0)
    ahead = np.flatnonzero(np.abs(RAYS[:, 1]) < 0.02)[: settings.pixels - 1]
    few[ahead] = 1.0
    assert Corridor(RAYS, few, settings).free_m() == settings.horizon_m


def test_what_is_beside_above_or_below_the_robot_is_no_obstacle():
    depth_m = wall(3.0)
    points = RAYS * depth_m[:, None]
    aside = np.abs(points[:, 1]) > 0.35
    depth_m[aside] *= 0.9  # nearer, and still outside the corridor
    assert Corridor(RAYS, depth_m, Settings()).free_m() == pytest.approx(3.0)


def test_margins_shorten_it_as_they_say():
    depth_m = wall(3.0)
    corridor = Corridor(RAYS, depth_m, Settings())
    assert corridor.free_m(0.2 * depth_m) == pytest.approx(2.4)
    shorter = corridor.free_m(np.full_like(depth_m, 0.5))
    assert shorter == pytest.approx(3.0 - 0.5 * RAYS[:, 0].min(), abs=0.06)
    assert corridor.free_m(depth_m + 1) == 0.0  # never behind the camera


def test_every_margin_of_size_zero_is_the_depth_alone():
    view = View(CAMERA, RAYS, np.eye(4), wall(2.0), wall(2.5), 0.1 * wall(2.5))
    frame = distances(view, view.sigma_m, Settings(), np.random.default_rng(0))
    assert frame["true"] == pytest.approx(2.0)
    for name in MARGINS:
        assert frame[name][0] == pytest.approx(2.5)
        assert (np.diff(frame[name]) <= 1e-9).all(), name


def test_curves_count_danger_and_waste_and_find_the_safe_margin():
    """One world is always 1.02 m too far by depth alone, one is right."""
    worlds = []
    for error_m in (1.02, 0.0):
        frame = {"true": 2.0}
        for name, sizes in MARGINS.items():
            frame[name] = (2.0 + error_m - sizes).tolist()
        worlds.append([frame] * 3)
    curve = free_space.curves(worlds)["constant"]
    assert curve.dangerous[0, 0] == 0.5
    assert curve.given_away_m[0, 0] == 0.0
    value, low, high = curve.interval(DANGEROUS)
    assert value == pytest.approx(0.85 / 2)  # the first safe margin; only one world gives it away
    assert low == 0.0
    assert high >= value


def test_a_danger_that_no_margin_removes_has_no_number():
    worlds = [[{"true": 1.0, **{name: [5.0] * len(sizes) for name, sizes in MARGINS.items()}}]]
    assert np.isnan(free_space.curves(worlds)["sigma"].interval(DANGEROUS)[0])


def test_lidar_of_the_frames_before_corrects_a_sigma_that_is_too_small():
    """Errors of 0.5 m at a sigma of 0.1 m: the 95 % interval needs 2.6 times that sigma."""
    online_sigma = OnlineSigma()
    lidar_m = np.full(RAYS.shape[0], np.nan)
    lidar_m[::10] = 2.0
    depth_m = np.full_like(lidar_m, 2.5)
    sigma_m = np.full_like(lidar_m, 0.1)
    factors = []
    for number in range(200):
        stamp_ns = 10**18 + number * 2 * 10**9
        view = View(CAMERA, RAYS, np.eye(4), depth_m - 0.5, depth_m, sigma_m, stamp_ns, lidar_m)
        factors.append(online_sigma(view)[0] / 0.1)
    assert factors[0] == 1.0
    assert factors[-1] == pytest.approx(0.5 / (0.1 * 1.96), rel=0.1)
