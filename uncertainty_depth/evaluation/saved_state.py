# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Save an evaluation to disk, so that a run can be resumed after its process was killed.

The state is one `.npz` of plain numbers next to the table of frames. Example frames and their
images are not saved.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth import atomic
from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.evaluation.evaluation import Evaluation
from uncertainty_depth.evaluation.frame_pixels import Positions
from uncertainty_depth.evaluation.frame_statistics import CameraRange, ScaleDrift, Unfamiliarity
from uncertainty_depth.evaluation.frame_table import FrameRows, FrameTable
from uncertainty_depth.evaluation.repeated_frames import RepeatedFrames
from uncertainty_depth.evaluation.unit_sums import LAYOUT
from uncertainty_depth.evaluation.units import Units
from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.options import to_mapping

FORMAT = 2
STATE_FILE = "state.npz"
COMPRESSION_LEVEL = 1
"""20 MB become 2.8 MB, in a seventh of the time of zlib's default level, which gives 2.4 MB."""


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
    header = {
        "format": FORMAT,
        "evaluated": evaluation.evaluated,
        "skipped": dict(evaluation.skipped),
        "frames_per_unit": evaluation.units.frames_per_unit,
        "frames_in_last_unit": evaluation.units.frames_in_last,
        "cameras": evaluation.cameras.as_dict(),
        "without_size": evaluation.without_size,
        "unfamiliarity": asdict(evaluation.unfamiliarity),
        "repeated_frames": evaluation.repeated.count,
        "table": {"file": table_file or rows.path.name, "size": rows.size},
        "details": details,
    }
    arrays = {
        "header": np.array(json.dumps(header)),
        **_prefixed("metrics", evaluation.metrics.to_arrays()),
        **_prefixed("units", evaluation.units.tables()),
        **_prefixed("positions", evaluation.positions.tables()),
        "scale": evaluation.scale.sums,
        "frame_keys": evaluation.repeated.to_array(),
    }
    with atomic.replacing(folder / STATE_FILE) as temporary:
        _write_npz(temporary, arrays)


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
        file = folder / Path(header["table"]["file"]).name
        table = FrameTable(file, header["table"]["size"])
        evaluation = _restored(header, arrays, metrics, table, config)
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
        rows = FrameRows(folder / Path(header["table"]["file"]).name, header["table"]["size"])
        evaluation = _restored(header, arrays, metrics, rows, metrics.config)
    except Exception as error:
        raise _damaged(path, error) from error
    return SavedState(evaluation, header["details"])


def _read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray], OnlineMetrics]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(str(arrays["header"]))
        if header["format"] != FORMAT:
            raise SourceError(
                f"{path} has format {header['format']}; expected {FORMAT}: evaluate again"
            )
        return header, arrays, OnlineMetrics.from_arrays(_without_prefix("metrics", arrays), path)
    except SourceError:
        raise
    # Whatever the parsers of zip, deflate, npy and JSON raise at damaged bytes.
    except Exception as error:
        raise _damaged(path, error) from error


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
    config: EvaluationConfig,
) -> Evaluation:
    evaluation = Evaluation(config, table, header["without_size"])
    evaluation.scale = ScaleDrift(arrays["scale"])
    evaluation.unfamiliarity = Unfamiliarity(**header.get("unfamiliarity", {}))
    evaluation.repeated = RepeatedFrames(
        header.get("repeated_frames", 0), arrays.get("frame_keys", np.empty(0)).tolist()
    )
    evaluation.evaluated = header["evaluated"]
    evaluation.skipped = Counter(header["skipped"])
    evaluation.metrics = metrics
    metrics.config = replace(metrics.config, example_frames=config.example_frames)
    evaluation.units = Units.from_tables(
        LAYOUT,
        _without_prefix("units", arrays),
        header["frames_per_unit"],
        header["frames_in_last_unit"],
    )
    evaluation.positions = Positions.from_tables(_without_prefix("positions", arrays))
    evaluation.cameras = CameraRange.from_dict(header["cameras"])
    return evaluation


def _prefixed(prefix: str, arrays: Mapping[str, NDArray]) -> dict[str, NDArray]:
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def _without_prefix(prefix: str, arrays: Mapping[str, NDArray]) -> dict[str, NDArray]:
    start = f"{prefix}/"
    return {
        name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)
    }


def _write_npz(path: Path, arrays: Mapping[str, NDArray]) -> None:
    """Write like `np.savez_compressed`, which has no option for the level."""
    with zipfile.ZipFile(
        path, "w", zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION_LEVEL
    ) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def _sync(path: Path) -> None:
    """Sync a file to disk, before the state that refers to it is written."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
