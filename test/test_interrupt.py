# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Ctrl-C in real processes: where it strikes is chosen by the process itself."""

import signal
import subprocess
import sys
import threading

import pytest

from uncertainty_depth.interrupt import deferred_interrupt, held_interrupt


def run(code):
    code = f"""
import signal
from uncertainty_depth.interrupt import deferred_interrupt, held_interrupt
def strike():
    signal.raise_signal(signal.SIGINT)
{code}"""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )


def test_the_first_ctrl_c_sets_a_flag_and_the_handler_is_restored():
    done = run("""
with deferred_interrupt() as interrupt:
    strike()
    print(interrupt.requested)
try:
    strike()
except KeyboardInterrupt:
    print("as before")
""")
    assert done.stdout.split("\n")[:2] == ["True", "as before"], done.stderr


def test_a_second_ctrl_c_aborts_in_nested_contexts():
    done = run("""
with deferred_interrupt() as outer:
    with deferred_interrupt() as inner:
        strike()
    print(inner.requested, outer.requested)
    strike()
print("never")
""")
    assert done.stdout == "True True\n"
    assert done.returncode == -signal.SIGINT


def test_a_held_interrupt_strikes_afterwards():
    done = run("""
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
""")
    assert done.stdout == "whole\nthen stopped\nTrue\n", done.stderr


def test_an_ignored_interrupt_stays_ignored():
    done = run("""
signal.signal(signal.SIGINT, signal.SIG_IGN)
with deferred_interrupt() as interrupt, held_interrupt():
    strike()
print(interrupt.requested)
""")
    assert done.stdout == "False\n", done.stderr


def test_a_held_interrupt_leaves_the_handler_of_others():
    """To set rclpy's again would lose what it does beside calling Python's."""
    done = run("""
def own(*_):
    print("own")
signal.signal(signal.SIGINT, own)
with held_interrupt():
    strike()
    print("then")
""")
    assert done.stdout == "own\nthen\n", done.stderr


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
