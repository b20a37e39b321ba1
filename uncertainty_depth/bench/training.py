# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Whether the networks of an ensemble train faster at once than one after the other.

`in sequence` against `side by side`: two networks, first one after the other with two threads or
one, then in two processes with one thread each. All run what `train` runs for an epoch, on frames
of noise.

`loop` against `stacked`: one step of each of four networks, and one step of the four stacked,
every layer once for all: a convolution of stacked weights is a grouped convolution (`torch.func`).
Both with one thread and in float32: autocast does not reach into the stacked network.

The two ways of each comparison take turns, so that other load on the machine hits both; the ratio
is the median of the rounds' own.
"""

from __future__ import annotations

import copy
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from tqdm import tqdm, trange

from uncertainty_depth.config import NetworkConfig, TrainingConfig
from uncertainty_depth.network.hourglass import Hourglass
from uncertainty_depth.training import losses
from uncertainty_depth.training.epoch import train_epoch
from uncertainty_depth.training.frames import TrainingFrames
from uncertainty_depth.training.objective import Objective

CHANNELS_LAST: Any = {"memory_format": torch.channels_last}  # not in torch's stubs
NETWORK = NetworkConfig(backbone="tiny", decoder_width=64)
TRAINING = TrainingConfig(device="cpu")
PROCESSES = 2
MEMBERS = 4


class Row(NamedTuple):
    """Two ways to train the same networks.

    Medians over the rounds, and the median, min and max of each round's own ratio.
    """

    first: str
    second: str
    first_s: float
    second_s: float
    ratio: float
    min_ratio: float
    max_ratio: float


def run(
    rounds: int = 5, frames: int = 16, batch: int = 8, network: NetworkConfig = NETWORK
) -> list[Row]:
    """Time both comparisons on the CPU.

    Epochs of `frames` frames of noise, and steps of `batch` frames per network.
    """
    with _threads(1):
        return [*_processes(rounds, network, frames), _stacking(rounds, network, batch)]


def table(rows: Sequence[Row]) -> str:
    """Return the rows as Markdown."""
    head = [
        "| first | second | first s | second s | second / first | min | max |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines = []
    for row in rows:
        cells = [row.first, row.second, *(f"{value:.2f}" for value in row[2:])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*head, *lines])


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _alternate(rounds: int, *ways: Callable[[], object]) -> np.ndarray:
    """Return (rounds, ways) seconds, after a round that is not counted."""
    seconds = []
    for _ in trange(rounds + 1, desc="training", unit="round"):
        seconds.append([_timed(way) for way in ways])
    return np.array(seconds[1:])


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _row(first: str, second: str, seconds: np.ndarray) -> Row:
    ratios = seconds[:, 1] / seconds[:, 0]
    return Row(
        first,
        second,
        first_s=float(np.median(seconds[:, 0])),
        second_s=float(np.median(seconds[:, 1])),
        ratio=float(np.median(ratios)),
        min_ratio=float(ratios.min()),
        max_ratio=float(ratios.max()),
    )


class Trainee:
    """A network, and frames of noise to train it on."""

    def __init__(self, network: NetworkConfig, frames: int) -> None:
        random = np.random.default_rng(0)
        width, height = network.input_size
        images = random.integers(0, 256, (frames, height, width, 3), np.uint8)
        self.frames = TrainingFrames(
            list(images), list(random.uniform(1, 10, images.shape[:3]).astype(np.float16))
        )
        self.network = Hourglass(network).train().to(**CHANNELS_LAST)
        self.optimizer = _optimizer(self.network.parameters())
        self.objective = Objective(losses.choose(network, TRAINING))

    def epoch(self) -> float:
        """Show every frame once, as `train` does."""
        indices = range(len(self.frames))
        silent = tqdm(disable=True)
        return train_epoch(
            self.network, self.optimizer, self.objective, self.frames, indices, TRAINING, 0, silent
        )


def _optimizer(weights: Iterable[Tensor]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(weights, TRAINING.learning_rate, weight_decay=TRAINING.weight_decay)


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

    with _crew(network, frames) as crew:
        seconds = _alternate(
            rounds, partial(in_sequence, PROCESSES), partial(in_sequence, 1), side_by_side
        )
    threads = (PROCESSES, 1)
    return [
        _row(f"in sequence, threads: {count}", "side by side", seconds[:, [way, 2]])
        for way, count in enumerate(threads)
    ]


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


class Loop:
    """Networks trained each by itself."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        self.networks = [copy.deepcopy(network).to(**CHANNELS_LAST) for network in networks]
        self.optimizers = [_optimizer(network.parameters()) for network in self.networks]

    def step(self, images: Tensor, depth_m: Tensor) -> Tensor:
        """Train on a batch for each network and return the losses before the step, (M,).

        Args:
            images: (M, B, 3, h, w).
            depth_m: (M, B, 1, h, w), metres.
        """
        values = []
        for network, optimizer, *batch in zip(
            self.networks, self.optimizers, images, depth_m, strict=True
        ):
            values.append(_loss(network(batch[0]).depth_m, batch[1]))
            _descend(optimizer, values[-1])
        return torch.stack(values).detach()


class Stacked:
    """The same networks as one, every weight stacked."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        self.one = copy.deepcopy(networks[0]).to("meta")
        self.weights, self.buffers = stack_module_state(list(networks))
        self.optimizer = _optimizer(self.weights.values())

    def step(self, images: Tensor, depth_m: Tensor) -> Tensor:
        """As that of `Loop`; dropout differs between the networks here too."""
        values = vmap(self._loss, randomness="different")(
            self.weights, self.buffers, images, depth_m
        )
        _descend(self.optimizer, values.sum())
        return values.detach()

    def _loss(
        self,
        weights: dict[str, Tensor],
        buffers: dict[str, Tensor],
        images: Tensor,
        depth_m: Tensor,
    ) -> Tensor:
        return _loss(functional_call(self.one, (weights, buffers), (images,)).depth_m, depth_m)


def _loss(depth_m: Tensor, truth_m: Tensor) -> Tensor:
    """Return the mean log-L1 error: the loss of training picks pixels, which vmap cannot."""
    return (depth_m.log() - truth_m.log()).abs().mean()


def _descend(optimizer: torch.optim.Optimizer, value: Tensor) -> None:
    optimizer.zero_grad(set_to_none=True)
    value.backward()
    optimizer.step()


def _stacking(rounds: int, network: NetworkConfig, batch: int) -> Row:
    networks = [Hourglass(network).train() for _ in range(MEMBERS)]
    width, height = network.input_size
    images = torch.rand(MEMBERS, batch, 3, height, width)
    depth_m = 1 + 9 * torch.rand(MEMBERS, batch, 1, height, width)
    loop = Loop(networks)
    stacked = Stacked(networks)
    return _row(
        "loop",
        "stacked",
        _alternate(
            rounds, lambda: loop.step(images, depth_m), lambda: stacked.step(images, depth_m)
        ),
    )
