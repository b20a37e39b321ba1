# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""NYU folders: one made here, and the real one where it is there."""

from itertools import islice

import cv2
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from test.frames.conftest import replace_file
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.core.records import Frame
from uncertainty_depth.stream.geometry_check import GeometryCheck
from uncertainty_depth.stream.opening import open_source

CONFIG = SourceConfig()


@pytest.fixture
def folder(tmp_path):
    for part in ("rgb", "depth"):
        (tmp_path / part).mkdir()
    (tmp_path / "train.txt").write_text("0002\n0000\n")
    (tmp_path / "test.txt").write_text("0001\n")
    for index in range(3):
        image = np.full((240, 320, 3), (10, 100, 200), np.uint8)
        cv2.imwrite(str(tmp_path / "rgb" / f"{index:04d}.jpg"), image)
        depth = np.full((240, 320), 1000 + index, np.uint16)
        depth[100, 100] = 0
        cv2.imwrite(str(tmp_path / "depth" / f"{index:04d}.png"), depth)
    return tmp_path


@pytest.mark.parametrize(
    ("split", "names"),
    [
        ("", ["0000", "0001", "0002"]),
        (":train", ["0000", "0002"]),
        (":test", ["0001"]),
        (":fit", ["0000"]),
        (":calibrate", ["0002"]),
    ],
)
def test_a_split_gives_its_images_in_order_each_time(folder, split, names):
    source = open_source(f"nyu:{folder}{split}", CONFIG)
    for _ in range(2):
        assert [frame.name for frame in source] == names
    assert len(source) == len(names)


def test_images_are_rgb_and_depth_is_metres_inside_the_evaluation_crop(folder):
    frame = list(open_source(f"nyu:{folder}", CONFIG))[2]
    assert frame.stamp_ns == 200_000_000
    assert_allclose(frame.image[120, 160], [200, 100, 10], atol=3)
    known = np.zeros((240, 320), bool)
    known[22:236, 20:301] = True
    known[100, 100] = False
    assert_array_equal(np.isfinite(frame.ground_truth_m), known)
    assert_array_equal(frame.ground_truth_m[known], np.float32(1.002))
    assert_array_equal(
        frame.camera.intrinsics, [[259.43, 0, 162.79], [0, 259.73, 126.87], [0, 0, 1]]
    )


def test_the_white_border_shows_what_lies_inside_it(folder):
    path = str(folder / "rgb" / "0001.jpg")
    image = np.full((240, 320, 3), 255, np.uint8)
    image[4:-4, 4:-4] = 60
    cv2.imwrite(path, image)
    frame = next(iter(open_source(f"nyu:{folder}:test", CONFIG)))
    assert frame.image.shape == image.shape
    assert frame.image.max() < 100


def test_crop_and_camera_scale_with_the_images(folder):
    for part, name in (("rgb", "0001.jpg"), ("depth", "0001.png")):
        path = str(folder / part / name)
        image = cv2.imread(path, cv2.IMREAD_UNCHANGED)
        cv2.imwrite(path, image.repeat(2, axis=0).repeat(2, axis=1))
    frame = next(iter(open_source(f"nyu:{folder}:test", CONFIG)))
    rows, columns = np.nonzero(np.isfinite(frame.ground_truth_m))
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (44, 471, 40, 601)
    assert frame.camera.intrinsics[0, 0] == 2 * 259.43


def test_files_that_are_missing_or_damaged_are_counted(folder):
    (folder / "rgb" / "0000.jpg").unlink()
    (folder / "depth" / "0001.png").write_bytes(b"no image")
    cv2.imwrite(str(folder / "depth" / "0002.png"), np.zeros((240, 320), np.uint8))
    records = list(open_source(f"nyu:{folder}", CONFIG))
    assert [record.reason for record in records] == [
        "image_undecodable",
        "image_undecodable",
        "depth_undecodable",
    ]
    assert "has pixels of 8 bits" in records[2].message
    assert "expected 16 bits" in records[2].message


@pytest.mark.parametrize(
    ("path", "content", "sentence"),
    [
        (".", None, "no such NYU folder: "),
        ("rgb", None, "is not an NYU folder: it has no rgb/"),
        ("depth", None, "has no depth/"),
        ("test.txt", None, "has no test.txt that lists the test images"),
        ("test.txt", "kitchen\n", "test.txt lists 1 images; expected one number per line"),
    ],
)
def test_what_is_missing_or_malformed_is_one_sentence(folder, path, content, sentence):
    replace_file(folder / path, content)
    with pytest.raises(SourceError, match=sentence):
        open_source(f"nyu:{folder}:test", CONFIG)


def test_the_real_folder_has_the_official_splits(nyu_folder):
    train, test, both = (
        open_source(f"nyu:{nyu_folder}{split}", CONFIG) for split in (":train", ":test", "")
    )
    assert (len(train), len(test), len(both)) == (795, 654, 1449)
    frame = next(iter(test))
    assert isinstance(frame, Frame)
    assert frame.image.shape == (240, 320, 3)
    depth = frame.ground_truth_m[np.isfinite(frame.ground_truth_m)]
    assert depth.size > 50_000
    assert 0.3 < depth.min() < depth.max() <= 10.01


def test_the_geometry_of_real_rooms_is_confirmed(nyu_folder):
    check = GeometryCheck()
    for _ in islice(check.seeing(open_source(f"nyu:{nyu_folder}:test", CONFIG)), 4):
        pass
    assert check.warnings() == []
    assert check.summary()["edge_fit"] > 4
