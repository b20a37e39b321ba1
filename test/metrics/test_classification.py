# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Scores of class probabilities against loops and closed forms."""

import math
import re

import numpy as np
import pytest

from uncertainty_depth.metrics import brier, ece, entropy_sparsification
from uncertainty_depth.metrics.classification import auroc, entropy


@pytest.fixture
def classes():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.full(4, 0.5), 800)
    labels = np.array([rng.choice(4, p=row) for row in probabilities])
    return probabilities, labels


def test_ece_follows_its_equation(classes, convert):
    probabilities, labels = classes
    confidence = probabilities.max(1)
    hit = probabilities.argmax(1) == labels
    expected = 0.0
    for low in np.arange(10) / 10:
        inside = (confidence > low) & (confidence <= low + 0.1)
        if inside.any():
            expected += inside.mean() * abs(hit[inside].mean() - confidence[inside].mean())
    assert ece(convert(probabilities), convert(labels), bins=10) == pytest.approx(
        expected, rel=1e-9
    )


def test_brier_follows_its_equation(classes, convert):
    probabilities, labels = classes
    expected = np.mean(
        [
            sum((p - (c == label)) ** 2 for c, p in enumerate(row))
            for row, label in zip(probabilities, labels, strict=True)
        ]
    )
    assert brier(convert(probabilities), convert(labels)) == pytest.approx(expected, rel=1e-12)


def test_certain_and_right_certain_and_wrong(convert):
    table = convert(np.eye(3))
    right = convert(np.arange(3))
    wrong = convert(np.array([1, 2, 0]))
    assert ece(table, right) == brier(table, right) == 0
    assert ece(table, wrong) == 1
    assert brier(table, wrong) == 2


def test_two_classes_as_one_probability(convert):
    p = np.array([0.9, 0.2, 0.6])
    labels = np.array([1, 0, 0])
    assert brier(convert(p), convert(labels)) == pytest.approx(np.mean((p - labels) ** 2))
    assert ece(convert(p), convert(labels)) == pytest.approx(ece(np.stack((1 - p, p), 1), labels))


def test_entropy_has_its_extremes(convert):
    values = entropy(convert([[1.0, 0, 0, 0], [0.25] * 4]))
    assert [float(value) for value in values] == pytest.approx([0, math.log(4)])


@pytest.mark.parametrize("variant", ["gustafsson", "ilg"])
def test_entropy_sparsification_removes_the_least_certain_first(classes, convert, variant):
    probabilities, labels = classes
    result = entropy_sparsification(convert(probabilities), convert(labels), variant)
    wrong = (probabilities.argmax(1) != labels).astype(float)
    order = np.argsort(-(probabilities * np.log(probabilities)).sum(1))
    numbers = [
        int((1.0 - f) * len(wrong))
        if variant == "gustafsson"
        else (100 - step) * len(wrong) // 100
        for step, f in enumerate(result.fractions)
    ]
    expected = np.array([wrong[order][:number].mean() for number in numbers]) / wrong.mean()
    np.testing.assert_allclose(result.sparsification, expected, rtol=1e-9)
    assert 0 < result.ause < 1
    assert result.aurg > 0


def test_entropy_sparsification_is_closed_in_poggis_variant(classes, convert):
    result = entropy_sparsification(*map(convert, classes))
    assert (result.fractions[-1], result.sparsification[-1], result.error) == (1, 0, "error_rate")


def test_nothing_gives_nan(convert):
    table = convert(np.zeros((0, 3)))
    labels = convert(np.zeros(0, dtype=np.int64))
    assert math.isnan(ece(table, labels))
    assert math.isnan(brier(table, labels))
    assert math.isnan(entropy_sparsification(table, labels).ause)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            (np.zeros((2, 2, 2)), [0, 1]),
            "probabilities has shape (2, 2, 2); expected (N, C), or (N,) for two classes",
        ),
        (
            ([[0.5, 0.5]], [0, 1]),
            "labels has shape (2,); expected (1,), one per row of probabilities",
        ),
        (([[0.5, 0.6]], [0]), "probabilities has rows that sum to 1.1"),
        (([[1.5, -0.5]], [0]), "probabilities contains values from -0.5 to 1.5; expected [0, 1]"),
        (([[0.5, 0.5]], [2]), "labels contains values from 2 to 2; expected integers from 0 to 1"),
    ],
)
def test_wrong_arguments_are_named(arguments, sentence):
    for function in (ece, brier, entropy_sparsification):
        with pytest.raises(ValueError, match=re.escape(sentence)):
            function(*arguments)


@pytest.mark.parametrize("bins", [0, -3, 2.5, "a", None])
def test_bins_are_checked(bins):
    with pytest.raises(
        ValueError, match=re.escape(f"bins is {bins!r}; expected an integer of at least 1")
    ):
        ece([0.5], [1], bins=bins)


def test_words_are_refused_by_name():
    with pytest.raises(
        ValueError, match=re.escape("probabilities is ['a']; expected an array of numbers")
    ):
        ece(["a"], [1])
    with pytest.raises(
        ValueError, match=re.escape("labels is ['a']; expected an array of numbers")
    ):
        brier([0.5], ["a"])


@pytest.mark.parametrize("classes", [1, 3])
def test_ece_of_many_pixels_is_that_of_a_loop(convert, classes):
    """More than a block of them, of two classes as one probability and of three."""
    rng = np.random.default_rng(0)
    table = rng.uniform(size=100_000) if classes == 1 else rng.dirichlet(np.ones(3), 100_000)
    labels = rng.integers(0, max(classes, 2), 100_000)
    rows = np.stack((1 - table, table), 1) if classes == 1 else table
    confidence = rows.max(1)
    hit = rows.argmax(1) == labels
    places = np.ceil(confidence * 15)
    expected = (
        sum(abs((hit[places == k] - confidence[places == k]).sum()) for k in range(1, 16))
        / 100_000
    )
    assert ece(convert(table), convert(labels)) == pytest.approx(expected, rel=1e-9)


def test_ece_has_ten_bins_and_a_confidence_of_one_lies_in_the_last():
    probabilities = np.array([1.0, 1.0, 0.95])
    labels = np.array([1, 0, 1])
    # One bin: (0.9, 1]; accuracy 2 / 3.
    assert ece(probabilities, labels) == pytest.approx(abs(2 / 3 - 2.95 / 3))


def test_auroc_counts_the_pairs_in_order() -> None:
    random = np.random.default_rng(4)
    negatives = random.integers(0, 20, 50)
    positives = random.integers(5, 25, 70)
    pairs = positives[:, None] - negatives[None]
    expected = ((pairs > 0) + 0.5 * (pairs == 0)).mean()
    assert auroc(negatives, positives) == pytest.approx(expected, abs=1e-12)
    assert auroc([1, 1], [1, 1]) == 0.5
    assert auroc([0, 1], [2, 3]) == 1
    assert np.isnan(auroc([], [1]))
