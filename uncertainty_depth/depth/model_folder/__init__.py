# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A model on disk: `model.json` and `.safetensors` members, never a pickle."""

import uncertainty_depth.depth.networks  # noqa: F401  says which library is missing
