# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Training of networks and their snapshots; `run.train` is the entry point."""
