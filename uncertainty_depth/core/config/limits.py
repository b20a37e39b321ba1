# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Largest values that options of several groups accept."""

from __future__ import annotations

MAX_SEED = 2**31 - 1
MAX_COUNT = 10_000_000
MAX_DEPTH_M = 10_000.0
MAX_DURATION_S = 86_400.0
