"""Free distance ahead by a depth map, against closed forms; danger and waste of margins."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import free_space
from experiments.free_space import MARGINS, OnlineSigma, Settings, distances
from experiments.robot_worlds import View
from synthetic import sensors

CAMERA = sensors.make_camera(160, 120)
RAYS = CAMERA.rays().reshape(-1, 3) @ sensors.CAMERA_TO_BASE[:3, :3].T


def wall(distance_m: float) -> np.ndarray:
    """Return each pixel's depth on a floor with a wall across it, (P,)."""
    with np.errstate(divide="ignore"):
        floor = np.where(RAYS[:, 2] < 0, -sensors.CAMERA_HEIGHT / RAYS[:, 2], np.inf)
    return np.minimum(floor, distance_m / RAYS[:, 0])


def free_m(depth_m: np.ndarray, margin_m: np.ndarray | float = 0.0) -> float:
    """Return the free distance by a depth map; obstacles are told by the depth itself."""
    pixels = free_space.obstacle_pixels(RAYS, depth_m, Settings())
    bound_m = np.maximum(depth_m - margin_m, 0.0)
    return free_space.free_m(RAYS[pixels, 0] * bound_m[pixels], Settings())


@pytest.mark.parametrize("distance_m", [0.8, 2.0, 4.5])
def test_the_free_distance_is_that_of_the_wall(distance_m):
    assert free_m(wall(distance_m)) == pytest.approx(distance_m)


def test_without_an_obstacle_it_is_the_horizon():
    settings = Settings()
    assert free_m(wall(40.0)) == settings.horizon_m
    few = wall(40.0)
    ahead = np.flatnonzero(np.abs(RAYS[:, 1]) < 0.02)[: settings.pixels - 1]
    few[ahead] = 1.0
    assert free_m(few) == settings.horizon_m


def test_what_is_beside_above_or_below_the_robot_is_no_obstacle():
    depth_m = wall(3.0)
    points = RAYS * depth_m[:, None]
    aside = np.abs(points[:, 1]) > 0.35
    depth_m[aside] *= 0.9  # nearer, and still outside the corridor
    assert free_m(depth_m) == pytest.approx(3.0)


def test_margins_shorten_it_as_they_say():
    depth_m = wall(3.0)
    assert free_m(depth_m, 0.2 * depth_m) == pytest.approx(2.4)
    shorter = free_m(depth_m, 0.5)
    assert shorter == pytest.approx(3.0 - 0.5 * RAYS[:, 0].min(), abs=0.06)
    assert free_m(depth_m, depth_m + 1) == 0.0  # never behind the camera


def test_every_margin_of_size_zero_is_the_depth_alone():
    view = View(CAMERA, RAYS, np.eye(4), wall(2.0), wall(2.5), 0.1 * wall(2.5))
    (frame,) = distances(view, view.sigma_m, Settings(), np.random.default_rng(0))
    assert frame["true"] == pytest.approx(2.0)
    for name, margin in MARGINS.items():
        if margin.obstacles != "half a sigma":
            assert frame[name][0] == pytest.approx(2.5)
        if margin.obstacles != "bound":
            assert (np.diff(frame[name]) <= 1e-9).all(), name


def test_one_bound_finds_an_obstacle_that_the_depth_takes_for_floor():
    """A box of 1 m at 2 m is predicted as the floor behind it, with a sigma that says so."""
    truth_m = wall(40.0)
    box = np.flatnonzero((np.abs(RAYS[:, 1]) < 0.1) & (truth_m * RAYS[:, 0] > 2.0))
    truth_m[box] = 2.0 / RAYS[box, 0]
    depth_m = wall(40.0)
    sigma_m = 0.01 * depth_m
    sigma_m[box] = depth_m[box] - truth_m[box]
    view = View(CAMERA, RAYS, np.eye(4), truth_m, depth_m, sigma_m)
    (frame,) = distances(view, sigma_m, Settings(), np.random.default_rng(0))
    assert frame["true"] == pytest.approx(2.0)
    below_one = int(np.searchsorted(MARGINS["sigma"].sizes, 1.0)) - 1
    assert frame["sigma"][below_one] > 3.0
    assert 2.0 < frame["sigma, one bound"][below_one] < 2.5


def test_rays_see_what_is_in_their_own_sector():
    """A wall at 3 m, and on the left, where y is positive, one at 1.5 m."""
    truth_m = np.where(RAYS[:, 1] > 0, wall(1.5), wall(3.0))
    view = View(CAMERA, RAYS, np.eye(4), truth_m, truth_m, 0.1 * truth_m)
    rng = np.random.default_rng(0)
    rays = distances(view, view.sigma_m, free_space.SLAB, rng, ("constant",), sectors=4)
    assert [ray["true"] for ray in rays] == pytest.approx([3.0, 3.0, 1.5, 1.5])
    assert [ray["constant"][0] for ray in rays] == pytest.approx([3.0, 3.0, 1.5, 1.5])


def frames_of(worlds: list[list[float]]) -> list[list[dict]]:
    """Return worlds of frames 2 m from an obstacle that the depth sees this much too far."""
    return [
        [
            {"true": 2.0}
            | {name: (2.0 + error_m - margin.sizes).tolist() for name, margin in MARGINS.items()}
            for error_m in errors_m
        ]
        for errors_m in worlds
    ]


def test_curves_count_danger_and_waste_and_find_the_safe_margin():
    """One world is always 1.02 m too far by depth alone, one is right."""
    curve = free_space.curves(frames_of([[1.02] * 3, [0.0] * 3]))["constant"]
    assert curve.dangerous.sum(axis=0)[0] == 3
    assert curve.given_away_m.sum(axis=0)[0] == 0.0
    values = curve.given_away_at(0.01)
    assert values[0] == pytest.approx(0.85 / 2)  # the first safe margin; one world gives it away
    assert values.min() == 0.0


def test_a_size_chosen_on_the_other_worlds_may_fail_in_this_one():
    curve = free_space.curves(frames_of([[1.02] * 200, *[[0.0] * 200] * 4]))["constant"]
    dangerous, given_away_m = curve.chosen_elsewhere(0.02)
    assert dangerous == pytest.approx(0.2)  # the frames of the world that is unlike the others
    assert given_away_m == pytest.approx(0.8 * 0.85)  # which the four others are careful for


def test_a_danger_that_no_margin_removes_has_no_number():
    endless = {name: [5.0] * len(margin.sizes) for name, margin in MARGINS.items()}
    curve = free_space.curves([[{"true": 1.0, **endless}]])["sigma"]
    assert np.isnan(curve.given_away_at(0.01)[0])


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
    assert factors[0] == pytest.approx(1.0)
    assert factors[-1] == pytest.approx(0.5 / (0.1 * 1.96), rel=0.1)
