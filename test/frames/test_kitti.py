# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""KITTI: its projection matrix, a drive written here, and the real one where it is available."""

from itertools import islice

import cv2
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from test.frames.conftest import ENORMOUS, points_at, replace_file
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.errors import MessageError, SourceError
from uncertainty_depth.core.geometry.camera import image_coordinates
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.frames.kitti import KittiSource, write_bag
from uncertainty_depth.stream.geometry_check import GeometryCheck
from uncertainty_depth.stream.opening import open_source

CONFIG = SourceConfig()
ROTATION = cv2.Rodrigues(np.array([0.01, -0.02, 0.005]))[0]
VELODYNE_ROTATION = (
    np.array([[0, -1, 0], [0, 0, -1], [1, 0, 0]]) @ cv2.Rodrigues(np.array([0.02, 0.01, -0.03]))[0]
)
VELODYNE_SHIFT = np.array([-0.004, -0.076, -0.27])
PROJECTION = np.array([[40.0, 0, 20, 2.5], [0, 40, 12, 0.01], [0, 0, 1, 0.0027]])


def numbers(values) -> str:
    return " ".join(f"{value:.16e}" for value in np.ravel(values))


@pytest.fixture
def drive(tmp_path):
    """Three frames: images 0, 1, 3 (2 is missing), scans 0 and 3."""
    folder = tmp_path / "2011_09_26" / "2011_09_26_drive_0001_sync"
    for part in ("image_02", "velodyne_points"):
        (folder / part / "data").mkdir(parents=True)
    calibration = (
        "calib_time: today\n"
        f"R_rect_00: {numbers(ROTATION)}\n"
        f"S_rect_02: {numbers([40, 24])}\n"
        f"P_rect_02: {numbers(PROJECTION)}\n"
    )
    (folder.parent / "calib_cam_to_cam.txt").write_text(calibration)
    (folder.parent / "calib_velo_to_cam.txt").write_text(
        f"R: {numbers(VELODYNE_ROTATION)}\nT: {numbers(VELODYNE_SHIFT)}\n"
    )
    (folder / "image_02" / "timestamps.txt").write_text(
        "".join(f"2011-09-26 13:02:25.{index}64389445\n" for index in range(4))
    )
    for index in (0, 1, 3):
        image = np.random.default_rng(index).integers(0, 256, (24, 40, 3), dtype=np.uint8)
        cv2.imwrite(str(folder / "image_02" / "data" / f"{index:010d}.png"), image)
    for index in (0, 3):
        points_at(index).tofile(folder / "velodyne_points" / "data" / f"{index:010d}.bin")
    return folder


def kitti_coordinates(points, projection, rectify, velodyne_rotation, velodyne_shift):
    """Each point's u, v, depth by the dataset's formula: x = P_rect R_rect [R|T] X."""
    camera0 = rectify @ (velodyne_rotation @ points.T.astype(np.float64) + velodyne_shift[:, None])
    image = projection @ np.vstack([camera0, np.ones(len(points))])
    return image[0] / image[2], image[1] / image[2], image[2]


def test_points_project_as_the_dataset_says(drive):
    points = points_at(0)[:, :3]
    u, v, depth = kitti_coordinates(
        points, PROJECTION, ROTATION, VELODYNE_ROTATION, VELODYNE_SHIFT
    )
    column, row = np.rint(u), np.rint(v)
    seen = (depth > 0) & (column >= 0) & (column < 40) & (row >= 0) & (row < 24)
    opened = KittiSource(drive, CONFIG)
    columns, rows, found = image_coordinates(points, opened.lidar_to_camera, opened.image(0)[1])
    assert seen.sum() > 50
    assert_array_equal(columns, column[seen])
    assert_array_equal(rows, row[seen])
    assert_allclose(found, depth[seen], rtol=1e-12)


def test_a_drive_gives_each_image_once_and_names_what_it_lacks(drive):
    source = open_source(f"kitti:{drive}", CONFIG)
    for _ in range(2):
        records = list(source)
        assert [type(record) for record in records] == [Frame, Skipped, Frame]
    assert len(source) == 3
    assert records[1].reason == "no_lidar_within_max_time_difference"
    assert [records[0].name, records[2].name] == ["0000000000", "0000000003"]
    assert records[2].stamp_ns == 1_317_042_145_364_389_445
    assert_array_equal(
        records[0].image[..., ::-1],
        cv2.imread(str(drive / "image_02" / "data" / "0000000000.png")),
    )


def test_a_converted_drive_gives_the_same_frames(drive, tmp_path, capsys):
    assert write_bag(drive, tmp_path / "bag") == 3
    direct, bag = (
        list(open_source(name, CONFIG)) for name in (f"kitti:{drive}", str(tmp_path / "bag"))
    )
    assert len(direct) == len(bag) == 3
    for one, other in zip(direct, bag, strict=True):
        assert (one.stamp_ns, type(one)) == (other.stamp_ns, type(other))
        if isinstance(one, Frame):
            assert_array_equal(one.image, other.image)
            assert_array_equal(one.camera.intrinsics, other.camera.intrinsics)
            assert_array_equal(one.ground_truth_m, other.ground_truth_m)
    assert capsys.readouterr().err == ""
    with pytest.raises(SourceError, match="exists already"):
        write_bag(drive, tmp_path / "bag")


@pytest.mark.parametrize(
    ("content", "reason", "sentence"),
    [
        (b"no image", "image_undecodable", "does not begin as an image"),
        (ENORMOUS, "image_too_large", "30000x30000"),
    ],
)
def test_an_image_that_cannot_be_read_or_sees_no_point_is_counted(
    drive, content, reason, sentence
):
    (drive / "image_02" / "data" / "0000000000.png").write_bytes(content)
    scans = drive / "velodyne_points" / "data"
    np.array([[-9, 0, 0, 1]], np.float32).tofile(scans / "0000000003.bin")
    (scans / "0000000001.bin").write_bytes(bytes(17))
    reasons = [record.reason for record in open_source(f"kitti:{drive}", CONFIG)]
    assert reasons == [reason, "cloud_wrong_size", "no_lidar_point_in_view"]
    with pytest.raises(MessageError, match=sentence):
        write_bag(drive, drive.parent / "bag")
    assert not (drive.parent / "bag").exists()


@pytest.mark.parametrize(
    ("path", "content", "sentence"),
    [
        (".", None, "no such KITTI drive"),
        ("image_02/data", None, r"is not a KITTI drive: it has no image_02/data/\*.png"),
        ("image_02/timestamps.txt", None, "no such KITTI timestamps"),
        (
            "image_02/timestamps.txt",
            "2011-09-26 13:02:25.9\n",
            "has 1 lines; expected the time of every image",
        ),
        ("image_02/timestamps.txt", "yesterday\n" * 4, "expected the time of every image"),
        ("../calib_cam_to_cam.txt", None, "no such KITTI calibration file"),
        (
            "../calib_cam_to_cam.txt",
            "P_rect_02: 1 2 3\n",
            "has P_rect_02: '1 2 3'; expected 12 numbers",
        ),
        ("../calib_velo_to_cam.txt", "T: 0 0 0\n", "has R: 'nothing'; expected 9 numbers"),
    ],
)
def test_what_is_missing_or_malformed_is_one_sentence(drive, path, content, sentence):
    replace_file(drive / path, content)
    with pytest.raises(SourceError, match=sentence):
        open_source(f"kitti:{drive}", CONFIG)


def test_of_each_real_frame_at_least_14000_pixels_remain_scored_after_the_occlusion_filter(
    kitti_drive,
):
    for frame in open_source(f"kitti:{kitti_drive}", CONFIG):
        scored = (frame.ground_truth_m >= 2.5) & (frame.ground_truth_m <= 80)
        assert np.count_nonzero(scored) >= 14_000


def test_the_geometry_of_a_real_drive_is_confirmed(kitti_drive):
    check = GeometryCheck()
    for _ in islice(check.seeing(open_source(f"kitti:{kitti_drive}", CONFIG)), 4):
        pass
    assert check.warnings() == []
    assert check.summary()["edge_fit"] > 4
    assert check.fraction_in_view == pytest.approx(0.14, abs=0.03)


RAW_SIZE = (48, 28)
RAW_K = np.array([[44.0, 0, 24], [0, 45, 14], [0, 0, 1]])
RAW_D = np.array([-0.37, 0.2, 0.001, 0.002, -0.07])


@pytest.fixture
def raw_drive(drive):
    """The same drive before rectification: larger images, and a calibration that says of what."""
    numbers_02 = f"S_02: {numbers(RAW_SIZE)}\nK_02: {numbers(RAW_K)}\nD_02: {numbers(RAW_D)}\n"
    with (drive.parent / "calib_cam_to_cam.txt").open("a") as calibration:
        calibration.write(numbers_02 + f"R_rect_02: {numbers(ROTATION)}\n")
    for file in (drive / "image_02" / "data").iterdir():
        image = np.random.default_rng(1).integers(0, 256, (28, 48, 3), dtype=np.uint8)
        cv2.imwrite(str(file), image)
    return drive


def test_a_drive_of_raw_images_is_rectified_as_opencv_does_it(raw_drive, drive):
    image, camera = KittiSource(raw_drive, CONFIG).image(0)
    raw = cv2.imread(str(raw_drive / "image_02" / "data" / "0000000000.png"))[..., ::-1]
    maps = cv2.initUndistortRectifyMap(
        RAW_K, RAW_D, ROTATION, PROJECTION[:, :3], (40, 24), cv2.CV_32FC1
    )
    expected = cv2.remap(np.ascontiguousarray(raw), *maps, cv2.INTER_LINEAR)
    assert image.shape == (24, 40, 3)
    assert np.abs(image.astype(int) - expected).max() <= 1
    assert_array_equal(camera.intrinsics, PROJECTION[:, :3])


def test_raw_images_of_a_drive_may_be_kept_and_points_are_projected_with_their_lens(raw_drive):
    (record, *_) = open_source(f"kitti:{raw_drive}", SourceConfig(distorted_images="keep"))
    assert record.image.shape == (28, 48, 3)
    points = points_at(0)[:, :3].astype(np.float64)
    offset = np.linalg.solve(PROJECTION[:, :3], PROJECTION[:, 3])
    camera0 = points @ VELODYNE_ROTATION.T + VELODYNE_SHIFT
    camera2 = camera0 @ ROTATION.T + offset
    ahead = camera2[camera2[:, 2] > 1]
    pixels, _ = cv2.projectPoints(ahead, cv2.Rodrigues(ROTATION.T)[0], np.zeros(3), RAW_K, RAW_D)
    columns, rows, _ = image_coordinates(ahead, np.eye(4), record.camera)
    landed = set(map(tuple, np.rint(pixels.reshape(-1, 2)).astype(int)))
    assert len(columns) > 50
    assert set(zip(columns, rows, strict=True)) <= landed
