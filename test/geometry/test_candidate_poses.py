# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Each common mistake with extrinsics has a candidate that undoes it."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from uncertainty_depth.geometry.transforms import (
    BODY_TO_OPTICAL,
    BODY_TO_OPTICAL_OPTION,
    looks_like_body_frame,
    transform_from,
)


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
