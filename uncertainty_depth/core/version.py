# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The package's version."""

__version__ = "0.1.0"
