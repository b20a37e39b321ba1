# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.

import logging
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from test.conftest import ListSource
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.networks.encoder import resize_image
from uncertainty_depth.depth.training import frames
from uncertainty_depth.depth.training.frames import (
    TrainingFrames,
    augment,
    change_light,
    change_sensor,
    read_frames,
    split_frames,
    zoom,
)
from uncertainty_depth.depth.training.record import domain, median_depth
from uncertainty_depth.depth.training.run import train


def frame(depth: float, height: int = 48, width: int = 64) -> Frame:
    image = np.random.default_rng(int(np.nan_to_num(depth) * 100)).integers(
        0, 256, (height, width, 3), dtype=np.uint8
    )
    depth_m = np.full((height, width), depth, np.float32)
    return Frame(0, str(depth), image=image, ground_truth_m=depth_m)


def test_a_source_becomes_five_bytes_per_pixel():
    frames = read_frames(ListSource([frame(1.0), frame(2.0)]), (32, 40))
    pairs = zip(frames.images, frames.depths_m, strict=True)
    assert [image.nbytes + depth.nbytes for image, depth in pairs] == [32 * 40 * 5] * 2
    images, depths = frames.batch([1, 0])
    assert images.shape == (2, 3, 40, 32)
    assert depths.flatten(1).mean(1).tolist() == [2.0, 1.0]
    expected = resize_image(frame(2.0).image, (32, 40))
    np.testing.assert_array_equal(
        (images[0] * 255).round().byte().permute(1, 2, 0).numpy(), expected
    )


def test_pixels_that_the_lens_does_not_see_are_not_trained_on():
    seen = np.zeros((48, 64), bool)
    seen[:, 32:] = True
    camera = replace(Camera.pinhole(50.0, width=64, height=48), seen=seen)
    kept = read_frames(ListSource([replace(frame(2.0), camera=camera)] * 2), (64, 48)).depths_m[0]
    np.testing.assert_array_equal(np.isfinite(kept), seen)


@given(st.floats(0.01, 200.0))
def test_half_precision_keeps_depth_to_a_twentieth_of_a_percent(depth):
    kept = read_frames(ListSource([frame(depth, 4, 4)] * 2), (32, 32)).depths_m[0]
    assert np.abs(kept.astype(float) / depth - 1).max() <= 5.1e-4


def test_what_cannot_be_trained_on_is_counted_and_reported(caplog):
    torn = [Skipped(stamp, "image_wrong_step", ".") for stamp in (1, None)]
    records = ListSource([frame(1.0), torn[0], frame(np.nan), frame(2.0), torn[1]])
    records.notes = ("the last chunk was cut off",)
    with caplog.at_level(logging.WARNING):
        frames = read_frames(records, (32, 32))
    assert frames.skipped == {"image_wrong_step": 2, "no_ground_truth": 1}
    sentence = "list: 2 frames to train on, skipped image_wrong_step: 2, no_ground_truth: 1"
    assert sentence in caplog.text
    assert "the last chunk was cut off" in caplog.text


@pytest.mark.parametrize(
    "records", [[], [frame(1.0)], [frame(1.0), frame(np.nan), Skipped(0, "gone", ".")]]
)
def test_too_few_frames_are_an_error_that_says_what_was_lost(records):
    with pytest.raises(SourceError, match=r"list has \d frames with ground truth") as caught:
        read_frames(ListSource(records), (32, 32))
    assert ("no_ground_truth: 1" in str(caught.value)) == (len(records) == 3)


def test_max_frames_spreads_evenly():
    source = ListSource([frame(1.0 + index) for index in range(10)])
    frames = read_frames(source, (32, 32), max_frames=4)
    assert [float(depth[0, 0]) for depth in frames.depths_m] == [1, 3, 6, 8]


def test_the_fingerprint_sees_one_pixel():
    frames = read_frames(ListSource([frame(1.0), frame(2.0)]), (32, 32))
    before = frames.fingerprint()
    assert before == read_frames(ListSource([frame(1.0), frame(2.0)]), (32, 32)).fingerprint()
    frames.images[1][3, 4, 2] ^= 1
    assert frames.fingerprint() != before


@given(count=st.integers(2, 2000), share=st.floats(0.01, 0.9), seed=st.integers(0, 99))
def test_the_split_is_whole_disjoint_and_as_large_as_asked(count, share, seed):
    training, validation = split_frames(count, share, seed)
    assert sorted(training + validation) == list(range(count))
    assert len(validation) == min(max(round(share * count), 1), count - 1)
    assert (training, validation) == split_frames(count, share, seed)


def test_the_median_is_that_of_each_cell_to_the_millimetre_and_null_where_unknown():
    random = np.random.default_rng(0)
    depths_m = random.uniform(1, 9, (5, 16, 20)).astype(np.float32)
    depths_m[:3, 0, 0] = np.nan
    depths_m[:, 15, 19] = np.nan
    rows = median_depth(list(depths_m.repeat(3, axis=1).repeat(3, axis=2)))
    assert (len(rows), {len(row) for row in rows}) == (16, {20})
    assert rows[15][19] is None
    assert rows[0][0] == round(float(np.mean(depths_m[3:, 0, 0])), 3)
    assert rows[7][3] == round(float(np.median(depths_m[:, 7, 3])), 3)


def test_training_writes_them_of_its_training_frames_alone(small, tmp_path):
    source, network, training = small
    frames = enumerate(source.records)
    source.records = [replace(it, camera=Camera.pinhole(40.0 + n, 80, 60)) for n, it in frames]
    folder = train(source, tmp_path / "model", network, training)
    described = read_model(folder).training
    indices, _ = split_frames(len(source.records), training.validation_fraction, training.seed)
    assert described["camera"]["focal_length_per_width"] == [
        (40 + min(indices)) / 80,
        (40 + max(indices)) / 80,
    ]
    known = [value for row in described["median_depth_m"] for value in row if value is not None]
    assert 1 <= min(known) <= max(known) <= 6


def test_depth_is_learnt_as_a_canonical_camera_sees_it_and_described_as_it_is():
    camera = Camera(80, 64, np.array([[143.1, 0, 40], [0, 143.1, 32], [0, 0, 1]]))
    frames = TrainingFrames(canonical=1.0)
    image = np.zeros((64, 80, 3), np.uint8)
    depth_m = np.full((64, 80), 4, np.float32)
    frames.add(Frame(0, "frame", camera, image, ground_truth_m=depth_m), 40, 32)
    np.testing.assert_allclose(frames.depths_m[0], 2, rtol=1e-3)
    described = domain(frames, [0])
    assert described["camera"]["relative_focal_length"] == pytest.approx([2, 2], rel=1e-3)
    assert described["median_depth_m"][0][0] == pytest.approx(4, rel=1e-3)


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
