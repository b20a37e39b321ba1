# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Corruptions grow with their severity, and are the same for the same stamp."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from experiments.corruption import CORRUPTIONS, SEVERITIES, Corruption, corrupted, parse
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.stream.opening import open_source

STAMP = 1_700_000_000_123_456_789
BY_CHANCE = ("night", "rain", "motion_blur", "noise")
DEPTH_M = np.repeat(np.linspace(8, 1, 96, dtype=np.float32)[:, None], 128, axis=1)


def photo() -> np.ndarray:
    """Return an image of plain surfaces with edges."""
    rng = np.random.default_rng(3)
    blocks = rng.integers(30, 200, (19, 23, 3), dtype=np.uint8)
    return cv2.resize(blocks, (128, 96), interpolation=cv2.INTER_NEAREST)


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_a_higher_severity_changes_the_image_more(kind: str) -> None:
    image = photo()
    images = [Corruption(kind, severity)(image, STAMP, DEPTH_M) for severity in SEVERITIES]
    errors = [float(np.abs(one.astype(int) - image).mean()) for one in images]
    assert errors == sorted(errors)
    assert errors[0] > 0
    assert errors[-1] > 1.2 * errors[0]
    assert all(one.dtype == np.uint8 and one.shape == image.shape for one in images)
    np.testing.assert_array_equal(image, photo())


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_the_stamp_is_the_seed(kind: str) -> None:
    corruption = Corruption(kind, 3)
    first = corruption(photo(), STAMP, DEPTH_M)
    np.testing.assert_array_equal(first, corruption(photo(), STAMP, DEPTH_M))
    others = [corruption(photo(), STAMP + later, DEPTH_M) for later in range(1, 9)]
    is_by_chance = kind in (*BY_CHANCE, "white_balance")
    assert any(not np.array_equal(first, other) for other in others) == is_by_chance


def test_fog_leaves_the_near_and_hides_the_far() -> None:
    image = np.zeros((96, 128, 3), np.uint8)
    foggy = Corruption("fog", 3)(image, STAMP, DEPTH_M)[..., 0].astype(float)
    median = float(np.median(DEPTH_M))
    expected = 255 * 0.78 * (1 - np.exp(-0.9 * DEPTH_M / median))
    np.testing.assert_allclose(foggy, expected, atol=1)


def test_fog_takes_the_nearest_depth_where_lidar_has_none() -> None:
    sparse = np.full_like(DEPTH_M, np.nan)
    sparse[::6, ::6] = DEPTH_M[::6, ::6]
    image = photo()
    dense = Corruption("fog", 3)(image, STAMP, DEPTH_M).astype(int)
    filled = Corruption("fog", 3)(image, STAMP, sparse).astype(int)
    assert np.abs(dense - filled).mean() < 4
    nothing = Corruption("fog", 3)(image, STAMP, None)
    unknown = Corruption("fog", 3)(image, STAMP, np.full_like(DEPTH_M, np.nan))
    np.testing.assert_array_equal(nothing, unknown)
    assert nothing[:20].std() < image[:20].std()


def test_tiny_images_are_corrupted_too() -> None:
    for kind in CORRUPTIONS:
        for shape in ((1, 1, 3), (3, 7, 3)):
            image = np.full(shape, 100, np.uint8)
            assert Corruption(kind, 5)(image, 0, None).shape == shape


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fog", "NAME:SEVERITY"),
        ("fog:x", "NAME:SEVERITY"),
        ("snow:3", "'snow'"),
        ("fog:6", "severity of fog is 6"),
        ("fog:0", "severity of fog is 0"),
    ],
)
def test_a_wrong_notation_is_one_clear_sentence(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(text)


class Frames:
    """A source of two frames and a loss."""

    name = "frames"
    notes = ("one was lost",)
    records = (
        Frame(STAMP, "first", image=photo(), ground_truth_m=DEPTH_M),
        Skipped(STAMP + 1, "lost", "it was lost"),
        Frame(STAMP + 2, "last", image=photo(), ground_truth_m=DEPTH_M),
    )

    def __len__(self):
        return len(self.records)

    def __iter__(self):
        return iter(self.records)


def test_a_corrupted_source_changes_images_alone() -> None:
    source = corrupted(Frames(), [parse("overexposed:2"), parse("noise:1")])
    first, lost, last = source
    expected = parse("noise:1")(parse("overexposed:2")(photo(), STAMP), STAMP)
    np.testing.assert_array_equal(first.image, expected)
    assert first.ground_truth_m is DEPTH_M
    assert (first.name, last.stamp_ns) == ("first", STAMP + 2)
    assert lost is Frames.records[1]
    assert (len(source), source.name) == (3, "frames")
    assert source.notes == [
        "one was lost",
        "the images are corrupted by overexposed:2 + noise:1",
    ]
    assert corrupted(source, []) is source


def test_a_corrupted_source_is_opened_by_its_notation() -> None:
    worlds = "synthetic:worlds=1,frames=1,width=64,height=48"
    source = open_source(f"experiments.corruption:overexposed:2+noise:1:{worlds}", SourceConfig())
    (clean,) = open_source(worlds, SourceConfig())
    (frame,) = source
    expected = parse("noise:1")(
        parse("overexposed:2")(clean.image, clean.stamp_ns), clean.stamp_ns
    )
    np.testing.assert_array_equal(frame.image, expected)
    for wrong in ("fog:my_bag", "my_bag", "snow:3:my_bag"):
        with pytest.raises(ConfigError, match=r"NAME:SEVERITY|'snow'"):
            open_source(f"experiments.corruption:{wrong}", SourceConfig())
