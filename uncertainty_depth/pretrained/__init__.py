# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Hugging Face transformers depth models as networks of this package."""

import uncertainty_depth.network  # noqa: F401  says which library is missing
