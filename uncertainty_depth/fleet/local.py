# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Score sources in processes of this machine, one process per source.

A process of its own keeps a damaged source from harming the others, whatever it does to the
process, and gives its memory back. Starting it costs seconds; a bag takes minutes.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from uncertainty_depth.errors import UncertaintyDepthError
from uncertainty_depth.fleet.folder import Job
from uncertainty_depth.interrupt import Interrupt

Work = Callable[[str, Path], None]
"""Scores a source and writes its report to a folder; can be pickled."""
RETRIES = 2
"""Of a source whose process was killed, for example for lack of memory."""
POLL_S = 0.5
INTERRUPTED = 130
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Each process has one thread, whatever their number: the same bits with any number of them."""


def run(
    jobs: Sequence[Job],
    work: Work,
    processes: int,
    interrupt: Interrupt,
    tell: Callable[[Job], None],
) -> None:
    """Score each source, and record how it ended.

    Args:
        jobs: sources to score.
        work: scores one.
        processes: at a time.
        interrupt: once requested, no source is begun, and those under way end after their frame.
        tell: called with each source that ended.
    """
    waiting = deque(jobs)
    running: dict[BaseProcess, Job] = {}
    killed: Counter[Job] = Counter()
    announced = False
    try:
        while running or (waiting and not interrupt.requested):
            while waiting and len(running) < processes and not interrupt.requested:
                job = waiting.popleft()
                running[_start(job, work)] = job
            if interrupt.requested and not announced:
                announced = True
                _signal(running, signal.SIGINT)
            wait([process.sentinel for process in running], POLL_S)
            for process in [process for process in running if not process.is_alive()]:
                job = running.pop(process)
                process.join()
                code = process.exitcode or 0
                killed[job] += code < 0
                if code < 0 and killed[job] <= RETRIES and not interrupt.requested:
                    waiting.appendleft(job)
                elif code != INTERRUPTED:
                    _record(job, code)
                    tell(job)
    finally:
        _signal(running, signal.SIGKILL)


def score(work: Work, source: str, folder: Path) -> str:
    """Run the work; return the sentence of its error, empty without one.

    Raises:
        KeyboardInterrupt: it was interrupted.
    """
    try:
        work(source, folder)
    except UncertaintyDepthError as error:
        return str(error)
    except OSError as error:
        return f"{error.filename or source}: {error.strerror or error}"
    except Exception as error:  # of one damaged source: the others go on
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    return ""


def _start(job: Job, work: Work) -> BaseProcess:
    job.outcome_file.unlink(missing_ok=True)
    with _environment():
        process = multiprocessing.get_context("spawn").Process(target=_process, args=(job, work))
        process.start()
    return process


@contextmanager
def _environment() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _process(job: Job, work: Work) -> None:
    os.setpgid(0, 0)  # Ctrl-C in a terminal reaches the parent alone, which passes it on once
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with job.log_file.open("w", encoding="utf-8") as log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
    try:
        job.finish(score(work, job.source, job.folder))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _end_with_parent() -> None:
    """End the process once its parent was killed: the next run scores the source again."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(INTERRUPTED)


def _record(job: Job, code: int) -> None:
    """Record the failure of a process that did not do so itself."""
    if job.outcome():
        return
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    times = f", {RETRIES + 1} times" if code < 0 else ""
    job.finish(f"its process ended with {name}{times}; see {job.log_file}")


def _signal(processes: dict[BaseProcess, Job], number: signal.Signals) -> None:
    for process in processes:
        if process.is_alive() and process.pid is not None:
            os.kill(process.pid, number)
