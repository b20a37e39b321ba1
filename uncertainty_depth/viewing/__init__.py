# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Frames, sigma, errors and scores over time in the viewer rerun (https://rerun.io)."""
