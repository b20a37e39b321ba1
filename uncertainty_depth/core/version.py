# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The version of the package."""

__version__ = "0.1.0"
