# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Which way up an image file is: a photograph as people see it, a camera's frame as it was taken.

Depth and the camera matrix beside a frame know nothing of what its Exif data say.
"""

from io import BytesIO

import cv2
import numpy as np
import PIL.Image
import PIL.ImageOps
import pytest
from numpy.testing import assert_allclose

from test.frames.messages.conftest import compressed_message
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.frames.image_files import as_rgb
from uncertainty_depth.frames.messages.images import decode_image
from uncertainty_depth.stream.opening import open_source

STORED = np.zeros((16, 24, 3), np.uint8)
STORED[:8, :8] = [240, 20, 20]
STORED[8:, 16:] = [20, 20, 240]
ORIENTATION_TAG = 0x0112


def photograph(orientation: int, name: str = "jpeg") -> bytes:
    exif = PIL.Image.Exif()
    exif[ORIENTATION_TAG] = orientation
    stream = BytesIO()
    lossless = {"jpeg": {"quality": 98, "subsampling": 0}, "webp": {"lossless": True}}
    options = lossless.get(name, {})
    PIL.Image.fromarray(STORED).save(stream, name, exif=exif, **options)
    return stream.getvalue()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("name", ["jpeg", "png", "webp"])
def test_a_photograph_is_upright_whether_named_or_opened(name, orientation, tmp_path):
    path = tmp_path / f"photograph.{name}"
    path.write_bytes(photograph(orientation, name))
    with PIL.Image.open(path) as image:
        upright = np.asarray(PIL.ImageOps.exif_transpose(image))
        assert_allclose(as_rgb(image), upright)
    assert_allclose(as_rgb(path).astype(int), upright, atol=8)


@pytest.mark.parametrize("orientation", [3, 6])
def test_a_frame_beside_depth_stays_as_it_was_taken(orientation, tmp_path):
    data = photograph(orientation)
    depth = np.full(STORED.shape[:2], 2000, np.uint16)
    for name in ("rgb", "depth", "image", "ground_truth"):
        (tmp_path / name).mkdir()
    for name in ("rgb", "image"):
        (tmp_path / name / "0.jpg").write_bytes(data)
    for name in ("depth", "ground_truth"):
        cv2.imwrite(str(tmp_path / name / "0.png"), depth)
    for notation in (f"rgbd:{tmp_path}", f"predictions:{tmp_path}"):
        (frame,) = open_source(notation, SourceConfig())
        assert_allclose(frame.image.astype(int), STORED, atol=8)
        assert frame.is_registered
    message = compressed_message("jpeg", data)
    assert_allclose(decode_image(message).astype(int), STORED, atol=8)
