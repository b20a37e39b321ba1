# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Train networks of a model in parallel, each in its own process.

A process that fails leaves the others at work: they train what can be trained, then one error says
what is missing, and a resumed training goes on with that alone. An interrupt ends them all at
once; each has its checkpoint, so a resumed training repeats at most one epoch of each.
"""

from __future__ import annotations

import faulthandler
import io
import logging
import multiprocessing
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from logging.handlers import QueueHandler
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from threading import RLock
from typing import Any, cast

import torch
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from uncertainty_depth.errors import TrainingError, UncertaintyDepthError
from uncertainty_depth.training.frames import FILES, TrainingFrames
from uncertainty_depth.training.member_run import MemberRun, ModelRun

logger = logging.getLogger(__name__)

BAR = ("n", "initial", "total", "desc", "postfix", "start_t")


def work(model: ModelRun, number: int, slot: int, threads: int, parent: Connection) -> None:
    """Train the member `number` on the frames that the parent saved in the model folder.

    Args:
        model: without frames.
        number: place of the member in the plan, from 0.
        slot: which of the processes at work this is, from 0: chooses the GPU.
        threads: for torch's operators.
        parent: gets the state of the progress bar (a mapping), log records, and at last the
            sentence that says why, where the network is not trained.
    """
    _print_into(model.log(number))
    logging.basicConfig(
        level=logging.INFO,
        format="%(message)s",
        handlers=[ToParent(cast(Any, parent)), logging.StreamHandler()],
    )
    # tqdm's own lock is a semaphore, which a process that is ended would leave behind.
    tqdm.set_lock(RLock())
    torch.set_num_threads(threads)
    if model.device.type == "cuda" and model.device.index is None:
        torch.cuda.set_device(slot % torch.cuda.device_count())
    try:
        with_frames = replace(model, frames=TrainingFrames.mapped(model.folder))
        MemberRun(with_frames, number, partial(ParentsBar, parent)).run()
    except Exception as error:
        sentence = (str(error).splitlines() or [""])[0]
        parent.send(
            str(error)
            if isinstance(error, UncertaintyDepthError)
            else f"{type(error).__name__}: {sentence}"
        )
        raise


def _print_into(log: Path) -> None:
    """Redirect all output to the log, including that of a crash."""
    with log.open("a") as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    faulthandler.enable()


class ParentsBar(tqdm):
    """Progress bar that the parent draws; raises if the parent has ended."""

    monitor_interval = 0  # no thread that could write to the connection at the same time

    def __init__(self, parent: Connection, **options: object) -> None:
        self.parent = parent
        super().__init__(file=io.StringIO(), **options)

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Send the state of the bar to the parent."""
        self.parent.send({name: value for name, value in vars(self).items() if name in BAR})


class ToParent(QueueHandler):
    """Send log records to the parent's loggers."""

    def enqueue(self, record: logging.LogRecord) -> None:
        """Send a record through the connection."""
        connection: Any = self.queue
        connection.send(record)


CONTEXT = multiprocessing.get_context(
    "spawn"
)  # a fork of a process with threads, or with CUDA, may hang


def processes_for(model: ModelRun, numbers: Sequence[int], requested: int) -> int:
    """Return how many of these members to train in parallel; `requested` = 0 means one per GPU."""
    has_all_gpus = model.device.type == "cuda" and model.device.index is None
    gpus = torch.cuda.device_count() if has_all_gpus else 1
    return min(requested or gpus, sum(model.plan[number].targets is None for number in numbers))


def train_side_by_side(model: ModelRun, numbers: Sequence[int], processes: int) -> None:
    """Train these members, at most `processes` at a time.

    A member that learns from others waits for all before it.

    Raises:
        TrainingError: a process failed.
    """
    threads = max(torch.get_num_threads() // processes, 1)
    logger.info(
        "%d networks are trained by %d processes; threads of each: %d",
        len(numbers),
        processes,
        threads,
    )
    model.frames.save(model.folder)
    crew = Crew(replace(model, frames=TrainingFrames()), numbers, threads)
    try:
        with logging_redirect_tqdm():
            while crew.start(processes):
                crew.listen()
    finally:
        crew.stop()
        for name in FILES:
            (model.folder / name).unlink(missing_ok=True)
    crew.report()


class Crew:
    """Running processes, waiting members, and the errors of those that failed."""

    def __init__(self, model: ModelRun, numbers: Sequence[int], threads: int) -> None:
        self.model = model
        self.threads = threads
        self.waiting = list(numbers)
        self.running: dict[int, MemberProcess] = {}
        self.failed: dict[int, str] = {}

    def start(self, max_running: int) -> bool:
        """Start processes up to `max_running` for waiting members; return whether any runs."""
        for number in [number for number in self.waiting if self._can_begin(number)][
            : max_running - len(self.running)
        ]:
            self.waiting.remove(number)
            slot = min(set(range(max_running)) - {worker.slot for worker in self.running.values()})
            with _blocked_interrupts():
                self.running[number] = MemberProcess(self.model, number, slot, self.threads)
        return bool(self.running)

    def _can_begin(self, number: int) -> bool:
        unfinished = (*self.waiting, *self.running, *self.failed)
        return self.model.plan[number].targets is None or number == min(unfinished)

    def listen(self) -> None:
        """Wait for a message or the end of a process."""
        ready = wait([worker.connection for worker in self.running.values()])
        for number, worker in [
            (number, worker)
            for number, worker in self.running.items()
            if worker.connection in ready
        ]:
            if not worker.hear():
                del self.running[number]
                if failure := worker.end():
                    self.failed[number] = (
                        f"{self.model.plan[number].name} was not trained: {failure}; see "
                        f"{self.model.log(number)}"
                    )
                    logger.error("%s", self.failed[number])

    def stop(self) -> None:
        """Terminate all processes."""
        for worker in self.running.values():
            worker.process.terminate()
        for worker in self.running.values():
            worker.end()

    def report(self) -> None:
        """Raise `TrainingError` where a process failed."""
        raise_failures(self.failed, len(self.waiting))


def raise_failures(failed: Mapping[int, str], not_begun: int = 0) -> None:
    """Raise `TrainingError` with the first failure, if there is any, and the number of others.

    Args:
        failed: why members were not trained, by their numbers, the first one first.
        not_begun: number of members that wait for them.
    """
    if not failed:
        return
    others = len(failed) + not_begun - 1
    also = f" ({others} more failed or were not started)" if others else ""
    first = next(iter(failed.values()))
    raise TrainingError(f"{first}{also}; --resume trains the missing networks")


class MemberProcess:
    """Parent's side of a process that trains one network."""

    def __init__(self, model: ModelRun, number: int, slot: int, threads: int) -> None:
        self.slot = slot
        self.sentence = ""
        self.bar = tqdm(desc=f"{model.plan[number].name} starts", unit="batch")
        model.log(number).touch()
        self.connection, child = CONTEXT.Pipe(duplex=False)
        self.process = CONTEXT.Process(
            target=work, args=(model, number, slot, threads, child), daemon=True
        )
        self.process.start()
        child.close()

    def hear(self) -> bool:
        """Handle one message; return False when the process has ended."""
        try:
            message = self.connection.recv()
        except (EOFError, OSError):  # OSError: it ended in the middle of a message
            return False
        if isinstance(message, logging.LogRecord):
            _log(message)
        elif isinstance(message, str):
            self.sentence = message
        else:
            vars(self.bar).update(message)
            self.bar.refresh()
        return True

    def end(self) -> str:
        """Join the process; return why its network is not trained, empty if it is."""
        self.process.join()
        self.connection.close()
        self.bar.close()
        code = self.process.exitcode
        if code is None:
            return self.sentence or "its process has not ended"
        how = (
            f"its process was ended by {signal.Signals(-code).name}"
            if code < 0
            else f"its process ended with exit code {code}"
        )
        return "" if code == 0 else self.sentence or how


def _log(record: logging.LogRecord) -> None:
    if (own_logger := logging.getLogger(record.name)).isEnabledFor(record.levelno):
        own_logger.handle(record)


@contextmanager
def _blocked_interrupts() -> Iterator[None]:
    """Block SIGINT for processes started in this context.

    A terminal sends Ctrl-C to every process; the parent gets it and ends the others.
    """
    # Started with the first process otherwise, the tracker lets interrupts through.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
