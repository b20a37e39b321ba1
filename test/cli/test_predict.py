# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""`predict`: one bad image of many, a full disk, Ctrl-C, and viewable images."""

import resource

import cv2
import numpy as np
import pytest

from uncertainty_depth.core.model_location import SHIPPED_MODEL


@pytest.fixture
def photos(tmp_path):
    paths = [tmp_path / f"{name}.png" for name in "abc"]
    for path in paths:
        cv2.imwrite(str(path), np.full((30, 40, 3), 99, np.uint8))
    return paths


def predict(photos, output):
    return ["predict", *photos, "--model", SHIPPED_MODEL, "--output", output, "--samples", "1"]


def test_one_unreadable_image_of_many_is_named_and_counted(command, photos, tmp_path):
    photos[1].write_bytes(b"no image")
    done = command(*predict(photos, tmp_path / "maps"))
    assert done.returncode == 1
    assert done.stdout.split() == [str(tmp_path / "maps" / f"{name}_plot.png") for name in "ac"]
    last = done.stderr.strip().splitlines()[-1]
    assert "1 of 3 images could not be read" in last
    assert str(photos[1]) in last
    assert cv2.imread(str(tmp_path / "maps" / "c_depth.tiff"), -1).dtype == np.float32


def test_unfamiliar_images_are_named_even_a_single_one(command, photos, tmp_path):
    done = command(*predict(photos[:1], tmp_path / "maps"))
    assert done.returncode == 0
    assert "1 of 1 images look unlike the training images" in done.stderr
    assert str(photos[0]) in done.stderr


def test_measurements_that_image_files_do_not_bring_are_told(command, photos, tmp_path):
    done = command(*predict(photos[:1], tmp_path / "maps"), "--measurements", "lidar")
    assert done.returncode == 0
    assert "measurements is 'lidar', and image files bring none" in done.stderr


def test_depth_follows_the_focal_length_of_the_images(command, photos, tmp_path):
    for pixels in ("40", "80"):
        arguments = predict(photos[:1], tmp_path / pixels)
        arguments[arguments.index(SHIPPED_MODEL)] = "indoor"
        assert command(*arguments, "--focal-length", pixels).returncode == 0
    near, far = (cv2.imread(str(tmp_path / f / "a_depth.tiff"), -1) for f in ("40", "80"))
    np.testing.assert_allclose(far, 2 * near, rtol=1e-5)


def test_a_disk_without_room_is_named_and_nothing_half_written_stays(command, photos, tmp_path):
    """A limit on the size of files stands in for the disk: the same call fails in the same way."""
    maps = tmp_path / "maps"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        done = command(*predict(photos, maps))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"{maps / 'a_depth.tiff'}: File too large" in done.stderr.splitlines()[-1]
    assert not maps.exists()


def test_ctrl_c_finishes_the_image(strike, photos, tmp_path):
    maps = tmp_path / "maps"
    done = strike(predict(photos, maps), call=2)
    assert done.returncode == 130
    assert sorted(path.name for path in maps.glob("*.png")) == ["a_plot.png", "b_plot.png"]
