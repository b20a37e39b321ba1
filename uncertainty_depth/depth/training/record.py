# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A training's record in `model.json`: written at its start, read by --resume; no torch."""

from __future__ import annotations

import logging
import platform
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core import strict
from uncertainty_depth.core.config.training import NetworkConfig, TrainingConfig
from uncertainty_depth.core.errors import ConfigError, ModelError
from uncertainty_depth.core.geometry.focal_length import camera_ranges, relative_focal_length
from uncertainty_depth.core.geometry.resampling import resample_depth
from uncertainty_depth.core.model_location import MAX_BYTES
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.core.output import EmptyFolder
from uncertainty_depth.depth.training import schedule

if TYPE_CHECKING:
    from uncertainty_depth.depth.training.frames import TrainingFrames
    from uncertainty_depth.depth.training.plan import Member

logger = logging.getLogger(__name__)

GRID_ROWS = 16
GRID_COLUMNS = 20


def domain(frames: TrainingFrames, indices: Sequence[int]) -> dict[str, Any]:
    """Return the description of the training data for `model.json`, as plain values.

    `indices` are the training frames. Of the result, `camera` holds the ranges of the cameras'
    geometry, None if no frame has a camera, with `relative_focal_length`, None if no camera is
    calibrated; `median_depth_m` is 16 rows of 20 columns, metres, None without ground truth.
    """
    depths_m = [frames.depth_m(index) for index in indices]
    cameras = [frames.cameras[index] for index in indices]
    camera: dict[str, Any] | None = camera_ranges(cameras)
    if camera is not None:
        lengths = [relative_focal_length(one) for one in cameras]
        calibrated = [length for length in lengths if length is not None]
        limits = (min(calibrated), max(calibrated)) if calibrated else None
        camera["relative_focal_length"] = limits and [round(limit, 6) for limit in limits]
    return {
        "camera": camera,
        "median_depth_m": median_depth(depths_m),
    }


def median_depth(depths_m: Sequence[NDArray[np.floating]]) -> list[list[float | None]]:
    """Return the pixelwise median of (H, W) depth maps at 16 x 20, metres to the millimetre.

    A predictor that ignores the image can do no better in absolute error than this median: it is
    the baseline that shows whether a network looks at its input at all.
    """
    resampled = [resample_depth(depth, GRID_COLUMNS, GRID_ROWS) for depth in depths_m]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice encountered")
        median = np.nanmedian(np.stack(resampled), axis=0)
    return [
        [None if np.isnan(depth) else round(float(depth), 3) for depth in row] for row in median
    ]


@dataclass(frozen=True)
class OriginalRun:
    """Record of a training, finished or not: options, the frames' fingerprint, and source."""

    options: dict[str, Any]
    fingerprint: str
    finished: bool
    source: str = ""
    source_options: dict[str, Any] = field(default_factory=dict)


def check_output(folder: Path, resume: bool, inputs: Iterable[Path] = ()) -> None:
    """Refuse, before the work, a folder that no training can be written to: it must be empty.

    Raises:
        ModelError: to resume, it holds no training.
        SourceError: it is not empty, and nothing is resumed, or it cannot be written to.
    """
    is_begun = folder.is_dir() and any(not path.name.startswith(".") for path in folder.iterdir())
    if not (is_begun and resume):
        EmptyFolder(folder, "--resume to go on with the training in it").check(inputs)
    elif not (folder / "model.json").exists():
        raise ModelError(
            f"{folder} holds no model.json; expected the folder of a training to resume"
        )


def read_begun(folder: Path) -> OriginalRun | None:
    """Return the record of the training in `folder`; None before its first write.

    Raises `ModelError` if it is damaged.
    """
    if not (folder / "model.json").exists():
        return None
    try:
        content = strict.read_json_file(folder / "model.json", MAX_BYTES)
        training = content["training"]
        return OriginalRun(
            {**content["network"], **training["options"]},
            training.get("fingerprint", ""),
            training.get("finished", False),
            training.get("source", ""),
            training.get("source_options", {}),
        )
    except (OSError, strict.FormatError, KeyError, TypeError) as error:
        raise ModelError(
            f"{folder / 'model.json'} does not say how the model was trained; expected the folder "
            "of a training"
        ) from error


def refuse_other_options(original: dict[str, Any], options: dict[str, Any], folder: Path) -> None:
    """Raise `ConfigError` for the first option that differs from the original run."""
    for name in sorted(options):  # an option that is gone makes no difference
        original_value = original.get(name)
        value = options.get(name)
        if value != original_value:
            raise ConfigError(
                f"{name} is {value!r} but the training in {folder} was started with "
                f"{original_value!r}; expected the same options to resume it"
            )


PACKAGES = ("uncertainty_depth", "torch", "transformers", "numpy", "opencv-python-headless")
NOTABLE_FRACTION = 0.01


def start(
    source: str,
    frames: TrainingFrames,
    network: NetworkConfig,
    training: TrainingConfig,
    indices: Sequence[int],
    validation: Sequence[int],
) -> dict[str, Any]:
    """Return the record before the first epoch, as plain values.

    `indices` are the training frames, `validation` the others.

    Raises `ConfigError`: all ground truth is outside the depth range.
    """
    outside = _fraction_outside(frames, source, *network.depth_range)
    return {
        "source": source,
        "frames": {
            "training": len(indices),
            "validation": len(validation),
            "skipped": dict(frames.skipped),
        },
        **domain(frames, indices),
        "fingerprint": frames.fingerprint(),
        "fraction_outside_depth_range": round(outside, 6),
        "options": {**to_mapping(network), **to_mapping(training)},
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in PACKAGES},
        },
    }


def _fraction_outside(frames: TrainingFrames, source: str, low: float, high: float) -> float:
    """Return the fraction of ground truth that the network cannot predict, and warn of it."""
    known = [depth[~np.isnan(depth)] for depth in frames.depths_m]
    count = sum(int(((values < low) | (values > high)).sum()) for values in known)
    outside = count / sum(values.size for values in known)
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
    """Return the results of the epochs so far as plain values, by member if there are several."""
    by_member = {}
    for member, history in zip(plan, histories, strict=False):
        if history:
            errors = schedule.validation_errors(history)
            saved = schedule.saved_epochs(errors, member.training)
            by_member[member.name] = {
                "seed": member.training.seed,
                "epochs": len(history),
                "kept_epochs": [epoch + 1 for epoch in saved],
                "stopped_improving_at_epoch": schedule.plateau(errors, member.training.patience),
                "last_epoch": history[-1],
            }
    return {
        "finished": finished,
        **(by_member[plan[0].name] if len(plan) == 1 else {"members": by_member}),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
