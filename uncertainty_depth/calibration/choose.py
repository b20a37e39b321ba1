# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Choose the calibration map by cross-validation over parts of the frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uncertainty_depth.calibration.fit import candidates
from uncertainty_depth.calibration.sample import Sample, sigma_and_error
from uncertainty_depth.calibration.scores import Scores, harmed, mean_over_folds, scores
from uncertainty_depth.calibration.sigma_map import SigmaMap


@dataclass(frozen=True)
class Choice:
    """The selected map, and the scores that it was selected by.

    Attributes:
        sigma_map: the chosen map, fitted to all parts.
        held_out: scores of each map on parts it was not fitted to, the mean over the parts.
    """

    sigma_map: SigmaMap
    held_out: dict[str, Scores]


def choose(parts: Sequence[Sample], distribution: str) -> Choice:
    """Leave one part out in turn, two parts or more; then fit the best map to all.

    Args:
        parts: sequences, or blocks of time of one.
        distribution: "gaussian" or "laplace", what sigma is the standard deviation of.

    Raises:
        SourceError: no map can be fitted.
    """
    folds = [_fold(parts, part, distribution) for part in parts]
    held_out = mean_over_folds(folds)
    return Choice(fit_to(parts, distribution)[best(held_out)], held_out)


def _fold(parts: Sequence[Sample], left_out: Sample, distribution: str) -> dict[str, Scores]:
    """Return the scores on one part of the maps fitted to the others."""
    maps = fit_to([part for part in parts if part is not left_out], distribution)
    return {name: scores(left_out, fitted, distribution) for name, fitted in maps.items()}


def fit_to(samples: Sequence[Sample], distribution: str) -> dict[str, SigmaMap]:
    """Return every candidate, fitted to all pixels of the samples together."""
    return candidates(*sigma_and_error(samples), distribution)


def best(held_out: Mapping[str, Mapping[str, float]]) -> str:
    """Return the map with the smallest CRPS of those that harm nothing, raw sigma included."""
    raw = held_out["identity"]
    allowed = [name for name, scores_of_map in held_out.items() if not harmed(raw, scores_of_map)]
    return min(allowed, key=lambda name: held_out[name]["crps"])
