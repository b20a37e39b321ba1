# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a robot acts on: depth maps and point clouds that are gated or bounded by sigma."""
