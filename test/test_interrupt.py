# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Ctrl-C in real processes: where it strikes is chosen by the process itself."""

import signal
import subprocess
import sys
import threading

import pytest

from uncertainty_depth.interrupt import deferred_interrupt

PREAMBLE = """
import signal
from uncertainty_depth.interrupt import deferred_interrupt
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
IGNORED = """
signal.signal(signal.SIGINT, signal.SIG_IGN)
with deferred_interrupt() as interrupt:
    strike()
print(interrupt.requested)
"""


@pytest.mark.parametrize(
    ("code", "printed", "ends"),
    [
        (FIRST_AND_SECOND, "True\nas before\n", 0),
        (NESTED, "True True\n", -signal.SIGINT),
        (IGNORED, "False\n", 0),
    ],
    ids=["sets a flag once", "aborts at the second", "stays ignored"],
)
def test_ctrl_c(code, printed, ends):
    command = [sys.executable, "-c", PREAMBLE + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == (printed, ends), done.stderr


def test_threads_keep_the_signal_handler():
    entered = []

    def enter():
        with deferred_interrupt():
            entered.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert entered == [signal.getsignal(signal.SIGINT)]
