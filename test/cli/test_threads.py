# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Commands let waiting threads sleep, unless the user says otherwise."""

import os
import subprocess
import sys


def test_waiting_threads_sleep():
    program = (
        "import os, sys\n"
        "from uncertainty_depth.cli.main import main\n"
        "assert 'torch' not in sys.modules\n"
        "main(['predict', 'none.png', '--model', '/none', '--output', '/none'])\n"
        "print(os.environ['OMP_WAIT_POLICY'])\n"
    )
    plain = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=plain,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "passive"
