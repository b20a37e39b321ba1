# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Names of the corruptions, for the command line: without NumPy or OpenCV."""

CORRUPTIONS = (
    "night",
    "fog",
    "rain",
    "motion_blur",
    "defocus",
    "noise",
    "dirt",
    "jpeg",
    "overexposed",
    "underexposed",
    "white_balance",
    "low_resolution",
)
SEVERITIES = (1, 2, 3, 4, 5)
