# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Commands in this process and in one of their own, and Ctrl-C at a place that is chosen."""

import importlib
import signal
import subprocess
import sys
from typing import NamedTuple

import pytest

from uncertainty_depth.cli.main import main

PREDICT = ("uncertainty_depth.depth.predictor", "Predictor.predict")


class Done(NamedTuple):
    """How a command ended, as `subprocess.CompletedProcess` tells it."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def command(capsys):
    """Run a command in this process."""

    def run(*arguments):
        capsys.readouterr()
        return Done(main(list(map(str, arguments))), *capsys.readouterr())

    return run


@pytest.fixture
def process():
    """Run a command in a process of its own: it takes seconds to start."""

    def run(*arguments, **options):
        return subprocess.run(
            [sys.executable, "-m", "uncertainty_depth.cli.main", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            **options,
        )

    return run


@pytest.fixture
def strike(command, monkeypatch):
    """Run a command that gets Ctrl-C at the `call`-th call of a function, `times` times."""

    def run(arguments, place=PREDICT, call=2, times=1):
        module, name = place
        owner = importlib.import_module(module)
        *outer, name = name.split(".")
        for part in outer:
            owner = getattr(owner, part)
        original = getattr(owner, name)
        calls = []

        def struck(*given, **options):
            calls.append(1)
            for _ in range(times if len(calls) == call else 0):
                signal.raise_signal(signal.SIGINT)
            return original(*given, **options)

        monkeypatch.setattr(owner, name, struck)
        try:
            return command(*arguments)
        except KeyboardInterrupt:
            pytest.fail("Ctrl-C was not handled")

    return run
