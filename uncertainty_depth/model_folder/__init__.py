"""A model on disk: `model.json` and `.safetensors` members. No pickle is written or read."""

import uncertainty_depth.network  # noqa: F401  says which library is missing
