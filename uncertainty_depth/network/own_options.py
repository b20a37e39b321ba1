"""What a pretrained depth model wants of the options where the user says nothing."""

from __future__ import annotations

from typing import Any

from uncertainty_depth.network.backbone import config_of
from uncertainty_depth.network.families import image_size, is_depth_model, metric_range, patch_size
from uncertainty_depth.network.preprocessing import input_size, read_preprocessing

LEARNING_RATE = 1e-4
"""A tenth of the hourglass's: the head has been trained already."""


def own_options(backbone: str) -> dict[str, Any]:
    """Defaults of the options that go with a depth model: its encoder stays as it is, and it sees and gives what it was trained for.

    Returns:
        Names of options with their values as plain values; none for a backbone that is no depth model.

    Raises:
        ModelError: there is no such backbone.
    """
    config = config_of(backbone)
    if not is_depth_model(config):
        return {}
    metres = metric_range(config)
    size = input_size(read_preprocessing(backbone), image_size(config), patch_size(config))
    return {"freeze_encoder": True, "learning_rate": LEARNING_RATE, "input_size": size, **({"depth_range": metres} if metres else {})}
