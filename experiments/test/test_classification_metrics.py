# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Scores of class probabilities in one pass, against loops and the exact functions."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest

from experiments.classification_metrics import OnlineClassification, auroc, entropy, mean_iou

VOID = 255
CLASSES = 5


@pytest.fixture(scope="module")
def pixels() -> Any:
    """Return probabilities and labels of 20,000 pixels, some sure, some not, some void."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(20_000, CLASSES)) * rng.exponential(4.0, (20_000, 1))
    table = np.exp(logits - logits.max(1, keepdims=True))
    table /= table.sum(1, keepdims=True)
    labels = np.where(rng.random(20_000) < 0.6, table.argmax(1), rng.integers(0, CLASSES, 20_000))
    labels[rng.random(20_000) < 0.1] = VOID
    return table, labels


def folded(table: Any, labels: Any, chunks: int = 7, bins: int = 10) -> OnlineClassification:
    scores = OnlineClassification(CLASSES, VOID, bins)
    for part in np.array_split(np.arange(len(labels)), chunks):
        scores.update(table[part], labels[part])
    return scores


def test_scores_are_those_of_loops_over_the_pixels_that_are_not_void(pixels: Any) -> None:
    table, labels = pixels
    scored = [pair for pair in zip(table, labels, strict=True) if pair[1] != VOID]
    confusion = np.zeros((CLASSES, CLASSES))
    squares = 0.0
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(10)]
    for row, label in scored:
        predicted = int(np.argmax(row))
        confusion[label, predicted] += 1
        squares += sum((p - (c == label)) ** 2 for c, p in enumerate(row))
        place = max(math.ceil(max(row) * 10) - 1, 0)
        bins[place].append((max(row), predicted == label))
    gaps = [abs(sum(hit - confidence for confidence, hit in bin_)) for bin_ in bins]
    overlaps = [
        confusion[c, c] / (confusion[c].sum() + confusion[:, c].sum() - confusion[c, c])
        for c in range(CLASSES)
    ]
    result = folded(table, labels).compute()
    assert result["pixels"] == len(scored)
    assert result["accuracy"] == pytest.approx(np.trace(confusion) / len(scored), rel=1e-12)
    assert result["mean_iou"] == pytest.approx(np.mean(overlaps), rel=1e-12)
    assert result["brier"] == pytest.approx(squares / len(scored), rel=1e-9)
    assert result["ece"] == pytest.approx(sum(gaps) / len(scored), rel=1e-9)
    reliability = folded(table, labels).reliability()
    filled = [bin_ for bin_ in bins if bin_]
    known = ~np.isnan(reliability["accuracy"])
    assert reliability["accuracy"][known] == pytest.approx(
        [np.mean([hit for _, hit in bin_]) for bin_ in filled], rel=1e-9
    )
    assert reliability["confidence"][known] == pytest.approx(
        [np.mean([confidence for confidence, _ in bin_]) for bin_ in filled], rel=1e-9
    )
    assert reliability["pixels"].tolist() == list(map(len, bins))


def test_the_brier_score_is_sparsified_by_entropy_as_in_a_loop(pixels: Any) -> None:
    """Each point of the curve is off by at most what lies in its bin of entropy."""
    table, labels = pixels
    known = labels != VOID
    errors = ((table[known] - np.eye(CLASSES)[labels[known]]) ** 2).sum(1)
    ascending = np.sort(entropy(table[known]))
    by_entropy = errors[np.argsort(entropy(table[known]))]
    by_error = np.sort(errors)
    binned = folded(table, labels).sparsification()
    left = np.maximum(((1.0 - binned.fractions) * len(errors)).astype(int), 1)
    removal, oracle = (
        np.array([values[:number].mean() for number in left]) / errors.mean()
        for values in (by_entropy, by_error)
    )
    cut = ascending[left - 1]
    in_bin = np.searchsorted(ascending, cut * (1 + 2**-6)) - np.searchsorted(
        ascending, cut * (1 - 2**-6)
    )
    assert (np.abs(binned.sparsification - removal) <= 2 * in_bin / left / errors.mean()).all()
    np.testing.assert_allclose(binned.oracle, oracle, rtol=0.01, atol=1e-12)
    gaps = removal - oracle
    expected = sum((a + b) / 2 for a, b in itertools.pairwise(gaps)) / 100
    assert folded(table, labels).compute()["ause"] == pytest.approx(expected, abs=2e-3)


def test_entropy_and_auroc() -> None:
    assert entropy([[0.5, 0.5], [1.0, 0.0]]) == pytest.approx([math.log(2), 0])
    low, high = [0.1, 0.2, 0.3], [0.2, 0.4]
    pairs = [(b > a) + (a == b) / 2 for a in low for b in high]
    assert auroc(low, high) == pytest.approx(np.mean(pairs))
    assert auroc(low, low) == 0.5
    assert math.isnan(auroc([], high))


def test_chunks_and_merging_change_nothing(pixels: Any) -> None:
    table, labels = pixels
    whole = folded(table, labels, 1)
    parts = folded(table[:5000], labels[:5000], 3)
    parts.merge(folded(table[5000:], labels[5000:], 11))
    assert parts.compute() == pytest.approx(whole.compute(), rel=1e-9)
    assert parts.nbytes == whole.nbytes < 250_000


def test_nothing_gives_nan_and_void_alone_is_nothing() -> None:
    scores = OnlineClassification(3, ignored=VOID)
    scores.update(np.full((4, 3), 1 / 3), np.full(4, VOID))
    result = scores.compute()
    assert result.pop("pixels") == 0
    assert all(math.isnan(value) for value in result.values())


def test_mean_iou_leaves_out_classes_that_are_nowhere() -> None:
    assert mean_iou([[3, 1, 0], [0, 2, 0], [0, 0, 0]]) == pytest.approx((3 / 4 + 2 / 3) / 2)
    assert mean_iou([[1, 1], [0, 0]]) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("ignored", "label", "sentence"),
    [
        (
            255,
            11,
            "labels contains values from 0 to 11; expected integers from 0 to 2, or 255 for what "
            "is not scored",
        ),
        (None, 255, "labels contains values from 0 to 255; expected integers from 0 to 2"),
        (255, -1, "labels contains values from -1 to 0; expected integers from 0 to 2, or 255"),
    ],
)
def test_a_label_outside_the_classes_is_refused(ignored: Any, label: int, sentence: str) -> None:
    scores = OnlineClassification(3, ignored)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        scores.update(np.full((2, 3), 1 / 3), [0, label])
    assert scores.pixels == 0


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="classes is 1; expected an integer of at least 2"):
        OnlineClassification(1)
    with pytest.raises(
        ValueError, match=re.escape("probabilities has shape (1, 2); expected (N, 3), a column")
    ):
        OnlineClassification(3).update([[0.5, 0.5]], [0])
    with pytest.raises(
        ValueError, match=re.escape("other has a confusion table of (2, 2); expected (3, 3)")
    ):
        OnlineClassification(3).merge(OnlineClassification(2))
    for row, sentence in (
        ([0.5, 0.6, 0.1], "probabilities has rows that sum to 1.2 ... 1.2; expected 1"),
        ([-0.5, 1.0, 0.5], "probabilities contains values from -0.5 to 1; expected [0, 1]"),
    ):
        with pytest.raises(ValueError, match=re.escape(sentence)):
            OnlineClassification(3).update([row], [0])
    with pytest.raises(ValueError, match=re.escape("labels has shape (2,); expected (1,)")):
        OnlineClassification(3).update([[0.5, 0.5, 0.0]], [0, 1])
