# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Scripts that print ratios measured in one run: `python -m benchmarks.NAME`."""
