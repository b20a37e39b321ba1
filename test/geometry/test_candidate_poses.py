# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Each common mistake with extrinsics has a candidate that undoes it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from uncertainty_depth.geometry.transforms import (
    BODY_TO_OPTICAL,
    BODY_TO_OPTICAL_OPTION,
    candidate_poses,
    looks_like_body_frame,
    transform_from,
)

TRUE = transform_from(0.06, -0.25, -0.1, 0.48, -0.52, 0.5, -0.5)  # a LiDAR above a camera


@pytest.mark.parametrize(
    ("mistake", "name"),
    [
        (np.linalg.inv(TRUE), "the inverse"),
        (TRUE @ TRUE, "applied twice"),
        (BODY_TO_OPTICAL.T @ TRUE, "followed by body frame"),
        (BODY_TO_OPTICAL @ TRUE, "without the step from body frame"),
    ],
)
def test_the_candidate_of_a_mistake_is_the_true_pose(mistake, name):
    candidates = candidate_poses(mistake)
    matches = [other for other in candidates if np.allclose(candidates[other], TRUE, atol=1e-6)]
    assert len(matches) == 1
    assert name in matches[0]


def test_the_given_pose_is_no_candidate():
    assert not any("without any transform" in name for name in candidate_poses(np.eye(4)))


def test_the_option_that_errors_name_is_the_turn_from_body_to_optical_frame():
    assert_allclose(
        transform_from(*map(float, BODY_TO_OPTICAL_OPTION.split())), BODY_TO_OPTICAL, atol=1e-12
    )


def test_a_cloud_over_a_floor_tells_its_up_axis():
    rng = np.random.default_rng(0)
    body = rng.uniform([-20, -20, -1.5], [20, 20, 1.0], (5000, 3))
    optical = body @ BODY_TO_OPTICAL[:3, :3].T
    assert looks_like_body_frame(body)
    assert not looks_like_body_frame(optical)
