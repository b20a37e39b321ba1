# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The experiment `segmentation` in miniature, on a folder like CamVid."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from torch import nn

from experiments import segmentation
from experiments.classification_metrics import OnlineClassification
from experiments.segmentation_data import (
    CLASSES,
    VOID,
    LabelledImages,
    augment,
    read,
)
from experiments.segmentation_network import DeepLab
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.depth.networks.encoder import IMAGENET_MEAN, image_tensor

TRAINING = segmentation.Training((32, 24), "tiny", 4, (1, 2, 3), steps=2, batch=2)
SETTINGS = segmentation.Settings(TRAINING, counts=(1, 2), sets=2)


@pytest.fixture(scope="module")
def camvid_like(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a folder like CamVid: three images by day and two at dusk in each split, 64x48."""
    folder = tmp_path_factory.mktemp("data") / "camvid"
    rng = np.random.default_rng(0)
    for split in ("train", "test"):
        (folder / split).mkdir(parents=True)
        (folder / f"{split}annot").mkdir()
        for number, drive in enumerate(("0006R0", "0006R0", "Seq05VD", "0001TP", "0001TP")):
            name = f"{drive}_{number:06d}"
            strips = np.append(rng.integers(0, VOID, 5), VOID)
            label = np.repeat(strips, 8)[:, None].repeat(64, 1)
            image = (20 * label[..., None] + rng.integers(0, 20, (48, 64, 3))).astype(np.uint8)
            cv2.imwrite(str(folder / split / f"{name}.png"), image)
            cv2.imwrite(str(folder / f"{split}annot" / f"{name}.png"), label.astype(np.uint8))
    return folder


@pytest.fixture(scope="module")
def small_run(camvid_like: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run three members and one network with MC-dropout; return the output folder."""
    output = tmp_path_factory.mktemp("segmentation")
    segmentation.compare(output, 3, SETTINGS, camvid_like.parent)
    return output


def test_the_network_has_stride_8_and_logits_of_the_images_size() -> None:
    network = DeepLab("tiny", 11, 8, (2, 4, 6), has_dropout=False).eval()
    sizes = []
    for stage in network.encoder.backbone.encoder.stages:
        stage.register_forward_hook(lambda *call: sizes.append(tuple(call[-1].shape[-2:])))
    assert network(torch.rand(2, 3, 64, 96)).shape == (2, 11, 64, 96)
    assert sizes == [(16, 24), (8, 12), (8, 12), (8, 12)]
    dilations = [
        {
            m.dilation[0]
            for m in stage.modules()
            if isinstance(m, nn.Conv2d) and m.kernel_size[0] > 1
        }
        for stage in network.encoder.backbone.encoder.stages
    ]
    assert dilations == [{1}, {1}, {2}, {4}]


def test_mc_dropout_is_on_when_predicting_after_each_of_the_four_stages() -> None:
    images = torch.rand(1, 3, 32, 32)
    sure = DeepLab("tiny", 3, 4, (1,), has_dropout=False).eval()
    assert torch.equal(sure(images), sure(images))
    network = DeepLab("tiny", 3, 4, (1,), has_dropout=True).eval()
    assert not torch.equal(network(images), network(images))
    zeros = []
    for module in (*list(network.encoder.backbone.encoder.stages)[1:], network.pyramid):
        module.register_forward_pre_hook(
            lambda _, inputs: zeros.append(float((inputs[0] == 0).float().mean()))
        )
    network(images)
    assert len(zeros) == 4
    assert all(0.4 < fraction < 0.95 for fraction in zeros)


def test_augmented_labels_stay_on_their_pixels() -> None:
    """The image is its label: wherever a label is not void, the colour tells the same."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.zeros(16, 24, 32, dtype=torch.uint8)
    labels[:, 12:] = 4
    labels[:, :, 16:] += 3
    images = (labels / 10.0)[:, None].repeat(1, 3, 1, 1)
    moved, kept = augment(images, labels, generator)
    assert kept.shape == labels.shape
    assert set(kept.unique().tolist()) == {0, 3, 4, 7, VOID}
    pool = nn.MaxPool2d(5, 1)
    level = kept.float()[:, None]
    away = (pool(level) == -pool(-level))[:, 0]  # no pixel of another label within two
    moved = moved[:, :, 2:-2, 2:-2]
    kept = kept[:, 2:-2, 2:-2]
    inside = away & (kept != VOID)
    assert inside.float().mean() > 0.3
    assert torch.allclose(moved[:, 0][inside], kept[inside] / 10.0, atol=1e-4)
    padded = away & (kept == VOID)
    mean = torch.tensor(IMAGENET_MEAN)
    assert padded.any()
    assert torch.allclose(moved.movedim(1, -1)[padded], mean, atol=1e-4)


def test_sets_are_of_the_members_there_are_and_of_the_first_passes_of_mc_dropout() -> None:
    settings = segmentation.Settings(TRAINING, counts=(1, 2, 4, 8), sets=6)
    members = [segmentation.make_network(TRAINING, False) for _ in range(5)]
    samples, sets = segmentation.samples_and_sets(members, settings)
    assert samples == members
    assert {count: len(drawn) for count, drawn in sets.items()} == {1: 5, 2: 6, 4: 5}
    for count, drawn in sets.items():
        assert len(set(drawn)) == len(drawn)
        assert all(len(set(chosen)) == count and max(chosen) < 5 for chosen in drawn)
    network = segmentation.make_network(TRAINING, True)
    samples, sets = segmentation.samples_and_sets([network], settings)
    assert samples == [network] * 8
    assert sets[4] == [(0, 1, 2, 3)]


def test_scores_are_of_the_mean_probabilities_of_each_set(camvid_like: Path) -> None:
    torch.manual_seed(0)
    networks = [segmentation.make_network(TRAINING, False).eval() for _ in range(3)]
    frames = read(camvid_like, "test", False, TRAINING.size)
    scores = segmentation.score(networks, {1: [(1,)], 2: [(0, 2)]}, frames)
    expected = OnlineClassification(len(CLASSES), VOID)
    for image, label in zip(frames.images, frames.labels, strict=True):
        with torch.inference_mode():
            both = [networks[k](image_tensor(image[None])).softmax(1)[0] for k in (0, 2)]
        mean = (both[0] + both[1]) / 2
        expected.update(mean.reshape(len(CLASSES), -1).T.numpy(), label.reshape(-1))
    found = {name: scores[2][0][name] for name in expected.compute()}
    assert found == pytest.approx(expected.compute(), rel=1e-6)
    assert scores[1][0]["brier"] != found["brier"]


def test_a_run_scores_both_methods_by_day_and_at_dusk(small_run: Path) -> None:
    summary = json.loads((small_run / "summary.json").read_text())
    assert (summary["members"], summary["dropout_models"]) == (3, 1)
    scores = summary["scores"]
    for domain in ("day", "dusk"):
        lengths = {count: len(sets) for count, sets in scores[domain]["ensemble"].items()}
        assert lengths == {"1": 2, "2": 2}
        assert {len(sets) for sets in scores[domain]["mc_dropout"].values()} == {1}
    pixels = {domain: scores[domain]["ensemble"]["1"][0]["pixels"] for domain in scores}
    assert pixels == {"day": 3 * 20 * 32, "dusk": 2 * 20 * 32}  # a sixth is void
    text = (small_run / "table.md").read_text()
    assert text.startswith("3 ensemble members, 1 networks of MC-dropout")
    assert "| dusk | ECE | mc_dropout |" in text
    for plot in ("metrics", "reliability", "sparsification", "examples"):
        assert (small_run / f"{plot}.png").stat().st_size > 1000


def test_a_killed_run_goes_on_where_it_stopped(
    small_run: Path, camvid_like: Path, refuse_again: Callable[..., None]
) -> None:
    before = (small_run / "summary.json").read_text()
    (small_run / "results" / "dusk_mc_dropout_000.json").unlink()
    refuse_again((segmentation, "train"))
    segmentation.compare(small_run, 3, SETTINGS, camvid_like.parent)
    assert (small_run / "summary.json").read_text() == before
    weights = small_run / "weights" / "mc_dropout_000.safetensors"
    content = weights.read_bytes()
    weights.unlink()
    with pytest.raises(SourceError, match=r"mc_dropout_000.safetensors is missing; remove"):
        segmentation.compare(small_run, 3, replace(SETTINGS, sets=1), camvid_like.parent)
    weights.write_bytes(content)


def test_training_is_the_same_again(camvid_like: Path) -> None:
    frames = read(camvid_like, "train", False, TRAINING.size)
    runs = [segmentation.train("mc_dropout_001", TRAINING, frames) for _ in range(2)]
    for name, value in runs[0][0].state_dict().items():
        assert torch.equal(value, runs[1][0].state_dict()[name]), name
    assert runs[0][1][:3] == runs[1][1][:3]


def test_a_missing_drive_is_named(camvid_like: Path) -> None:
    with pytest.raises(SourceError, match=r"val has no .jpg or .png images of drive 0001TP"):
        read(camvid_like, "val", True, (32, 24))


@pytest.mark.parametrize(
    ("label", "sentence"),
    [
        (
            np.full((48, 64), 12, np.uint8),
            "has the label 12; expected a class from 0 to 10, or 11",
        ),
        (np.zeros((24, 32), np.uint8), r"is uint8 \(24, 32\); expected uint8 \(48, 64\)"),
        (None, "is missing or not an image"),
    ],
)
def test_damaged_labels_are_named(tmp_path: Path, label: np.ndarray | None, sentence: str) -> None:
    for part in ("train", "trainannot"):
        (tmp_path / part).mkdir()
    cv2.imwrite(str(tmp_path / "train" / "0006R0_1.png"), np.zeros((48, 64, 3), np.uint8))
    if label is not None:
        cv2.imwrite(str(tmp_path / "trainannot" / "0006R0_1.png"), label)
    with pytest.raises(SourceError, match=f"trainannot/0006R0_1.png {sentence}"):
        read(tmp_path, "train", False, (32, 24))


def test_images_are_spread_evenly_and_drives_told_apart(camvid_like: Path) -> None:
    assert len(read(camvid_like, "train", False, (32, 24)).images) == 3
    dusk = read(camvid_like, "train", True, (32, 24), number=1)
    assert isinstance(dusk, LabelledImages)
    assert dusk.images.shape == (1, 24, 32, 3)
    assert dusk.labels.shape == (1, 24, 32)
