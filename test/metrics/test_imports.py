# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The metrics and the evaluation import neither torch nor transformers, nor pyplot's state."""

import subprocess
import sys

BLOCKED = """
import sys
sys.modules["torch"] = sys.modules["transformers"] = None
import importlib, pkgutil
import uncertainty_depth.metrics
import uncertainty_depth.report
for package in (uncertainty_depth.metrics, uncertainty_depth.report):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
assert "matplotlib.pyplot" not in sys.modules
"""


def test_metrics_and_evaluation_import_without_torch_and_transformers():
    done = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
