# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Save reports of a run that goes on, in a process beside the node's."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable
from copy import deepcopy
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from rclpy.node import Node

from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.ros.guarded_node import reason_of
from uncertainty_depth.ros.node import TEARDOWN_S

START_PROCESS: Callable[..., Any] = multiprocessing.get_context("spawn").Process
"""A fork would share the middleware's locks."""


class Save(NamedTuple):
    """A report to write: the arguments of `report.write`."""

    evaluation: Evaluation
    folder: Path
    context: report.Context


class ReportSaver:
    """Writes reports one at a time, each in a process that Ctrl-C does not stop.

    Plotting holds the interpreter lock for seconds: on a thread it would slow down scoring. Of the
    reports that wait, the newest alone is written. The log says when it is, or why not.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._lock = threading.Lock()
        self._waiting: Save | None = None
        self._process: Any = None
        self._thread: threading.Thread | None = None

    def save(self, evaluation: Evaluation, folder: Path, context: report.Context) -> None:
        """Write a report of what is scored by now, and return at once."""
        save = Save(deepcopy(evaluation), folder, context)
        with self._lock:
            self._waiting = save
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="report", daemon=True)
                self._thread.start()

    def cancel(self) -> None:
        """Give up what is being written, and what waits: older than what is written next."""
        with self._lock:
            self._waiting = None
            process, self._process = self._process, None
            thread = self._thread
        if process is not None:
            process.kill()
        if thread is not None:
            thread.join(TEARDOWN_S)

    def _run(self) -> None:
        while True:
            with self._lock:
                save, self._waiting = self._waiting, None
                if save is None:
                    self._thread = None
                    return
                process, connection = _started()
                self._process = process
            with connection:
                outcome = _outcome(process, connection, save)
            with self._lock:
                is_cancelled = self._process is not process
                self._process = None
            if not is_cancelled and self._node.context.ok():
                self._log(outcome)

    def _log(self, outcome: Path | Exception) -> None:
        if isinstance(outcome, Exception):
            self._node.get_logger().error(f"the report is not written: {reason_of(outcome)}")
        else:
            self._node.get_logger().info(f"report: {outcome}")


def _started() -> tuple[Any, Connection]:
    """Return a new process, which inherits that SIGINT is blocked, and where it takes a `Save`."""
    here, there = multiprocessing.Pipe()
    process = START_PROCESS(target=_serve, args=(there,), daemon=True)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        there.close()  # else the end of the process would not end the connection
    return process, here


def _serve(connection: Connection) -> None:
    """Write the report that comes, and send back its page, or why it could not be written."""
    save: Save = connection.recv()
    outcome: Path | Exception
    try:
        outcome = report.write(*save)
    except Exception as error:
        outcome = error
    connection.send(outcome)


def _outcome(process: Any, connection: Connection, save: Save) -> Path | Exception:
    """Return the page that the process wrote, or what prevented it."""
    outcome: Path | Exception
    try:
        connection.send(save)
        outcome = connection.recv()
    except (EOFError, OSError):
        outcome = SourceError("its process ended; is there enough memory?")
    process.join()
    return outcome
