# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
import pytest
import torch

from uncertainty_depth.depth.training import frames
from uncertainty_depth.depth.training.frames import augment, change_light, change_sensor, zoom


def batch(count: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    depth = torch.rand(count, 1, 6, 8, generator=torch.Generator().manual_seed(1)) + 1
    return (depth - 1).expand(-1, 3, -1, -1).clone(), depth


@pytest.fixture
def unzoomed(monkeypatch):
    monkeypatch.setattr(frames, "ZOOM", 1.0)


@pytest.mark.usefixtures("unzoomed")
def test_half_of_the_frames_are_flipped_image_and_depth_together():
    images, depth = batch()
    changed, moved = augment(images, depth, torch.Generator().manual_seed(0))
    mirrored = torch.tensor(
        [
            torch.allclose(after, before.flip(-1))
            for before, after in zip(depth, moved, strict=True)
        ]
    )
    same = torch.tensor(
        [torch.allclose(after, before) for before, after in zip(depth, moved, strict=True)]
    )
    assert (mirrored ^ same).all()
    assert 16 < mirrored.sum() < 48
    for image, truth in zip(
        changed, moved, strict=True
    ):  # brighter still means farther, pixel by pixel
        assert torch.corrcoef(torch.stack([image[0].flatten(), truth.flatten()]))[0, 1] > 0.95


def test_a_stretched_frame_counts_as_one_of_another_focal_length():
    """Two ramps give the zooms of width and height; depth is divided by their geometric mean."""
    across = torch.linspace(0.2, 0.8, 160).expand(64, 1, 128, 160)
    down = torch.linspace(0.2, 0.8, 128)[:, None].expand(64, 1, 128, 160)
    images = torch.cat([across, down, down], dim=1)
    enlarged, depth = zoom(
        images, torch.ones(64, 1, 128, 160), torch.Generator().manual_seed(0), stretch=1.2
    )
    width = 0.6 / (enlarged[:, 0, 64, -1] - enlarged[:, 0, 64, 0])
    height = 0.6 / (enlarged[:, 1, -1, 80] - enlarged[:, 1, 0, 80])
    assert torch.minimum(width, height).min() > 0.99
    assert 1.1 < (width / height).max() < 1.22
    assert 1.1 < (height / width).max() < 1.22
    torch.testing.assert_close(
        depth[:, 0, 64, 80], 1 / (width * height).sqrt(), atol=0.01, rtol=0.01
    )


def test_zoom_takes_depth_that_was_measured_and_never_blends():
    depth = torch.where(
        torch.rand(16, 1, 40, 48, generator=torch.Generator().manual_seed(2)) < 0.1, 6.0, torch.nan
    )
    depth[:, :, :, 24:] = depth[:, :, :, 24:] / 3
    _, moved = zoom(torch.rand(16, 3, 40, 48), depth, torch.Generator().manual_seed(0))
    for truth in moved:
        known = truth[~truth.isnan()]
        assert 0.03 < len(known) / truth.numel() < 0.25
        near = known.min()
        far = known.max()
        assert (((known - near).abs() < 1e-5) | ((known - far).abs() < 1e-5)).all()


def test_a_rolled_frame_turns_about_its_middle_and_knows_no_depth_beyond_its_edge():
    """Two ramps of one slope per pixel give the angle: a turn keeps their gradients' length."""
    count, height, width = 32, 96, 160
    across = torch.arange(width).expand(count, 1, height, width) / width
    down = torch.arange(height)[:, None].expand(count, 1, height, width) / width
    depth = torch.full((count, 1, height, width), 2.0)
    turned, moved = zoom(
        torch.cat([across, down, down], dim=1), depth, torch.Generator().manual_seed(0), roll=10.0
    )
    middle = turned[:, :2, height // 2 - 1 : height // 2 + 2, width // 2 - 1 : width // 2 + 2]
    right = (middle[:, :, 1, 2] - middle[:, :, 1, 1]) * width  # of across, of down
    below = (middle[:, :, 2, 1] - middle[:, :, 1, 1]) * width
    factor = 2 / moved[:, 0, height // 2, width // 2]
    angles = torch.atan2(right[:, 1], right[:, 0]).rad2deg()
    torch.testing.assert_close(right.norm(dim=1) * factor, torch.ones(count), atol=0.01, rtol=0)
    torch.testing.assert_close(below[:, 0], -right[:, 1], atol=0.01, rtol=0)
    torch.testing.assert_close(below[:, 1], right[:, 0], atol=0.01, rtol=0)
    assert angles.min() < -7
    assert angles.max() > 7
    assert angles.abs().max() < 10.1
    torch.testing.assert_close(
        moved[moved.isfinite()], (2 / factor).repeat_interleave(moved.isfinite().sum((1, 2, 3)))
    )
    unknown = moved.isnan().float().mean((1, 2, 3))
    assert unknown.max() > 0.02
    assert unknown.max() < 0.3


def test_a_sensor_changes_sharpness_and_noise_but_keeps_grey_grey():
    edge = torch.cat([torch.full((100, 3, 16, 16), 0.3), torch.full((100, 3, 16, 16), 0.6)], -1)
    changed = change_sensor(edge, torch.Generator().manual_seed(0))
    assert changed.min() >= 0
    assert changed.max() <= 1
    levels = changed[..., 2:10].mean((2, 3))
    torch.testing.assert_close(
        levels, levels.mean(1, keepdim=True).expand(-1, 3), atol=0.02, rtol=0
    )
    assert levels.mean(1).min() < 0.22
    assert levels.mean(1).max() > 0.4
    noise = changed[..., 2:10].std((2, 3)).mean(1)
    assert noise.min() < 0.005
    assert 0.03 < noise.max() < 0.05
    steps = (changed[..., 16] - changed[..., 15]).mean((1, 2)) / (
        changed[..., 22:30].mean((1, 2, 3)) - levels.mean(1)
    )
    assert steps.min() < 0.4
    assert steps.max() > 1.2


def test_light_changes_each_frame_in_its_own_way_within_bounds():
    grey = torch.full((200, 3, 4, 4), 0.5)
    levels = change_light(grey, torch.Generator().manual_seed(0))[:, :, 0, 0]
    assert levels.min() >= 0.5 * 0.8 * 0.9 - 1e-6
    assert levels.max() <= 0.5 * 1.2 * 1.1 + 1e-6
    assert levels.mean().item() == pytest.approx(0.5, abs=0.02)
    assert len(levels.unique(dim=0)) == 200
    assert (levels[:, 0] != levels[:, 1]).all()
