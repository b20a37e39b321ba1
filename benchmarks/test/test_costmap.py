# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The costmap's benchmark in a room whose answers are known."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks.costmap import Scene
from benchmarks.moments import MEASURES, STRIDE, Moment
from benchmarks.ray_ends import STEPS, agreed, exact, factor, nearest
from benchmarks.voxel_layer import Layer
from synthetic.sensors import CAMERA_TO_BASE, make_camera
from uncertainty_depth.core.records import DepthPrediction


@pytest.fixture
def moment():
    """A box at 1.5 m before a wall at 4 m, predicted exactly, sigma a tenth; seen twice."""
    truth_m = np.full((120, 160), 4.0, np.float32)
    truth_m[40:90, 60:100] = 1.5
    prediction = DepthPrediction(truth_m, truth_m / 10)
    predictions = dict.fromkeys(("", *MEASURES), prediction)
    camera = make_camera(160, 120)
    before = Moment(camera, CAMERA_TO_BASE.copy(), truth_m, predictions, None)
    return Moment(camera, CAMERA_TO_BASE.copy(), truth_m, predictions, before)


def test_the_nearest_exact_depth_erases_nothing_and_clears_most(moment):
    scene = Scene(moment, Layer())
    erased, obstacles, cleared, phantoms, behind, _ = scene.cleared(partial(nearest, exact))
    assert obstacles > 50
    assert (erased, behind) == (0, 0)
    assert cleared / phantoms > 0.7
    assert scene.cleared(exact)[0] > 0, "rays graze the box"


def test_a_depth_too_large_erases_what_it_passes(moment):
    erased, *_, behind, rays = Scene(moment, Layer()).cleared(partial(factor, 1.5))
    assert erased > Scene(moment, Layer()).cleared(exact)[0]
    assert behind == rays


def test_exact_marks_miss_nothing_and_are_true(moment):
    missed, _, false, *_ = Scene(moment, Layer()).marks(exact)
    assert (missed, false) == (0, 0)


def test_a_frame_agrees_with_itself(moment):
    alone, both = (ends(moment) for ends in (exact, partial(agreed, exact)))
    step = 1.01 / STEPS  # by rounding
    assert_allclose(both[::STRIDE, ::STRIDE], alone[::STRIDE, ::STRIDE], rtol=step)
