# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth models of Hugging Face transformers as networks of this package."""

import uncertainty_depth.network  # noqa: F401  says which library is missing
