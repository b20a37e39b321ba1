# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Ensembles and MC-dropout of M members or passes, scored on sets of them.

Every network predicts each frame once, and the sets are made of these predictions: the mean of the
depths, and the mean variance plus the variance of the means (Gustafsson et al. 2020, appendix A).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from experiments.pooled_sparsification import pooled_sparsification
from uncertainty_depth.core.records import Frame, SampleRange
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.frames.protocol import Source
from uncertainty_depth.metrics import coverage
from uncertainty_depth.metrics.calibration import CONFIDENCE_LEVELS, area_of_miscoverage
from uncertainty_depth.metrics.depth import scorable
from uncertainty_depth.stream.predicting import predict_frame

MIN_DEPTH_M = 0.1
MAX_DEPTH_M = 80.0


class Pixels(NamedTuple):
    """Predictions of all members or passes at the scored pixels of all frames.

    Attributes:
        depth_m: (members, N) float32.
        sigma_m: (members, N) float32, each member's own.
        truth_m: (N,) float32.
    """

    depth_m: NDArray[np.float32]
    sigma_m: NDArray[np.float32]
    truth_m: NDArray[np.float32]


def predicted_pixels(predictor: Predictor, source: Source, pixels: int, label: str) -> Pixels:
    """Return what each member or pass of a predictor predicts at the scored pixels.

    Args:
        predictor: of a model with sparse input.
        source: frames with sparse depth.
        pixels: max number of each frame, chosen at random by its stamp.
        label: on the progress bar.
    """
    columns: list[NDArray[np.float32]] = []
    for record in tqdm(source, label, len(source), unit="frame", leave=False):
        if isinstance(record, Frame):
            columns.append(_of_frame(predictor, record, pixels))
    joined = np.concatenate(columns, axis=1)
    members = predictor.passes
    return Pixels(joined[:members], joined[members:-1], joined[-1])


def _of_frame(predictor: Predictor, frame: Frame, pixels: int) -> NDArray[np.float32]:
    """Return depth and sigma of each member, and the true depth, (2 members + 1, n)."""
    places = np.flatnonzero(scorable(frame.need_ground_truth(), MIN_DEPTH_M, MAX_DEPTH_M))
    if len(places) > pixels:
        rng = np.random.default_rng(frame.stamp_ns)
        places = np.sort(rng.choice(places, pixels, replace=False))
    depths = []
    sigmas = []
    for member in range(predictor.passes):
        prediction = predict_frame(_One(predictor, member), frame)
        depths.append(prediction.depth_m.ravel()[places])
        sigmas.append(prediction.sigma_m.ravel()[places])
    return np.stack([*depths, *sigmas, frame.need_ground_truth().ravel()[places]]).astype(
        np.float32
    )


class _One:
    """One member or pass of a predictor."""

    def __init__(self, predictor: Predictor, member: int) -> None:
        self._predictor = predictor
        self._samples = SampleRange(member, 1)

    def predict(self, *frame: Any, **options: Any) -> Any:
        """See `Predictor.predict`."""
        return self._predictor.predict(*frame, **{**options, "samples": self._samples})


def combined(
    pixels: Pixels, members: Sequence[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return depth and sigma, (N,) metres, of the mixture of some members' Gaussians."""
    depths = pixels.depth_m[list(members)].astype(np.float64)
    variance = np.square(pixels.sigma_m[list(members)], dtype=np.float64).mean(axis=0)
    return depths.mean(axis=0), np.sqrt(variance + depths.var(axis=0))


def drawn_sets(members: int, size: int, draws: int, seed: int = 0) -> list[tuple[int, ...]]:
    """Return at most `draws` different sets of `size` of the members; all if there are fewer.

    Gustafsson et al. 2020, appendix C.2: "The same set could not be drawn more than once."
    """
    if math.comb(members, size) <= draws:
        return list(combinations(range(members), size))
    rng = np.random.default_rng([seed, size])
    sets: dict[tuple[int, ...], None] = {}
    while len(sets) < draws:
        members_of_set = rng.choice(members, size, replace=False)
        sets[tuple(sorted(members_of_set.tolist()))] = None
    return list(sets)


def score_sets(pixels: Pixels, sets: Iterable[Sequence[int]]) -> list[dict[str, Any]]:
    """Return the scores of each set of members, as of `scores`."""
    return [scores(*combined(pixels, members), pixels.truth_m) for members in sets]


def scores(
    depth_m: NDArray[np.floating], sigma_m: NDArray[np.floating], truth_m: NDArray[np.floating]
) -> dict[str, Any]:
    """Return AUSE, AUCE and RMSE over all pixels pooled, and the curves behind them.

    AUSE is that of Gustafsson et al. 2020: of the RMSE, each curve over its first value.
    `constant` is the AUSE of a constant sigma on the same depth.
    """
    curves = pooled_sparsification(depth_m, sigma_m, truth_m)
    constant = pooled_sparsification(depth_m, np.ones_like(sigma_m), truth_m)
    error = np.abs(np.subtract(depth_m, truth_m, dtype=np.float64))
    covered = np.asarray(coverage(error, sigma_m, CONFIDENCE_LEVELS))
    return {
        "ause": curves.ause,
        "constant": constant.ause,
        "auce": area_of_miscoverage(covered),
        "rmse": float(np.sqrt(np.square(error).mean())),
        "sparsification": curves.sparsification,
        "oracle": curves.oracle,
        "covered": covered,
    }
