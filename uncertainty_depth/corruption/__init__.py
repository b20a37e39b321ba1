# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Corrupted images: weather, light, lens, motion and compression at five severities."""
