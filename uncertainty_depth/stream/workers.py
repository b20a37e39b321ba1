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
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any

from uncertainty_depth.core.errors import UncertaintyDepthError
from uncertainty_depth.core.process import Interrupt
from uncertainty_depth.report.fleet import FleetSource

Work = tuple[Callable[[Any, Path, str], None], Any, str]
"""A function that scores a job and writes its report to a folder, the job, and the command."""
TRIES = 3
"""How often a source is tried whose process is killed, for example for lack of memory."""
POLL_S = 0.5
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Each process has one thread, whatever their number: the same bits with any number of them."""


def run(
    work: Mapping[FleetSource, Work],
    processes: int,
    interrupt: Interrupt,
    on_source_done: Callable[[FleetSource], None],
) -> None:
    """Score each source in at most so many processes, and record how it ended.

    Once an interrupt is requested, no source is started, and running ones end after their current
    frame. `on_source_done` is called with each finished source.
    """
    workers: set[int] = set()
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))  # read when a process starts
    with ThreadPoolExecutor(processes) as threads:
        sources = {
            threads.submit(_alone, source, item, workers, interrupt): source
            for source, item in work.items()
        }
        waiting = set(sources)
        announced = False
        try:
            while waiting:
                done, waiting = wait(waiting, POLL_S, FIRST_COMPLETED)
                for future in done:
                    if future.result():
                        on_source_done(sources[future])
                if interrupt.requested and not announced:
                    announced = True
                    _signal(workers, signal.SIGINT)
        finally:
            interrupt.requested = interrupt.requested or bool(waiting)
            _signal(workers, signal.SIGKILL)


def score(work: Work, folder: Path) -> str:
    """Do the work; return its error's sentence, empty without one."""
    function, job, command = work
    try:
        function(job, folder, command)
    except UncertaintyDepthError as error:
        return str(error)
    except OSError as error:
        return f"{error.filename or folder.name}: {error.strerror or error}"
    except Exception as error:  # of one damaged source: the others go on
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    return ""


def _alone(source: FleetSource, work: Work, workers: set[int], interrupt: Interrupt) -> bool:
    """Score a source in a process of its own; return whether it ended by itself."""
    source.outcome_file.unlink(missing_ok=True)
    spawn = multiprocessing.get_context("spawn")
    for _ in range(TRIES):
        if interrupt.requested:
            return False
        # A pool whose process is killed is broken: each source has its own.
        with ProcessPoolExecutor(1, spawn, _begin, (source.log_file,)) as pool:
            worker = 0
            # In this thread and what it starts. The pool has started a process that lets it in.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                worker = pool.submit(os.getpid).result()
                workers.add(worker)
                if interrupt.requested:  # perhaps before it could be passed on
                    return False
                failure = pool.submit(score, work, source.folder).result()
            except BrokenProcessPool:
                continue
            except KeyboardInterrupt:
                return False
            finally:
                workers.discard(worker)
        source.finish(failure)
        return True
    if interrupt.requested:
        return False
    source.finish(f"its process was killed, {TRIES} times; see {source.log_file}")
    return True


def _begin(log_file: Path) -> None:
    """Prepare a worker process."""
    os.setpgid(0, 0)  # Ctrl-C in a terminal reaches the parent alone, which passes it on once
    # One from before is forgotten: the parent had it too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with log_file.open("w", encoding="utf-8") as log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())


def _end_with_parent() -> None:
    """End the process once its parent was killed: the next run scores the source again."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _signal(workers: set[int], number: signal.Signals) -> None:
    for worker in list(workers):
        with suppress(ProcessLookupError):
            os.kill(worker, number)
