# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Experiments of the papers, each one command: `python -m experiments NAME`."""
