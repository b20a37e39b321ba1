# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Sparse depth made dense."""

import pytest
import torch

from uncertainty_depth.network.sparse import fill


def sparse(height, width, fraction, seed=0):
    generator = torch.Generator().manual_seed(seed)
    depth = 1 + 4 * torch.rand(2, 1, height, width, generator=generator)
    return torch.where(torch.rand(depth.shape, generator=generator) < fraction, depth, 0.0)


@pytest.mark.parametrize("size", [(16, 16), (13, 21), (1, 7)])
def test_known_depth_stays_and_the_rest_lies_in_its_range(size):
    given = sparse(*size, 0.3)
    given[:, :, 0, 0] = 2.0
    dense = fill(given)
    known = given > 0
    assert torch.equal(dense[known], given[known])
    for one, image in zip(dense, given, strict=True):
        assert one.min() >= image[image > 0].min() - 1e-5
        assert one.max() <= image.max() + 1e-5


def test_one_known_pixel_fills_the_image_and_an_empty_image_stays_empty():
    given = torch.zeros(2, 1, 11, 9)
    given[0, 0, 3, 4] = 5.0
    dense = fill(given)
    torch.testing.assert_close(dense[0], torch.full((1, 11, 9), 5.0))
    assert not dense[1].any()


def test_what_is_filled_in_follows_the_nearest_known_depth():
    given = torch.zeros(1, 1, 32, 32)
    given[0, 0, 4:28:4, 4] = 2.0
    given[0, 0, 4:28:4, 28] = 8.0
    dense = fill(given)[0, 0]
    assert dense[5:27, 3:8].max() < 3
    assert dense[5:27, 25:30].min() > 7
