"""Fused maps against closed forms: exact depth is reproduced, weights decide as they say."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from experiments import mapping_drives, mapping_report
from experiments.mapping_grids import Area, DistanceGrid, HeightMap, Measurement, weights
from experiments.robot_worlds import View
from synthetic import sensors

CAMERA = sensors.make_camera(80, 60)
RAYS = CAMERA.rays().reshape(-1, 3) @ sensors.CAMERA_TO_BASE[:3, :3].T
AREA = Area((0.0, -2.0), (40, 40), 0.1, 1.5)
ONES = np.ones(len(RAYS))


def facing_wall(distance_m: float) -> View:
    """Return a view of a wall that fills the image, with sigma 0.1 m."""
    depth_m = distance_m / RAYS[:, 0]
    return View(CAMERA, RAYS, sensors.CAMERA_TO_BASE, depth_m, depth_m, 0.1 * ONES)


def fused(grid: HeightMap | DistanceGrid, *parts: tuple[View, np.ndarray]) -> np.ndarray:
    for view, weight in parts:
        grid.add(Measurement(view, view.depth_m, weight))
    return grid.values()


def test_points_and_pixels_are_each_others_inverse():
    view = facing_wall(2.0)
    points = view.world_points(view.depth_m)
    np.testing.assert_allclose(points[:, 0], 2.0)
    optical = (points - view.camera_to_world[:3, 3]) @ view.camera_to_world[:3, :3]
    pixels, is_seen = view.pixels(optical)
    assert is_seen.all()
    np.testing.assert_array_equal(pixels, np.arange(len(points)))


def test_a_height_map_holds_the_height_of_what_stands_there():
    values = fused(HeightMap(AREA), (facing_wall(2.05), ONES)).reshape(AREA.shape)
    seen = np.isfinite(values)
    assert set(np.flatnonzero(seen.any(axis=1))) == {20}  # the wall's row of cells
    assert np.nanmax(values) < AREA.height_m
    assert np.nanmedian(values) > 1.0  # the upper part of the wall


def test_a_distance_grid_is_zero_at_the_surface():
    area = Area((1.5, -0.3), (10, 6), 0.1, 1.0)
    values = fused(DistanceGrid(area), (facing_wall(2.0), ONES)).reshape(10, 6, 10)
    ahead = area.low[0] + 0.1 * (np.arange(10) + 0.5)
    expected = np.clip((2.0 - ahead) / np.cos(sensors.CAMERA_PITCH), None, 0.3)
    middle = values[:, 3, 7]  # near the optical axis, along which the distance is taken
    known = np.isfinite(middle)
    assert known.sum() >= 7
    np.testing.assert_allclose(middle[known], expected[known], atol=0.03)


@pytest.mark.parametrize("make", [HeightMap, DistanceGrid])
def test_weights_average(make):
    near = facing_wall(2.0)
    far = facing_wall(2.1)
    alone = [fused(make(AREA), (view, ONES)) for view in (near, far)]
    both = fused(make(AREA), (near, 3 * ONES), (far, ONES))
    common = np.isfinite(alone[0]) & np.isfinite(alone[1])
    if make is DistanceGrid:
        assert common.any()
    expected = (3 * alone[0] + alone[1])[common] / 4
    np.testing.assert_allclose(both[common], expected)
    unused = fused(make(AREA), (near, ONES), (far, 0 * ONES))
    np.testing.assert_array_equal(unused, alone[0])


def test_a_cell_is_weighed_once_per_frame_unless_per_pixel():
    """Two frames see one cell by many and by few pixels."""
    many = facing_wall(2.05)
    sparse = np.zeros_like(ONES)
    sparse[::7] = 1.0
    area = Area((0.0, -20.0), (400, 400), 0.1, 1.5)
    frame = HeightMap(area)
    pixel = HeightMap(area, per_pixel=True)
    for grid in (frame, pixel):
        grid.add(Measurement(many, many.depth_m, ONES))
        grid.add(Measurement(many, many.depth_m, sparse))
    assert np.nanmax(frame._weight) == pytest.approx(2.0)
    assert np.nanmax(pixel._weight) > 2.0


def test_metrics_of_a_perfect_and_of_a_blind_map():
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.0, 1.0, 500)
    truth[:50] = np.nan
    ways = {"perfect": truth.copy()}
    ways[mapping_report.REFERENCE] = truth + rng.normal(0, 0.2, truth.shape)
    ways["noisy"] = truth + rng.normal(0, 0.3, truth.shape)
    sums = mapping_report.sums("height", truth, ways)
    worlds = [{"height": sums, "distance": sums}] * 2
    values = mapping_report.metrics(worlds)["height"]
    perfect = {name: float(rows[0]) for name, rows in values["perfect"].items()}
    assert perfect["rmse"] == 0.0
    assert perfect["complete"] == 1.0
    assert perfect["false"] == pytest.approx(0.0, abs=0.01)
    assert values["noisy"]["rmse"][0] == pytest.approx(0.3, rel=0.1)
    equal = "false_at_equal_missed"
    assert values["noisy"][equal][0] > values[mapping_report.REFERENCE][equal][0]
    header, rows = mapping_report.table(values)
    assert len(header) == len(rows[0])


def test_gates_keep_equal_fractions_and_the_oracle_knows_the_error():
    rng = np.random.default_rng(1)
    truth_m = rng.uniform(1, 5, len(RAYS))
    depth_m = truth_m + rng.normal(0, 0.3, len(RAYS))
    view = View(CAMERA, RAYS, np.eye(4), truth_m, depth_m, rng.uniform(0.1, 1, len(RAYS)))
    ways = weights(view, 0.5, rng)
    assert ways["gated by sigma"].mean() == pytest.approx(0.5, abs=0.01)
    assert ways["gated by range"].mean() == pytest.approx(0.5, abs=0.01)
    best = np.argmax(ways["oracle: 1 / error^2"])
    assert best == np.argmin(np.abs(depth_m - truth_m))


def test_a_real_drive_is_mapped_with_each_scale(tmp_path):
    """A slanted wall seen six times, whose images tell nothing: its scale is worth much."""
    folder = tmp_path / "hololens"
    for part in ("rgb", "depth"):
        (folder / part).mkdir(parents=True)
    rng = np.random.default_rng(0)
    pose = " ".join(map(str, np.eye(4).ravel()))
    for number in range(6):
        image = rng.integers(0, 255, (60, 80, 3)).astype(np.uint8)
        cv2.imwrite(str(folder / "rgb" / f"{number:06d}.jpg"), image)
        depth_mm = np.linspace(1200, 1800, 80).astype(np.uint16)[None].repeat(60, axis=0)
        depth_mm[:, :20] = 0  # a hole
        cv2.imwrite(str(folder / "depth" / f"{number:06d}.png"), depth_mm)
    np.savetxt(folder / "K.txt", [[70, 0, 40], [0, 70, 30], [0, 0, 1]])
    (folder / "poses.txt").write_text("".join(f"{number} {pose}\n" for number in range(6)))
    parts = mapping_drives.score(folder, mapping_drives.Drives(2, 3), 0.1, 0.5)
    assert len(parts) == 2
    with np.errstate(invalid="ignore"):  # no voxel is seen by all ways
        by_way = mapping_report.metrics(parts)["distance"]
    accurate = {way: values["complete"][0] for way, values in by_way.items()}
    assert accurate["true scale, 1 / z^2"] > accurate["1 / z^2"]
    assert accurate["online scale, 1 / z^2"] > accurate["1 / z^2"]
    assert accurate["true scale, 1 / sigma^2"] > accurate["1 / sigma^2"]
