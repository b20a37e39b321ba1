# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Published conventions of sparsification, each under its own name.

Variants differ in these ways, so a value means nothing without the name of its variant:

poggi
    Poggi, Aleotti, Tosi and Mattoccia, "On the uncertainty of self-supervised monocular depth
    estimation", CVPR 2020, and its published evaluation.
gustafsson
    Gustafsson, Danelljan and Schon, "Evaluating Scalable Bayesian Deep Learning Methods for Robust
    Computer Vision", CVPRW 2020, and its published code.
ilg
    Ilg et al., "Uncertainty Estimates and Multi-Hypotheses Networks for Optical Flow", ECCV 2018.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from uncertainty_depth.metrics.arrays import Floats


@dataclass(frozen=True, eq=False)
class Variant:
    """One published convention.

    Attributes:
        name: what it is called.
        errors: the error statistics it is defined for.
        fractions: fractions removed.
        keeps_ties: threshold at a percentile and keep its equals, instead of a number of pixels.
        normalised: divide each curve by its first value.
        closed: append the point (1, 0).
    """

    name: str
    errors: tuple[str, ...]
    fractions: Floats
    keeps_ties: bool
    normalised: bool
    closed: bool

    @property
    def title(self) -> str:
        """Name as plots show it."""
        return {
            "poggi": "Poggi et al. 2020",
            "gustafsson": "Gustafsson et al. 2020",
            "ilg": "Ilg et al. 2018",
        }[self.name]


POGGI = Variant(
    "poggi",
    ("abs_rel", "rmse", "a1"),
    np.arange(50) / 50,
    keeps_ties=True,
    normalised=False,
    closed=True,
)
GUSTAFSSON = Variant(
    "gustafsson",
    ("rmse",),
    np.arange(100) * np.float64(0.01),
    keeps_ties=False,
    normalised=True,
    closed=False,
)
ILG = Variant(
    "ilg", ("mae",), np.arange(100) / 100, keeps_ties=False, normalised=True, closed=False
)
VARIANTS = {variant.name: variant for variant in (POGGI, GUSTAFSSON, ILG)}
