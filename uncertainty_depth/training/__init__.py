# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How a network is trained, and how its snapshots are taken: `run.train` is the entry."""
