# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Reports written in the background: scoring never waits for a plot."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation

STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}
Write = Callable[[Evaluation, Path, report.Context], Path]


def write_in_process(evaluation: Evaluation, folder: Path, context: report.Context) -> Path:
    """Write a report in a separate process, which Ctrl-C does not stop.

    Plotting holds the interpreter lock for seconds: in a thread it would slow down the scoring.

    Raises:
        SourceError: the report cannot be written.
    """
    spawn = multiprocessing.get_context("spawn")  # a fork would share the middleware's locks
    with ProcessPoolExecutor(1, spawn) as pool:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # the child inherits it
        try:
            future = pool.submit(report.write, evaluation, folder, context)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return future.result()


class ReportWriter:
    """Writes reports one after the other, each from a copy of an evaluation."""

    def __init__(self, write: Write = write_in_process) -> None:
        self._write = write
        self._thread = ThreadPoolExecutor(1, "report")

    def submit(self, evaluation: Evaluation, folder: Path, context: report.Context) -> Future:
        """Write the report of a copy of an evaluation; return the future of its path."""
        return self._thread.submit(self._write, evaluation, folder, context)

    def close(self) -> None:
        """Finish all submitted reports."""
        self._thread.shutdown()
