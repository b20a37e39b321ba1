# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Train the networks of a model on a Ray cluster, each in a task of its own.

Every node reads and writes the model folder, on a file system that they share. The task of a node
that dies is started again elsewhere and goes on after the last epoch of its checkpoint.
"""

from __future__ import annotations

import logging
import os
import socket
import traceback
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from logging.handlers import BufferingHandler
from typing import Any, NamedTuple

import torch
from tqdm import tqdm

from uncertainty_depth.fleet.on_ray import POLL_S, RETRIES, go_to, last_line
from uncertainty_depth.training.frames import FILES, TrainingFrames
from uncertainty_depth.training.member_run import MemberRun, ModelRun
from uncertainty_depth.training.side_by_side import raise_failures

logger = logging.getLogger(__name__)
MAX_WARNINGS = 1000


class Outcome(NamedTuple):
    """Result of a task: why it failed, empty if it did not, and its warnings."""

    failure: str
    warnings: list[str]


def train_on_ray(model: ModelRun, numbers: Sequence[int], ray: Any) -> None:
    """Train these members, with a GPU each where the cluster has any.

    A member that learns from others waits for all before it.

    Args:
        model: its folder exists on all nodes, under the same path.
        numbers: of the members, ascending.
        ray: the module, connected to a cluster.

    Raises:
        TrainingError: a member could not be trained; the others are.
    """
    gpus = model.plan[0].training.device != "cpu" and ray.cluster_resources().get("GPU", 0) > 0
    threads = 1 if gpus else _threads(ray, len(numbers))
    where = "a GPU each" if gpus else f"threads of each: {threads}"
    logger.info("%d networks are trained on Ray; %s", len(numbers), where)
    model.frames.save(model.folder)
    device = torch.device("cuda" if gpus else "cpu")
    task_model = replace(model, frames=TrainingFrames(), device=device)
    task = ray.remote(num_cpus=threads, num_gpus=int(gpus), max_retries=RETRIES)(train_member)
    running: dict[Any, int] = {}
    try:
        for number in numbers:
            before = [] if model.plan[number].targets is None else list(running)
            running[task.remote(task_model, number, threads, os.getcwd(), *before)] = number
        failed = _awaited(model, dict(running), ray)
    finally:
        for reference in running:
            ray.cancel(reference, force=True)
        for name in FILES:
            (model.folder / name).unlink(missing_ok=True)
    raise_failures(failed)


def train_member(
    model: ModelRun, number: int, threads: int, folder: str, *before: Outcome
) -> Outcome:
    """Train one member, in a task.

    Args:
        model: without frames, which are in its folder.
        number: place of the member in the plan, from 0.
        threads: for torch's operators.
        folder: that the driver works in.
        before: outcomes of the members that this one learns from.
    """
    if any(outcome.failure for outcome in before):
        return Outcome("a network that it learns from was not trained", [])
    go_to(folder)
    if not (model.folder / "model.json").is_file():
        return Outcome(
            f"{model.folder} is not on {socket.gethostname()}; expected a folder that all nodes "
            "share",
            [],
        )
    torch.set_num_threads(threads)
    warnings = BufferingHandler(MAX_WARNINGS)
    package = logging.getLogger("uncertainty_depth")
    package.addHandler(warnings)
    try:
        with_frames = replace(model, frames=TrainingFrames.mapped(model.folder))
        MemberRun(with_frames, number, partial(tqdm, disable=True)).run()
        return Outcome("", [record.getMessage() for record in warnings.buffer])
    except Exception as error:
        model.log(number).write_text(traceback.format_exc(), encoding="utf-8")
        return Outcome(f"{last_line(error)}; see {model.log(number)}", [])
    finally:
        package.removeHandler(warnings)


def _threads(ray: Any, members: int) -> int:
    """Return the threads per member: an equal part of all cores, at most those of a node."""
    cores = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
    return int(max(min(sum(cores) // members, max(cores)), 1))


def _awaited(model: ModelRun, running: dict[Any, int], ray: Any) -> dict[int, str]:
    """Return why members were not trained, by their numbers, once all tasks have ended."""
    failed: dict[int, str] = {}
    with tqdm(total=len(running), unit="network", desc="training on Ray") as bar:
        while running:
            ready, _ = ray.wait(list(running), num_returns=1, timeout=POLL_S)
            for reference in ready:
                number = running.pop(reference)
                name = model.plan[number].name
                outcome = _outcome(ray, reference)
                for warning in outcome.warnings:
                    logger.warning("%s", warning)
                if outcome.failure:
                    failed[number] = f"{name} was not trained: {outcome.failure}"
                    logger.error("%s", failed[number])
                bar.update()
    return failed


def _outcome(ray: Any, reference: Any) -> Outcome:
    try:
        return Outcome(*ray.get(reference))
    except ray.exceptions.RayError as error:
        return Outcome(f"its task failed {RETRIES + 1} times: {last_line(error)}", [])
