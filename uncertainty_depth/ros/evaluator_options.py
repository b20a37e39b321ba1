# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Checks of the evaluator node's parameters."""

from __future__ import annotations

from pathlib import Path

from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.config.prediction import FRAME, SOURCE
from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.predictions.interpreter import Interpreter
from uncertainty_depth.report import report
from uncertainty_depth.ros.run_state import has_state, state_folder


def check_options(config: EvaluatorNodeConfig) -> None:
    """Check that the values go together.

    Raises:
        ConfigError: no depth lies between min_depth and max_depth, the metrics refuse one, the
            alignment needs a recording, or the sigma map is for another confidence.
        SourceError: a report cannot be written to `output`.
    """
    if config.min_depth >= config.max_depth:
        raise ConfigError(
            f"min_depth is {config.min_depth}; expected less than max_depth, {config.max_depth}"
        )
    try:
        OnlineMetrics(config)
    except (ValueError, OverflowError) as error:  # too many depth bins, for example
        raise ConfigError(str(error)) from error
    if config.align != "none" and config.align_per == SOURCE:
        raise ConfigError(
            f"align_per is {SOURCE!r}, which needs the whole recording; expected {FRAME!r}, or "
            "`uncertainty-depth evaluate` on a bag"
        )
    Interpreter(config, config)
    if config.output:
        report.check_folder(Path(config.output))


def check_output(config: EvaluatorNodeConfig) -> None:
    """Check that writing to `output` destroys no scores of an earlier run.

    Raises:
        SourceError: it holds a report, or the state of a killed run lies beside it.
    """
    output = config.output
    if not output or config.overwrite or (config.resume and has_state(output)):
        return
    report.refuse_existing(Path(output))
    if has_state(output):
        raise SourceError(
            f"{state_folder(output)} holds the scores of a run that was killed; expected "
            "resume:=true to continue it, overwrite:=true to discard it, or another output"
        )


def differ(old: EvaluatorNodeConfig, new: EvaluatorNodeConfig, *names: str) -> bool:
    """Return whether one of these options differs."""
    return any(getattr(old, name) != getattr(new, name) for name in names)
