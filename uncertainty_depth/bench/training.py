# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Whether the networks of an ensemble train faster at once than one after the other.

`in sequence` against `side by side`: two networks, first one after the other with two threads or
one, then in two processes with one thread each. All run what `train` runs for an epoch, on frames
of noise. `loop` against `stacked`: see `stacking`.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection

import torch

from uncertainty_depth.bench import stacking
from uncertainty_depth.bench.rounds import alternate, load, markdown
from uncertainty_depth.bench.trainee import Row, Trainee
from uncertainty_depth.config import NetworkConfig

NETWORK = NetworkConfig(backbone="tiny", decoder_width=64)
PROCESSES = 2
SIDE_BY_SIDE = "side by side"


def run(
    rounds: int = 5, frames: int = 16, batch: int = 8, network: NetworkConfig = NETWORK
) -> list[Row]:
    """Time both comparisons on the CPU.

    Epochs of `frames` frames of noise, and steps of `batch` frames per network.
    """
    with _threads(1):
        return [*_processes(rounds, network, frames), stacking.run(rounds, network, batch)]


def table(rows: Sequence[Row]) -> str:
    """Return the rows as Markdown."""
    head = ("first", "second", "first s", "second s", "second / first")
    return f"{markdown(head, rows, text_columns=2)}\n\n{load()}"


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _processes(rounds: int, network: NetworkConfig, frames: int) -> list[Row]:
    trainees = [Trainee(network, frames) for _ in range(PROCESSES)]

    def in_sequence(threads: int) -> None:
        with _threads(threads):
            for trainee in trainees:
                trainee.epoch()

    def side_by_side() -> None:
        for process in crew:
            process.send(True)
        for process in crew:
            process.recv()

    sequences = {f"in sequence, threads: {count}": count for count in (PROCESSES, 1)}
    calls = {name: partial(in_sequence, count) for name, count in sequences.items()}
    with _crew(network, frames) as crew:
        seconds = alternate({**calls, SIDE_BY_SIDE: side_by_side}, rounds, description="training")
    return [Row.of(seconds, name, SIDE_BY_SIDE) for name in sequences]


@contextmanager
def _crew(network: NetworkConfig, frames: int) -> Iterator[list[Connection]]:
    """Yield connections to processes that train for an epoch on request."""
    context = multiprocessing.get_context("spawn")
    connections = []
    processes = []
    for _ in range(PROCESSES):
        parent, child = context.Pipe()
        processes.append(
            context.Process(target=_train_on_request, args=(network, frames, child), daemon=True)
        )
        processes[-1].start()
        child.close()
        connections.append(parent)
    try:
        yield connections
    finally:
        for connection, process in zip(connections, processes, strict=True):
            with suppress(BrokenPipeError):  # it may have ended, as on Ctrl-C
                connection.send(False)
            process.join()


def _train_on_request(network: NetworkConfig, frames: int, parent: Connection) -> None:
    torch.set_num_threads(1)
    trainee = Trainee(network, frames)
    while parent.recv():
        trainee.epoch()
        parent.send(None)
