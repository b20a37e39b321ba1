# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Ctrl-C in real processes: where it strikes is chosen by the process itself."""

import signal
import subprocess
import sys
import threading

import pytest

from uncertainty_depth.core.process import deferred_interrupt, held_interrupt

PREAMBLE = """
import signal
from uncertainty_depth.core.process import deferred_interrupt, held_interrupt
def strike():
    signal.raise_signal(signal.SIGINT)
"""
FIRST_AND_SECOND = """
with deferred_interrupt() as interrupt:
    strike()
    print(interrupt.requested)
try:
    strike()
except KeyboardInterrupt:
    print("as before")
"""
NESTED = """
with deferred_interrupt() as outer:
    with deferred_interrupt() as inner:
        strike()
    print(inner.requested, outer.requested)
    strike()
print("never")
"""
HELD = """
try:
    with held_interrupt():
        strike()
        strike()
        print("whole")
except KeyboardInterrupt:
    print("then stopped")
with deferred_interrupt() as interrupt:
    with held_interrupt():
        strike()
    print(interrupt.requested)
"""
OF_OTHERS = """
def own(*_):
    print("own")
signal.signal(signal.SIGINT, own)
with held_interrupt():
    strike()
    print("then")
"""
IGNORED = """
signal.signal(signal.SIGINT, signal.SIG_IGN)
with deferred_interrupt() as interrupt, held_interrupt():
    strike()
print(interrupt.requested)
"""


@pytest.mark.parametrize(
    ("code", "printed", "ends"),
    [
        (FIRST_AND_SECOND, "True\nas before\n", 0),
        (NESTED, "True True\n", -signal.SIGINT),
        (HELD, "whole\nthen stopped\nTrue\n", 0),
        (OF_OTHERS, "own\nthen\n", 0),  # to set rclpy's again would lose what it does beside
        (IGNORED, "False\n", 0),
    ],
    ids=[
        "sets a flag once",
        "aborts at the second",
        "strikes after it is held",
        "is held from no handler of others",
        "stays ignored",
    ],
)
def test_ctrl_c(code, printed, ends):
    command = [sys.executable, "-c", PREAMBLE + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == (printed, ends), done.stderr


@pytest.mark.parametrize("context", [deferred_interrupt, held_interrupt])
def test_threads_keep_the_signal_handler(context):
    entered = []

    def enter():
        with context():
            entered.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert entered == [signal.getsignal(signal.SIGINT)]
