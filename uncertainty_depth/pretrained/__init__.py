"""Depth models of Hugging Face transformers as networks of this package."""

import uncertainty_depth.network  # noqa: F401  says which library is missing
