# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Ray casting against closed forms, and against marching with an independent inside test."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthetic.materials import Material, Plain
from synthetic.solids import Box, Frustum, Sphere

GREY = Material(Plain((0.5, 0.5, 0.5)))
BOX = Box((5.0, 0.0, 1.0), (1.0, 2.0, 1.0), GREY, "box")
TURNED = Box((1.0, 2.0, 0.5), (0.5, 1.0, 0.25), GREY, "box", yaw=0.7)
BALL = Sphere((0.0, 3.0, 1.0), 1.5, GREY, "sphere")
CONE = Frustum((0.0, 0.0, 0.0), 2.0, 1.0, 0.25, GREY, "round")
COLUMN = Frustum((1.0, -1.0, 0.5), 1.5, 0.5, 0.5, GREY, "round")


def one(solid, origin, direction) -> float:
    return float(
        solid.intersect(np.array(origin, np.float32), np.array(direction, np.float32)[:, None])[0]
    )


def contains(solid, points):
    """Return whether (3, N) points are in the solid, independent of the intersection code."""
    if isinstance(solid, Sphere):
        return np.linalg.norm(points.T - solid.centre, axis=1) <= solid.radius
    if isinstance(solid, Box):
        x, y, z = (points.T - solid.centre).T
        along = x * np.cos(solid.yaw) + y * np.sin(solid.yaw)
        across = y * np.cos(solid.yaw) - x * np.sin(solid.yaw)
        return (
            (abs(along) <= solid.half[0])
            & (abs(across) <= solid.half[1])
            & (abs(z) <= solid.half[2])
        )
    share = (points[2] - solid.base[2]) / solid.height
    radius = (1 - share) * solid.base_radius + share * solid.top_radius
    return (
        (share >= 0)
        & (share <= 1)
        & (np.hypot(points[0] - solid.base[0], points[1] - solid.base[1]) <= radius)
    )


@pytest.mark.parametrize(
    ("solid", "origin", "direction", "expected"),
    [
        (BOX, (0, 0, 1), (1, 0, 0), 4.0),
        (BOX, (0, 0, 1), (2, 0, 0), 2.0),  # t counts lengths of the direction
        (BOX, (0, 0, 1), (-1, 0, 0), np.inf),
        (BOX, (0, 3, 1), (1, 0, 0), np.inf),
        (BOX, (5, 0, 1), (1, 0, 0), np.inf),  # from inside nothing is entered
        (BOX, (5, 0, 6), (0, 0, -1), 4.0),
        (
            Box((4.0, 0.0, 0.0), (1.0, 1.0, 1.0), GREY, "box", yaw=np.pi / 4),
            (0, 0, 0),
            (1, 0, 0),
            4 - np.sqrt(2),
        ),
        (BALL, (0, 0, 1), (0, 1, 0), 1.5),
        (BALL, (1.2, 0, 1), (0, 1, 0), 3 - np.sqrt(1.5**2 - 1.2**2)),
        (BALL, (1.6, 0, 1), (0, 1, 0), np.inf),
        (BALL, (0, 3, 1), (0, 1, 0), np.inf),
        (CONE, (-3, 0, 1), (1, 0, 0), 3 - 0.625),  # half way up the radius is the mean of both
        (CONE, (0.1, 0, 5), (0, 0, -1), 3.0),  # the top
        (CONE, (0.625, 0, 5), (0, 0, -1), 4.0),  # the slope
        (CONE, (-3, 0, 2.1), (1, 0, 0), np.inf),
        (CONE, (0, 0, 1), (1, 0, 0), np.inf),
        (COLUMN, (1, -4, 1), (0, 1, 0), 2.5),
    ],
)
def test_a_ray_meets_a_solid_where_geometry_says(solid, origin, direction, expected):
    assert one(solid, origin, direction) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("solid", [BOX, TURNED, BALL, CONE, COLUMN])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_the_first_point_inside_found_by_marching_is_the_hit(solid, seed):
    rng = np.random.default_rng(seed)
    origin = np.asarray(solid.centre) + (towards := rng.standard_normal(3)) / np.linalg.norm(
        towards
    ) * rng.uniform(3, 6)
    direction = solid.centre + rng.uniform(-1, 1, 3) * solid.bound - origin
    direction /= np.linalg.norm(direction)
    steps = np.arange(0, 12, 1e-3)
    inside = np.flatnonzero(contains(solid, origin[:, None] + direction[:, None] * steps))
    hit = one(solid, origin, direction)
    if len(inside):
        assert hit == pytest.approx(steps[inside[0]], abs=2e-3)
    elif np.isfinite(hit):  # a graze shorter than a step
        assert not contains(solid, (origin + direction * (hit + 1e-3))[:, None])[0]
