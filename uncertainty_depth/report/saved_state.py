# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Save an evaluation to disk, so that a run can be resumed after its process was killed.

The state is one `.npz` of plain numbers next to the table of frames. Example frames and their
images are not saved.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth import atomic, strict_npz
from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.metrics import online as saved_metrics
from uncertainty_depth.metrics.block import BLOCK_CELLS
from uncertainty_depth.options import to_mapping
from uncertainty_depth.report.cameras import CameraRange
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.frame_table import FrameRows, FrameTable, sums_path
from uncertainty_depth.report.positions import Positions
from uncertainty_depth.report.views import MAX_FRAMES, MAX_PATTERNS, Views
from uncertainty_depth.strict_npz import Expected

STATE_FILE = "state.npz"
LAYOUT = {
    **saved_metrics.LAYOUT,
    **{
        name: Expected(array.dtype.type, array.shape)
        for name, array in Positions().arrays().items()
    },
    "frame_keys": Expected(np.uint64, (), 2 * MAX_FRAMES),
    "frame_patterns": Expected(np.float32, (2, BLOCK_CELLS), MAX_PATTERNS),
}
"""Arrays of the state; whatever else the file holds is not read."""


@dataclass(frozen=True)
class SavedState:
    """An evaluation that was saved, with details of its run.

    Attributes:
        evaluation: frames can be added to it.
        details: any JSON.
    """

    evaluation: Evaluation
    details: Mapping[str, Any] = field(default_factory=dict)


def save(
    evaluation: Evaluation, folder: Path, details: Mapping[str, Any], table_file: str = ""
) -> None:
    """Write the state of an evaluation, completely or not at all.

    Args:
        evaluation: not changed during the call, e.g. a copy.
        folder: created if missing.
        details: JSON that `load` returns.
        table_file: name of the copy of its table in `folder`; empty if the table itself is there.

    Raises:
        OSError: the state cannot be written; an earlier one is then unchanged.
    """
    rows = evaluation.table.rows()
    _sync(rows.path)
    _sync(sums_path(rows.path))
    header = {
        **evaluation.metrics.header(),
        "evaluated": evaluation.evaluated,
        "skipped": dict(evaluation.skipped),
        "cameras": evaluation.cameras.as_dict(),
        "without_size": evaluation.without_size,
        "repeated_frames": evaluation.views.repeated,
        "still_frames": evaluation.views.still,
        "table": {
            "file": table_file or rows.path.name,
            "size": rows.size,
            "sums_size": rows.sums_size,
        },
        "details": details,
    }
    arrays = {
        **evaluation.metrics.arrays(),
        **evaluation.positions.arrays(),
        **evaluation.views.arrays(),
    }
    with atomic.replacing(folder / STATE_FILE) as temporary:
        strict_npz.write(temporary, header, arrays)


def load(folder: Path, config: EvaluationConfig) -> SavedState:
    """Return the evaluation that `save` wrote; it appends to the table of frames in `folder`.

    Args:
        folder: where it was saved.
        config: of the resumed run; only `example_frames` may differ.

    Raises:
        SourceError: the state is missing, damaged or of another format.
        ConfigError: it was scored with other options.
    """
    path = folder / STATE_FILE
    header, arrays, metrics = _read(path)
    check_same_options(path, to_mapping(metrics.config), to_mapping(config), {"example_frames"})
    try:
        evaluation = _restored(header, arrays, metrics, FrameTable(*_table(folder, header)))
        evaluation.config = config
        metrics.config = config
        evaluation.set_example_frames(config.example_frames)
    except SourceError:
        raise
    except Exception as error:
        raise _damaged(path, error) from error
    return SavedState(evaluation, header["details"])


def read(folder: Path) -> SavedState:
    """Return the evaluation that `save` wrote, to be read only: nothing in `folder` changes.

    Raises:
        SourceError: the state is missing, damaged or of another format.
    """
    path = folder / STATE_FILE
    header, arrays, metrics = _read(path)
    try:
        evaluation = _restored(header, arrays, metrics, FrameRows(*_table(folder, header)))
    except Exception as error:
        raise _damaged(path, error) from error
    return SavedState(evaluation, header["details"])


def _read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray], OnlineMetrics]:
    try:
        header = strict_npz.read_header(path)
        saved_metrics.check_format(path, header.get("format"))
        arrays = strict_npz.read(path, LAYOUT)
        return header, arrays, OnlineMetrics.from_arrays(header, arrays)
    except SourceError:
        raise
    # Whatever the parsers of zip, deflate, npy and JSON raise at damaged bytes.
    except Exception as error:
        raise _damaged(path, error) from error


def _table(folder: Path, header: Mapping[str, Any]) -> tuple[Path, int, int]:
    table = header["table"]
    sizes = int(table["size"]), int(table["sums_size"])
    if min(sizes) < 0:
        raise ValueError(f"the table of frames has {min(sizes)} bytes")
    return folder / Path(str(table["file"])).name, *sizes


def _damaged(path: Path, error: Exception) -> SourceError:
    return SourceError(
        f"{path} is not a complete state of an evaluation ({error}); expected another folder, or "
        "a new run with overwrite"
    )


def check_same_options(
    path: Path,
    saved: Mapping[str, Any],
    options: Mapping[str, Any],
    exempt: Collection[str] = (),
) -> None:
    """Raise `ConfigError` if an option differs from the saved one and is not exempt."""
    for name in sorted(saved.keys() - set(exempt)):
        if saved[name] != options[name]:
            raise ConfigError(
                f"{name} is {options[name]!r}, but the scores in {path} were made with "
                f"{saved[name]!r}; expected the same value to resume"
            )


def _restored(
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray],
    metrics: OnlineMetrics,
    table: Any,  # rows stand in for the table of an evaluation that is read only
) -> Evaluation:
    evaluation = Evaluation(metrics.config, table, str(header["without_size"]))
    evaluation.metrics = metrics
    evaluation.evaluated = int(header["evaluated"])
    evaluation.skipped = Counter({str(k): int(v) for k, v in header["skipped"].items()})
    evaluation.positions = Positions.from_arrays(arrays)
    evaluation.cameras = CameraRange.from_dict(header["cameras"])
    evaluation.views = Views(
        int(header["still_frames"]),
        int(header["repeated_frames"]),
        arrays["frame_keys"].tolist(),
        arrays["frame_patterns"],
    )
    return evaluation


def _sync(path: Path) -> None:
    """Sync a file to disk, before the state that refers to it is written."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
