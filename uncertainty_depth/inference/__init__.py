# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Inference: from camera images to depth and its standard deviation."""

import uncertainty_depth.network  # noqa: F401  says which library is missing
