# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Score sources on a Ray cluster: one task per source, repeated if its node dies.

Nodes read sources and model from a file system that they share with the driver, and send the
report's files back. They write nothing permanent.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from uncertainty_depth.core.errors import ConfigError, first_line, missing
from uncertainty_depth.core.output import OutputFolder
from uncertainty_depth.core.process import Interrupt
from uncertainty_depth.report.fleet import FleetSource
from uncertainty_depth.report.report import KIND, SUMMARY_FILE
from uncertainty_depth.stream.workers import Work, score

LOCAL = "local"
RETRIES = 5
"""How often a task is repeated whose node or process died."""
POLL_S = 0.5


@contextmanager
def _cluster(address: str) -> Iterator[Any]:
    """Connect to a cluster, see `run`, and yield the module `ray`."""
    try:
        import ray
    except ImportError as error:
        raise ConfigError(missing("ray")) from error
    try:
        ray.init(
            address=None if address == LOCAL else address,
            log_to_driver=False,
            include_dashboard=False if address == LOCAL else None,
        )
    except ConnectionError as error:
        raise ConfigError(
            f"no Ray cluster answers at {address}; expected its address, as `ray start --head` "
            "prints it, or local"
        ) from error
    except Exception as error:  # of a process of Ray that died: it has no type of its own
        raise ConfigError(f"Ray at {address} does not start: {first_line(error)}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def run(
    work: Mapping[FleetSource, Work],
    address: str,
    gpus: bool,
    interrupt: Interrupt,
    on_source_done: Callable[[FleetSource], None],
) -> None:
    """Score each source, and record how it ended; the address "local" starts a cluster here.

    With `gpus` each task takes a GPU if the cluster has any. Once an interrupt is requested, tasks
    are cancelled. `on_source_done` is called with each finished source.

    Raises `ConfigError` if Ray is missing, does not start or does not answer.
    """
    with _cluster(address) as ray:
        options: dict[str, Any] = {"num_cpus": 1, "max_retries": RETRIES}
        if gpus and ray.cluster_resources().get("GPU"):
            options["num_gpus"] = 1
        task = ray.remote(**options)(_score_remotely)
        folder = os.getcwd()
        running = {task.remote(item, folder): source for source, item in work.items()}
        while running and not interrupt.requested:
            ready, _ = ray.wait(list(running), num_returns=1, timeout=POLL_S)
            for reference in ready:
                source = running.pop(reference)
                try:
                    failure, files = ray.get(reference)
                except ray.exceptions.RayError as error:
                    reason = (str(error).strip() or repr(error)).splitlines()[-1]
                    failure = f"its task failed {RETRIES + 1} times: {reason}"
                    files = {}
                if files:
                    with OutputFolder(source.folder, KIND).replacing(SUMMARY_FILE) as staging:
                        for name, content in files.items():
                            (staging / name).write_bytes(content)
                source.finish(failure)
                on_source_done(source)
        for reference in running:
            ray.cancel(reference, force=True)


def _score_remotely(work: Work, folder: str) -> tuple[str, dict[str, bytes]]:
    """Return why scoring failed, empty if it did not, and the report's files."""
    if Path(folder).is_dir():  # relative paths are then the same as the driver's
        os.chdir(folder)
    with TemporaryDirectory() as parent:
        report = Path(parent) / "report"
        failure = score(work, report)
        if failure:
            return failure, {}
        made = OutputFolder(report, KIND).made()
        return "", {name: (report / name).read_bytes() for name in made}
