# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A model on disk: `model.json` and `.safetensors` members. No pickle is written or read."""

import uncertainty_depth.network  # noqa: F401  says which library is missing
