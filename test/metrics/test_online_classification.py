# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Scores of class probabilities in one pass, against loops and the exact functions."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest

from uncertainty_depth.metrics import brier, ece, entropy_sparsification
from uncertainty_depth.metrics.classification import entropy, mean_iou
from uncertainty_depth.metrics.online_classification import OnlineClassification

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


def test_scores_are_those_of_the_exact_functions(pixels: Any) -> None:
    table, labels = pixels
    known = labels != VOID
    result = folded(table, labels, bins=15).compute()
    assert result["ece"] == pytest.approx(ece(table[known], labels[known], bins=15), rel=1e-9)
    assert result["brier"] == pytest.approx(brier(table[known], labels[known]), rel=1e-9)


def test_the_brier_score_is_sparsified_by_entropy_as_in_a_loop(pixels: Any) -> None:
    table, labels = (part[:3000] for part in pixels)
    known = labels != VOID
    table, labels = table[known], labels[known]
    errors = ((table - np.eye(CLASSES)[labels]) ** 2).sum(1)
    by_entropy = errors[np.argsort(entropy(table))]
    by_error = np.sort(errors)
    gaps = []
    for step in range(100):
        number = int((1.0 - step * np.float64(0.01)) * len(errors))
        gaps.append((by_entropy[:number].mean() - by_error[:number].mean()) / errors.mean())
    expected = sum((a + b) / 2 for a, b in itertools.pairwise(gaps)) / 100
    exact = entropy_sparsification(table, labels, "gustafsson", "brier")
    assert exact.ause == pytest.approx(expected, rel=1e-9)
    assert exact.error == "brier"
    assert folded(table, labels).compute()["ause"] == pytest.approx(expected, abs=2e-3)


def test_each_point_of_the_curves_keeps_its_bound(pixels: Any) -> None:
    table, labels = pixels
    known = labels != VOID
    exact = entropy_sparsification(table[known], labels[known], "gustafsson", "brier")
    binned = folded(table, labels).sparsification()
    mean_error = brier(table[known], labels[known])
    ascending = np.sort(np.maximum(entropy(table[known]), 0))
    left = np.maximum(((1.0 - exact.fractions) * len(ascending)).astype(int), 1)
    cut = ascending[left - 1]
    in_bin = np.searchsorted(ascending, cut * (1 + 2**-6)) - np.searchsorted(
        ascending, cut * (1 - 2**-6)
    )
    bound = 2 * in_bin / left / mean_error
    assert (np.abs(binned.sparsification - exact.sparsification) <= bound).all()
    np.testing.assert_allclose(binned.oracle, exact.oracle, rtol=0.01, atol=1e-12)


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
    with pytest.raises(ValueError, match="bins is 0; expected an integer of at least 1"):
        OnlineClassification(3, bins=0)
    with pytest.raises(
        ValueError, match=re.escape("probabilities has shape (1, 2); expected (N, 3), a column")
    ):
        OnlineClassification(3).update([[0.5, 0.5]], [0])
    with pytest.raises(
        ValueError, match=re.escape("other has a confusion table of (2, 2); expected (3, 3)")
    ):
        OnlineClassification(3).merge(OnlineClassification(2))
    with pytest.raises(ValueError, match="error is 'rmse'; expected one of"):
        entropy_sparsification([[0.5, 0.5]], [0], error="rmse")
