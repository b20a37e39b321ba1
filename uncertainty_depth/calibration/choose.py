"""Which map: each kind is fitted without one part of the frames and scored on it, for every part in turn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from uncertainty_depth.calibration.fit import candidates
from uncertainty_depth.calibration.sample import Sample, sigma_and_error
from uncertainty_depth.calibration.sigma_map import SigmaMap
from uncertainty_depth.config import CalibrationConfig
from uncertainty_depth.metrics import auce, n_merci, nll, sparsification

Figures = dict[str, float]
GUARDED = (
    "n_merci",
    "n_merci_trimmed",
    "ause.rmse",
)  # of the AUSEs one will do: all see the order of sigma only
MARGIN = 0.005


@dataclass(frozen=True)
class Choice:
    """The map that was chosen, and what it was chosen by.

    Attributes:
        sigma_map: the chosen kind, fitted to all parts.
        held_out: figures of each kind on parts it was not fitted to, the mean over the parts.
    """

    sigma_map: SigmaMap
    held_out: dict[str, Figures]


def choose(parts: Sequence[Sample], config: CalibrationConfig) -> Choice:
    """Leave one part out in turn, two parts or more; then fit the best kind to all.

    Raises:
        SourceError: no map can be fitted.
    """
    folds = [(part, fit_to([other for other in parts if other is not part])) for part in parts]
    each = [
        {kind: figures(part, fitted, config.alpha) for kind, fitted in maps.items()}
        for part, maps in folds
    ]
    held_out = {kind: mean_figures([found[kind] for found in each]) for kind in each[0]}
    return Choice(fit_to(parts)[best(held_out, config.tolerance)], held_out)


def fit_to(samples: Sequence[Sample]) -> dict[str, SigmaMap]:
    """Every candidate, fitted to all pixels of the samples together."""
    return candidates(*sigma_and_error(samples))


def best(held_out: Mapping[str, Mapping[str, float]], tolerance: float) -> str:
    """Of the kinds that worsen none of `GUARDED` by more than the share `tolerance`: of those within `MARGIN` of the least AUCE, the least NLL.

    AUCE looks at all pixels together, so kinds whose size was fitted to it differ little in it. The likelihood also sees whether sigma is right where
    it is small and where it is large, which is what the kinds differ in.
    """
    raw = held_out["identity"]
    allowed = [
        kind
        for kind, found in held_out.items()
        if all(_no_worse(found[name], raw[name], tolerance) for name in GUARDED)
    ]
    least = min(held_out[kind]["auce"] for kind in allowed)
    return min(
        (kind for kind in allowed if held_out[kind]["auce"] <= least + MARGIN),
        key=lambda kind: held_out[kind]["nll"],
    )


def _no_worse(found: float, raw: float, tolerance: float) -> bool:
    return math.isnan(raw) or found <= raw or found <= raw + tolerance * abs(raw)


def figures(sample: Sample, sigma_map: SigmaMap, alpha: float) -> Figures:
    """AUCE, NLL and what is guarded, of all pixels of a sample together."""
    depth, sigma, truth = np.concatenate(sample.frames, axis=1).astype(np.float64)
    error, calibrated = np.abs(depth - truth), sigma_map(sigma)
    return {
        "auce": auce(error, calibrated),
        "nll": nll(error, calibrated),
        "n_merci": n_merci(error, calibrated, alpha),
        "n_merci_trimmed": n_merci(error, calibrated, alpha, trimmed=True),
        "ause.rmse": sparsification(depth, calibrated, truth, "rmse").ause,
    }


def mean_figures(each: Sequence[Figures]) -> Figures:
    """The mean of each figure."""
    return {name: float(np.mean([one[name] for one in each])) for name in each[0]}
