# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Notes of a live report: lost messages, the camera, the geometry, a restart."""

from __future__ import annotations

from uncertainty_depth.report.saved_state import SavedState
from uncertainty_depth.ros.diagnostics import Health
from uncertainty_depth.ros.live_evaluation import LiveEvaluation

COUNTED_IN_FRAMES = ("paired", "unmatched")
"""Counts of the pairing that the report's counts of frames already contain."""


class RunNotes:
    """Counts the messages lost in this run; the node's diagnostics count all."""

    def __init__(self, health: Health, resumed: SavedState | None) -> None:
        """Start counting; losses of a resumed run are added to those of this process."""
        self._health = health
        self._before: dict[str, int] = {}
        self._resumed_losses = {} if resumed is None else dict(resumed.details["losses"])
        self._resumed_frames = 0 if resumed is None else resumed.evaluation.evaluated

    def start_anew(self) -> None:
        """Forget the losses so far: they belong to an earlier run."""
        self._before = self._losses()
        self._resumed_losses = {}
        self._resumed_frames = 0

    def losses(self) -> dict[str, int]:
        """Return the messages lost in this run, by reason."""
        losses = dict(self._resumed_losses)
        for name, count in self._losses().items():
            losses[name] = losses.get(name, 0) + count - self._before.get(name, 0)
        return losses

    def notes(self, live: LiveEvaluation) -> tuple[str, ...]:
        """Return the sentences of the report."""
        counts = {f"messages {name}": count for name, count in self.losses().items()}
        for name, count in live.pairing_counts.items():
            if name not in COUNTED_IN_FRAMES:
                counts[f"pairing: {name}"] = count
        counts["waiting"] = live.waiting
        losses = [f"{name.replace('_', ' ')}: {count}" for name, count in counts.items() if count]
        resumed = []
        if self._resumed_frames:
            resumed.append(
                f"resumed: {self._resumed_frames} frames were scored before the node was killed; "
                "example frames are from the time after"
            )
        meaning = live.interpreter.notes()
        return (*live.camera_notes, *meaning, *live.geometry.warnings(), *resumed, *losses)

    def _losses(self) -> dict[str, int]:
        counts = self._health.counts()
        return {
            name: count for name, count in counts.items() if name.startswith(("dropped.", "lost_"))
        }
