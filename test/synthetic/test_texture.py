# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Textures against numeric integration over the pixel's footprint."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncertainty_depth.synthetic.materials import (
    Blocks,
    Checker,
    Dots,
    Material,
    Mottled,
    Plain,
    Poster,
    Stripes,
    pulse,
)

BLACK = (0.0, 0.0, 0.0)
WHITE = (1.0, 1.0, 1.0)


def grid(size: float, count: int):
    axis = (np.arange(count) + 0.5) / count * size
    return np.stack(np.meshgrid(axis, axis)).reshape(2, -1).astype(np.float32)


def sharp(uv):
    return np.full_like(uv, 1e-5)


@given(x=st.floats(-3, 3), width=st.floats(0.05, 4), duty=st.floats(0.1, 0.9))
def test_pulse_is_the_mean_of_the_wave_over_the_footprint(x, width, duty):
    samples = x + width * ((np.arange(20000) + 0.5) / 20000 - 0.5)
    expected = np.mean(samples % 1.0 < duty)
    assert pulse(np.float32([x]), np.float32([width]), duty)[0] == pytest.approx(
        expected, abs=2e-3
    )


@pytest.mark.parametrize(
    "texture",
    [
        Checker(0.25, BLACK, WHITE),
        Stripes(0.25, 0.3, 0, BLACK, WHITE),
        Stripes(0.5, 0.6, 1, BLACK, WHITE),
        Dots(0.25, 0.3, BLACK, WHITE),
    ],
)
def test_far_away_a_texture_is_its_mean(texture):
    uv = grid(1.0, 400)
    near = texture(uv, sharp(uv))
    far = texture(uv, np.full_like(uv, 40.0))
    np.testing.assert_allclose(
        far, np.broadcast_to(near.mean(axis=1, keepdims=True), far.shape), atol=0.01
    )


@pytest.mark.parametrize(
    "texture",
    [
        Plain((0.2, 0.4, 0.6)),
        Blocks(0.3, 0.1, 0.01, 0.5, 0.4, WHITE, BLACK),
        Mottled(0.02, 3.0, BLACK, WHITE),
        Poster((0.6, 0.4), 3, (WHITE, BLACK, (0.9, 0.1, 0.1)), BLACK),
    ],
)
def test_albedo_stays_physical(texture):
    uv = grid(3.0, 100)
    albedo = Material(texture, dirt=0.2).albedo(uv, np.full_like(uv, 0.01))
    assert albedo.shape == (3, 10000)
    assert albedo.dtype == np.float32
    assert albedo.min() > 0
    assert albedo.max() < 1
