# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Record in `model.json` how a model was trained."""

from __future__ import annotations

import logging
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from uncertainty_depth.config import NetworkConfig, TrainingConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.options import to_mapping
from uncertainty_depth.training import domain, schedule
from uncertainty_depth.training.frames import TrainingFrames
from uncertainty_depth.training.member import Member

logger = logging.getLogger(__name__)

PACKAGES = ("uncertainty_depth", "torch", "transformers", "numpy", "opencv-python-headless")
NOTABLE_FRACTION = 0.01


def start(
    source: str,
    frames: TrainingFrames,
    network: NetworkConfig,
    training: TrainingConfig,
    indices: Sequence[int],
    held_out: Sequence[int],
) -> dict[str, Any]:
    """Return the record before the first epoch, as plain values.

    Args:
        source: the source's name.
        frames: training and validation frames.
        network: the architecture.
        training: the options.
        indices: the training frames.
        held_out: the validation frames.

    Raises:
        ConfigError: all ground truth is outside the depth range.
    """
    outside = _fraction_outside(frames, source, *network.depth_range)
    return {
        "source": source,
        "frames": {
            "training": len(indices),
            "validation": len(held_out),
            "skipped": dict(frames.skipped),
        },
        **domain.domain(frames, indices),
        "fingerprint": frames.fingerprint(),
        "fraction_outside_depth_range": round(outside, 6),
        "options": {**to_mapping(network), **to_mapping(training)},
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in PACKAGES},
        },
    }


def _fraction_outside(frames: TrainingFrames, source: str, low: float, high: float) -> float:
    """Return the fraction of the ground truth that the network cannot predict; warn of it."""
    outside = frames.fraction_outside(low, high)
    if outside == 1:
        raise ConfigError(
            f"depth_range is {low:g} to {high:g} m, and no ground truth of {source} lies in it; "
            "expected the depths to learn"
        )
    if outside > NOTABLE_FRACTION:
        logger.warning(
            "%.0f %% of the ground truth of %s is outside depth_range %g to %g m, which the "
            "network cannot leave",
            100 * outside,
            source,
            low,
            high,
        )
    return outside


def results(
    plan: Sequence[Member], histories: Sequence[Sequence[dict[str, float]]], finished: bool
) -> dict[str, Any]:
    """Return the results of the epochs so far, as plain values, by member if several."""
    by_member = {
        member.name: _result(member, history)
        for member, history in zip(plan, histories, strict=False)
        if history
    }
    return {
        "finished": finished,
        **(by_member[plan[0].name] if len(plan) == 1 else {"members": by_member}),
    }


def _result(member: Member, history: Sequence[dict[str, float]]) -> dict[str, Any]:
    errors = schedule.validation_errors(history)
    return {
        "seed": member.training.seed,
        "epochs": len(history),
        "kept_epochs": [epoch + 1 for epoch in schedule.saved_epochs(errors, member.training)],
        "stopped_improving_at_epoch": schedule.plateau(errors, member.training.patience),
        "last_epoch": history[-1],
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
