# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Views of other cameras, against what such cameras see in a rendered room."""

import numpy as np
import pytest
import torch

from experiments.indoor import NYU_MATRIX, NYU_SIZE, Lens, rotation, shape_error, view
from synthetic.config import SynthesisConfig
from synthetic.sensors import CameraView
from synthetic.source import World
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.geometry.focal_length import depth_factor

SIZE = (128, 96)
CANONICAL = 0.9


@pytest.mark.parametrize(
    ("yaw", "pitch", "roll", "zoom", "ratio"),
    [(0.0, 0.0, 0.0, 1.0, 1.0), (0.15, -0.1, 0.1, 1.7, 1.0), (-0.1, 0.2, -0.2, 2.0, 1.15)],
)
def test_a_view_is_what_another_camera_sees_from_the_same_place(yaw, pitch, roll, zoom, ratio):
    world = World(SynthesisConfig(worlds=1, frames=1, seed=3), 0)
    renderer = world._renderer
    place = world.camera_to_world(0)
    own = Camera(*NYU_SIZE, NYU_MATRIX)
    seen = CameraView(renderer, own, place)
    lens = Lens(
        rotation(*(torch.tensor([angle], dtype=torch.float64) for angle in (yaw, pitch, roll))),
        torch.tensor([zoom], dtype=torch.float64),
        torch.tensor([ratio], dtype=torch.float64),
        torch.tensor([False]),
    )
    image = torch.from_numpy(np.ascontiguousarray(seen.radiance, np.float32)).movedim(-1, 0)[None]
    canonical_m = seen.depth_m / depth_factor(own, CANONICAL)
    depth_m = torch.from_numpy(canonical_m.astype(np.float32))[None, None]
    picture, made_m = view(image, depth_m, lens, SIZE)

    width, height = SIZE
    focal_x = zoom * ratio**0.5 * NYU_MATRIX[0, 0] * width / NYU_SIZE[0]
    focal_y = zoom / ratio**0.5 * NYU_MATRIX[1, 1] * height / NYU_SIZE[1]
    matrix = np.array(
        [[focal_x, 0, (width - 1) / 2], [0, focal_y, (height - 1) / 2], [0.0, 0.0, 1.0]]
    )
    other = Camera(width, height, matrix)
    turned_back = np.eye(4)
    turned_back[:3, :3] = lens.turned[0].numpy().T
    expected = CameraView(renderer, other, place @ turned_back)
    expected_m = expected.depth_m / depth_factor(other, CANONICAL)
    known = np.isfinite(made_m[0, 0].numpy())
    ratio_m = made_m[0, 0].numpy()[known] / expected_m[known]
    assert known.mean() > 0.7
    assert np.median(np.abs(ratio_m - 1)) < 0.003
    assert np.quantile(np.abs(ratio_m - 1), 0.9) < 0.03  # the rest are edges
    difference = np.abs(picture[0].movedim(0, -1).numpy() - expected.radiance)[known]
    assert np.median(difference) < 0.03 * expected.radiance.mean()


def test_a_mirrored_view_is_the_mirror_image():
    image = torch.rand(1, 3, 240, 320, generator=torch.Generator().manual_seed(0))
    depth_m = 1 + image[:, :1]
    one = torch.ones(1, dtype=torch.float64)
    turned = rotation(0.1 * one, 0 * one, 0.1 * one)
    plain = view(image, depth_m, Lens(turned, one, one, torch.tensor([False])), SIZE)
    mirrored = view(image, depth_m, Lens(turned, one, one, torch.tensor([True])), SIZE)
    for maps, others in zip(plain, mirrored, strict=True):
        torch.testing.assert_close(maps.flip(-1), others, equal_nan=True)


def test_the_error_of_shape_does_not_see_a_frames_scale():
    generator = torch.Generator().manual_seed(1)
    truth_m = 1 + torch.rand(2, 1, 6, 8, generator=generator)
    depth_m = truth_m * torch.exp(0.1 * torch.randn(truth_m.shape, generator=generator))
    truth_m[0, 0, :3] = torch.nan
    scales = torch.tensor([0.3, 4.0]).reshape(2, 1, 1, 1)
    expected = []
    for made, true in zip(depth_m.numpy(), truth_m.numpy(), strict=True):
        gap = np.log(made / true)[np.isfinite(true)]
        expected.append(np.abs(gap - gap.mean()).mean())
    found = shape_error(depth_m, truth_m)
    assert found == pytest.approx(np.mean(expected), rel=1e-4)
    assert shape_error(scales * depth_m, truth_m) == pytest.approx(float(found), rel=1e-4)
