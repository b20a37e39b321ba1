# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Uncertainty methods, one file each, behind one interface, `Estimator`."""

from uncertainty_depth.depth.estimators.estimator import Estimator
from uncertainty_depth.depth.estimators.mc_dropout import McDropout
from uncertainty_depth.depth.estimators.members import Deterministic, Ensemble, Mirrored

ESTIMATORS: dict[str, type[Estimator]] = {
    "deterministic": Deterministic,
    "mc_dropout": McDropout,
    "mirrored": Mirrored,
    "multi_epochs": Ensemble,
    "log_likelihood": Deterministic,
    "multi_inits": Ensemble,
    "bagging": Ensemble,
    "distilled": Deterministic,
}
