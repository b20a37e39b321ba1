# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The geometry check on real recordings: silent where it is right, loud where it is not."""

import itertools

import pytest

from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.frames.kitti import KittiSource
from uncertainty_depth.frames.nyu import NyuSource
from uncertainty_depth.stream.geometry_check import GeometryCheck

FRAMES = 4


def first_frames(source):
    """The source and its check, which has seen its first frames."""
    check = GeometryCheck()
    source = check.seeing(source)
    for _ in itertools.islice(source, FRAMES):
        pass
    return source, check


def test_a_kitti_drive_is_confirmed(kitti_drive):
    _, check = first_frames(KittiSource(kitti_drive, SourceConfig()))
    assert check.warnings() == []
    assert check.summary()["edge_fit"] > 4
    assert check.fraction_in_view == pytest.approx(0.14, abs=0.03)


def test_dense_depth_of_rooms_is_confirmed(nyu_folder):
    _, check = first_frames(NyuSource(nyu_folder, "test"))
    assert check.warnings() == []
    assert check.summary()["edge_fit"] > 4
