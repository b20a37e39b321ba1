from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
import torch

# A shell starts background jobs with SIGINT ignored, and children inherit it: Ctrl-C is tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Run torch on one thread, then restore the number of threads.

    The results have the same bits everywhere, and tests that run in parallel have processors left.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
