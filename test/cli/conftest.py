# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Processes that strike themselves with Ctrl-C at a place they choose."""

import subprocess
import sys

import pytest

STRIKES = """
import signal, sys
import {module} as module
from uncertainty_depth.cli.main import main
original, calls = getattr({owner}, {name!r}), []
def struck(*arguments, **options):
    calls.append(1)
    for _ in range({times} if len(calls) == {call} else 0):
        signal.raise_signal(signal.SIGINT)
    return original(*arguments, **options)
setattr({owner}, {name!r}, struck)
sys.exit(main(sys.argv[1:]))
"""
PREDICTOR = {"module": "uncertainty_depth.inference.predictor", "owner": "module.Predictor"}


@pytest.fixture
def strike():
    """Run a command that gets Ctrl-C `times` times at the `call`-th call of a function."""
    return _strike


def _strike(arguments, name="predict", call=2, times=1, **place):
    code = STRIKES.format(**{**PREDICTOR, **place}, name=name, call=call, times=times)
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
