# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The state of a live evaluation on disk, from which a killed node can be resumed."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.config.prediction import PredictionConfig
from uncertainty_depth.report import saved_state
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.frame_table import FrameTable
from uncertainty_depth.report.saved_state import STATE_FILE, SavedState

PAIRING_OPTIONS = (
    "max_time_difference",
    "use_ground_truth_image",
    "lidars",
    "fixed_frame",
    *(item.name for item in fields(PredictionConfig)),
)
"""Options of the node that a resumed run must share, beside those of its evaluation."""


def state_folder(output: str | Path) -> Path:
    """Return the folder of the state, beside the report's, which is replaced as a whole."""
    folder = Path(output).resolve()
    return folder.with_name(f"{folder.name}.state")


def has_state(output: str | Path) -> bool:
    """Return whether a run with this output was killed."""
    return (state_folder(output) / STATE_FILE).exists()


class RunState:
    """Writes the state of a run in the background; without an output there is none.

    Attributes:
        resumed: what was loaded at the start; None for a new run.
    """

    def __init__(self, config: EvaluatorNodeConfig) -> None:
        """Load the state of a killed run with `resume`, else delete it: see `check_output`.

        Raises:
            SourceError: it cannot be loaded.
            ConfigError: it was scored with other options.
        """
        self._options = pairing_options(config)
        self._folders: list[Path] = []
        self._thread = ThreadPoolExecutor(1, "state")
        self._pending: Future | None = None
        self.resumed: SavedState | None = None
        if not config.output:
            return
        self._folders.append(state_folder(config.output))
        if config.resume and has_state(config.output):
            self.resumed = self._load(config)
        else:
            shutil.rmtree(self._folders[0], ignore_errors=True)

    def _load(self, config: EvaluatorNodeConfig) -> SavedState:
        folder = self._folders[0]
        saved = saved_state.load(folder, config)
        path = folder / STATE_FILE
        saved_state.check_same_options(path, saved.details["options"], self._options)
        table = saved.evaluation.table.rows().path
        for path in folder.glob("frames_*.csv"):
            if path != table:
                path.unlink()
        return saved

    def create_table(self) -> FrameTable:
        """Return an empty table of frames, in the state's folder where there is one.

        Raises:
            OSError: it cannot be written.
        """
        if not self._folders:
            return FrameTable()
        return FrameTable(new_table(self._folders[-1]))

    def reconfigure(self, config: EvaluatorNodeConfig, evaluation: Evaluation) -> None:
        """Apply new options; with another output the state and the table of frames move there."""
        options = pairing_options(config)
        folder = state_folder(config.output)
        if config.output and folder not in self._folders[-1:]:
            rows = evaluation.table.rows()
            path = new_table(folder)
            rows.write(path)
            evaluation.table = FrameTable(path, rows.size)
            self._folders.append(folder)
        self._options = options

    @property
    def is_ready(self) -> bool:
        """Whether there is a folder for the state and the one before is written."""
        return bool(self._folders) and (self._pending is None or self._pending.done())

    def save(
        self, evaluation: Evaluation, details: Mapping[str, Any], failed: Callable[[str], None]
    ) -> None:
        """Write the state of an unchanging copy in the background.

        Args:
            evaluation: the copy.
            details: JSON that is found in `resumed.details`.
            failed: is called with a sentence, on another thread, when the state cannot be written.
        """
        folder = self._folders[-1]
        everything = {"options": self._options, **details}

        def write() -> None:
            try:
                saved_state.save(evaluation, folder, everything)
            except OSError as error:
                failed(f"the state of the run cannot be written to {folder}: {error}")

        self._pending = self._thread.submit(write)

    def close(self) -> None:
        """Finish the state that is being written."""
        self._thread.shutdown()

    def remove(self) -> None:
        """Delete the state: its run is over and reported."""
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)


def new_table(folder: Path) -> Path:
    """Return the path of a new table of frames in a folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"frames_{secrets.token_hex(4)}.csv"


def pairing_options(config: EvaluatorNodeConfig) -> dict[str, Any]:
    """Return `PAIRING_OPTIONS` by name."""
    return {name: getattr(config, name) for name in PAIRING_OPTIONS}
