# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What each command takes until it has looked at its first input: Python, and what it imports.

The input is missing, so that a command ends where its work would begin. CPU time counts: it holds
no waiting for a disk or for another program.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from uncertainty_depth.bench.rounds import Spread, load, markdown
from uncertainty_depth.cli.arguments import SIGNATURES

LIMIT_S = 1.5
REPETITIONS = 3
MISSING = "missing_input"
COMMANDS: dict[str, tuple[str, ...]] = {
    "train": (MISSING, "--output", "out"),
    "evaluate": (MISSING, "--model", "demo", "--output", "out"),
    "predict": ("image.png", "--model", MISSING, "--output", "out"),
    "calibrate": (MISSING, MISSING),
    "export": (MISSING, "out"),
    "convert-kitti": (MISSING, "out"),
    "info": (MISSING,),
    "play": (MISSING,),
    "compare": (MISSING, MISSING, "--output", "out"),
    "merge": (MISSING, "--output", "out"),
}
"""Arguments with which a command ends at its first input; of the others --help is timed."""
PREDICTOR = "uncertainty_depth.inference.predictor"
IMPORTS = {
    "(torch)": "import torch",
    "(a network of transformers)": "from transformers import ResNetBackbone",
    "(the shipped model, ready)": f"from {PREDICTOR} import Predictor; Predictor('demo')",
    "(depth_node)": "import uncertainty_depth.ros.depth_node",
    "(evaluator_node)": "import uncertainty_depth.ros.evaluator_node",
}
"""What a command has to load before its first prediction: two floors, and what stands on them.

The nodes are timed until they load a model; where ROS 2 is missing their time means nothing.
"""


def run(repetitions: int = REPETITIONS) -> dict[str, list[float]]:
    """Return the CPU seconds of each command until its input, and of `IMPORTS`."""
    seconds: dict[str, list[float]] = {}
    for _ in range(repetitions):
        for name in SIGNATURES:
            arguments = COMMANDS.get(name, ("--help",))
            durations = cpu_seconds(["-m", "uncertainty_depth", name, *arguments])
            seconds.setdefault(name, []).append(durations)
        for name, code in IMPORTS.items():
            seconds.setdefault(name, []).append(cpu_seconds(["-c", code]))
    return seconds


def cpu_seconds(arguments: Sequence[str]) -> float:
    """Return the CPU seconds of a Python process that is run with these arguments."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0  # or it would be waited for again
    return usage.ru_utime + usage.ru_stime


def table(seconds: dict[str, list[float]]) -> str:
    """Return the CPU seconds as a Markdown table."""
    spreads = {name: Spread.of(durations) for name, durations in seconds.items()}
    slow = [name for name in SIGNATURES if spreads[name].median >= LIMIT_S]
    verdict = f"every command is below {LIMIT_S} s" if not slow else f"slower: {', '.join(slow)}"
    return f"{markdown(('command', 'CPU s'), list(spreads.items()))}\n\n{verdict}; {load()}"
