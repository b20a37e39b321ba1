# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Calibration: a monotone map from raw to calibrated sigma, fitted to ground truth.

Imports here need only NumPy, as `predict` does.
"""

from uncertainty_depth.sigma.calibration.sigma_map import IDENTITY, SigmaMap

__all__ = ["IDENTITY", "SigmaMap"]
