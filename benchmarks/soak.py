# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Play a bag in a loop through both nodes, and fail if a process grows.

`python -m benchmarks.soak [--minutes 60] [--model DIR] [--output DIR]`
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from statistics import median
from subprocess import Popen
from typing import NamedTuple

from tqdm import tqdm

from synthetic.config import SynthesisConfig
from synthetic.live_run import METRICS, START_S, Monitor, node_commands, running
from synthetic.source import synthesize
from uncertainty_depth.cli.arguments import positive_float
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.errors import UncertaintyDepthError
from uncertainty_depth.core.model_location import model_path
from uncertainty_depth.frames.bag import BagSource
from uncertainty_depth.ros.diagnostics import Resources, resources_of

WORLD = SynthesisConfig(worlds=1, frames=20, seed=30_000, width=160, height=120, rings=16)
SAMPLES = 600
"""Number of looks at the processes, at least a second apart."""
MIN_PERIOD_S = 1.0
WARM_UP = 0.2
"""Fraction of a run that is not judged: caches fill, the middleware discovers."""
ALLOWED = Resources(memory_mib=20.0, threads=2, descriptors=4)
"""Growth of the median from the first to the last third that does not count as a leak."""
MIN_SAMPLES = 3


class SoakError(UncertaintyDepthError):
    """A process grew, ended, or did no work."""


def run(minutes: float, model: Path, output: Path) -> Iterator[str]:
    """Run depth node, evaluator node and player for some minutes; yield the lines of the result.

    Args:
        minutes: time to run after the start, more than 0.
        model: model folder.
        output: folder for bag, logs, report and `resources.csv`.

    Raises:
        SoakError: memory, threads or descriptors of a process grew by more than `ALLOWED`, a
            process ended, or no frame was scored.
    """
    output.mkdir(parents=True, exist_ok=True)
    bag = output / "bag"
    if not (bag / "metadata.yaml").exists():
        synthesize(bag, WORLD, progress=False)
    commands = node_commands(BagSource(bag, SourceConfig()), model, output / "report")
    player = [sys.executable, "-m", "synthetic.player", str(bag)]
    commands["player"] = [*player, "--clock", "--loop"]
    with ExitStack() as stack:
        monitor = stack.enter_context(Monitor(METRICS, lambda _: None))
        processes = stack.enter_context(running(commands, output))
        if not monitor.wait_for(lambda: _scored(monitor) > 0 or bool(_ended(processes)), START_S):
            raise SoakError(
                f"no frame was scored within {START_S:.0f} s; see the logs in {output}"
            )
        before = _scored(monitor)
        samples = _watch(processes, minutes * 60, output)
        counts = {name: monitor.counts(name) for name in ("depth_node", "evaluator_node")}
    yield from _result(samples, counts, before, minutes)


def _watch(
    processes: Mapping[str, Popen[bytes]], seconds: float, output: Path
) -> dict[str, list[Resources]]:
    """Record the resources of the processes in `resources.csv` until the time is over."""
    period_s = max(MIN_PERIOD_S, seconds / SAMPLES)
    samples: dict[str, list[Resources]] = {name: [] for name in processes}
    start_s = time.monotonic()
    with (output / "resources.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("seconds", "process", *Resources._fields))
        for _ in tqdm(range(max(1, round(seconds / period_s))), "soak"):
            time.sleep(period_s)
            if name := _ended(processes):
                raise SoakError(f"{name} ended; see its log in {output}")
            for name, process in processes.items():
                resources = resources_of(process.pid)
                if resources is None:
                    raise SoakError(
                        "this system has no /proc to read memory and threads from; expected Linux"
                    )
                samples[name].append(resources)
                rows.writerow((f"{time.monotonic() - start_s:.0f}", name, *resources))
    return samples


def _ended(processes: Mapping[str, Popen[bytes]]) -> str:
    """Return the name of a process that has ended; empty if none has."""
    return next((name for name, process in processes.items() if process.poll() is not None), "")


def _scored(monitor: Monitor) -> int:
    return monitor.counts("evaluator_node").get("evaluated", 0)


def _result(
    samples: Mapping[str, list[Resources]],
    counts: Mapping[str, Mapping[str, int]],
    before: int,
    minutes: float,
) -> Iterator[str]:
    scored = counts["evaluator_node"].get("evaluated", 0) - before
    depth = counts["depth_node"]
    yield (
        f"{minutes:g} minutes: {depth.get('received', 0)} images received, "
        f"{depth.get('processed', 0)} processed, {scored} frames scored"
    )
    yield f"{'':16}{'memory MiB':>20}{'threads':>14}{'descriptors':>14}"
    results = [growth(name, values) for name, values in samples.items()]
    for name, early, late in results:
        memory = f"{early.memory_mib:.0f} -> {late.memory_mib:.0f}"
        threads = f"{early.threads} -> {late.threads}"
        descriptors = f"{early.descriptors} -> {late.descriptors}"
        yield f"{name:16}{memory:>20}{threads:>14}{descriptors:>14}"
    excesses = list(chain.from_iterable(result.excesses for result in results))
    if not scored:
        excesses.append("no frame was scored while the processes were watched")
    if excesses:
        raise SoakError("; ".join(excesses))
    yield "nothing grew"


class Growth(NamedTuple):
    """Resources of a process early and late in a run, as medians.

    Attributes:
        process: its name.
        early: median of the first third after the warm-up.
        late: median of the last third.
    """

    process: str
    early: Resources
    late: Resources

    @property
    def excesses(self) -> list[str]:
        """Resources that grew by more than `ALLOWED`, as sentences."""
        parts = zip(Resources._fields, self.early, self.late, ALLOWED, strict=True)
        return [
            f"{self.process}: {name} grew from {early:g} to {late:g}, by more than {allowed:g}"
            for name, early, late, allowed in parts
            if late - early > allowed
        ]


def growth(process: str, samples: Sequence[Resources]) -> Growth:
    """Return the resources of a process early and late in a run.

    Args:
        process: its name.
        samples: at equal times over the run.

    Raises:
        ValueError: there are fewer than `MIN_SAMPLES` after the warm-up.
    """
    judged = samples[int(WARM_UP * len(samples)) :]
    if len(judged) < MIN_SAMPLES:
        raise ValueError(
            f"{process} has {len(judged)} samples after the warm-up; expected {MIN_SAMPLES}"
        )
    third = max(1, len(judged) // 3)
    return Growth(process, _median(judged[:third]), _median(judged[-third:]))


def _median(samples: Sequence[Resources]) -> Resources:
    memory_mib, threads, descriptors = zip(*samples, strict=True)
    return Resources(
        median(memory_mib),
        round(median(threads)),
        round(median(descriptors)),
    )


def main() -> None:
    """Print the result; exit with code 1 and one sentence if a process grew."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=positive_float, default=60.0, help="time to run")
    parser.add_argument("--model", type=Path, default=Path("demo"), help="model folder")
    parser.add_argument("--output", type=Path, default=Path("soak_output"), metavar="DIR")
    arguments = parser.parse_args()
    try:
        for line in run(arguments.minutes, model_path(arguments.model), arguments.output):
            print(line)
    except SoakError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
