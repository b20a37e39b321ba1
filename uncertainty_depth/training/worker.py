# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Train one network in a separate process.

Messages go to the parent, output into a log file.
"""

from __future__ import annotations

import faulthandler
import io
import logging
import os
from dataclasses import replace
from functools import partial
from logging.handlers import QueueHandler
from multiprocessing.connection import Connection
from pathlib import Path
from threading import RLock
from typing import Any, cast

import torch
from tqdm import tqdm

from uncertainty_depth.errors import UncertaintyDepthError
from uncertainty_depth.training.frames import TrainingFrames
from uncertainty_depth.training.member_run import MemberRun
from uncertainty_depth.training.model_run import ModelRun

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
