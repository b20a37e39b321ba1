# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Train a model's networks in parallel, each in its own process.

If a process fails, the others train what can be trained; then one error says what is missing, and
a resumed training trains only that. An interrupt ends all processes at once. Each has its
checkpoint, so a resumed training repeats at most one epoch per network.
"""

from __future__ import annotations

import faulthandler
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from logging.handlers import QueueHandler
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, cast

import torch
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from uncertainty_depth.errors import TrainingError, UncertaintyDepthError
from uncertainty_depth.training.frames import FILES, TrainingFrames
from uncertainty_depth.training.member_run import MemberRun, ModelRun

logger = logging.getLogger(__name__)

CONTEXT = multiprocessing.get_context("spawn")
"""A fork of a process with threads, or with CUDA, may hang."""


def train_side_by_side(model: ModelRun, numbers: Sequence[int], processes: int) -> None:
    """Train these members, at most `processes` at a time.

    A member that learns from others waits for all earlier members. Progress bars are in the
    members' logs.

    Raises:
        TrainingError: a process failed.
    """
    threads = max(torch.get_num_threads() // processes, 1)
    model.frames.save(model.folder)
    shared = replace(model, frames=TrainingFrames())
    waiting = list(numbers)
    running: dict[int, MemberProcess] = {}
    failed: dict[int, str] = {}

    def can_begin(number: int) -> bool:
        unfinished = (*waiting, *running, *failed)
        return model.plan[number].targets is None or number == min(unfinished)

    label = f"{processes} processes, threads of each: {threads}"
    try:
        with tqdm(desc=label, total=len(waiting), unit="network") as bar, logging_redirect_tqdm():
            while True:
                for number in [number for number in waiting if can_begin(number)]:
                    if len(running) < processes:
                        slots = {process.slot for process in running.values()}
                        slot = min(set(range(processes)) - slots)
                        waiting.remove(number)
                        running[number] = MemberProcess(shared, number, slot, threads)
                if not running:
                    break
                ready = wait([process.connection for process in running.values()])
                for number, process in list(running.items()):
                    if process.connection in ready and not process.hear():
                        del running[number]
                        bar.update()
                        if failure := process.end():
                            failed[number] = failure
                            logger.error("%s", failure)
    finally:
        for process in running.values():
            process.process.terminate()
        for process in running.values():
            process.end()
        for name in FILES:
            (model.folder / name).unlink(missing_ok=True)
    if failed:
        others = len(failed) + len(waiting) - 1
        also = f" ({others} more failed or were not started)" if others else ""
        first = next(iter(failed.values()))
        raise TrainingError(f"{first}{also}; --resume trains the missing networks")


class MemberProcess:
    """The parent's side of a process that trains one network.

    Attributes:
        slot: index among the running processes, from 0; chooses the GPU.
        connection: brings log records, and at last a sentence if the network is not trained.
    """

    def __init__(self, model: ModelRun, number: int, slot: int, threads: int) -> None:
        self.slot = slot
        self.name = model.plan[number].name
        self.log = model.log(number)
        self.sentence = ""
        self.connection, child = CONTEXT.Pipe(duplex=False)
        self.process = CONTEXT.Process(
            target=work, args=(model, number, slot, threads, child), daemon=True
        )
        with _blocked_interrupts():
            self.process.start()
        child.close()

    def hear(self) -> bool:
        """Handle one message; return False if the process has ended."""
        try:
            message = self.connection.recv()
        except (EOFError, OSError):  # OSError: the process ended in the middle of a message
            return False
        if isinstance(message, str):
            self.sentence = message
        elif (own_logger := logging.getLogger(message.name)).isEnabledFor(message.levelno):
            own_logger.handle(message)
        return True

    def end(self) -> str:
        """Join the process; return why its network is not trained, empty if it is."""
        self.process.join()
        self.connection.close()
        code = self.process.exitcode
        if code == 0:
            return ""
        reason = self.sentence or f"its process ended with exit code {code}"
        if code is not None and code < 0:
            reason = f"its process was ended by {signal.Signals(-code).name}"
        return f"{self.name} was not trained: {reason}; see {self.log}"


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


def work(model: ModelRun, number: int, slot: int, threads: int, parent: Connection) -> None:
    """Train the member `number` on the frames that the parent saved in the model folder.

    Args:
        model: without frames.
        number: the member's place in the plan, from 0.
        slot: see `MemberProcess`.
        threads: number of threads for torch's operators.
        parent: gets log records, and the sentence that says why the network is not trained.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with model.log(number).open("a") as file:  # all output, including a crash's
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    faulthandler.enable()
    handlers = [ToParent(cast(Any, parent)), logging.StreamHandler()]
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=handlers)
    # tqdm's own lock is a semaphore, which a process that is ended would leave behind.
    tqdm.set_lock(threading.RLock())
    torch.set_num_threads(threads)
    if model.device.type == "cuda" and model.device.index is None:
        torch.cuda.set_device(slot % torch.cuda.device_count())
    try:
        MemberRun(replace(model, frames=TrainingFrames.mapped(model.folder)), number).run()
    except Exception as error:
        first_line = (str(error).splitlines() or [""])[0]
        is_ours = isinstance(error, UncertaintyDepthError)
        parent.send(str(error) if is_ours else f"{type(error).__name__}: {first_line}")
        raise


class ToParent(QueueHandler):
    """Sends log records to the parent's loggers."""

    def enqueue(self, record: logging.LogRecord) -> None:
        """Send a record through the connection."""
        connection: Any = self.queue
        connection.send(record)


def _end_with_parent() -> None:
    """End this process if the parent is killed: nothing would restart its training."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
