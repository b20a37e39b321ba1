# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Ctrl-C in real processes: where it strikes is chosen by the process itself."""

import signal
import subprocess
import sys
import threading

from uncertainty_depth.interrupt import deferred_interrupt


def run(code):
    code = f"""
import signal
from uncertainty_depth.interrupt import deferred_interrupt
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


def test_an_ignored_interrupt_stays_ignored():
    done = run("""
signal.signal(signal.SIGINT, signal.SIG_IGN)
with deferred_interrupt() as interrupt:
    strike()
print(interrupt.requested)
""")
    assert done.stdout == "False\n", done.stderr


def test_threads_keep_the_signal_handler():
    entered = []

    def enter():
        with deferred_interrupt():
            entered.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert entered == [signal.getsignal(signal.SIGINT)]
