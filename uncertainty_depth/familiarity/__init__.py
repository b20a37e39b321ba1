# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Unfamiliarity: how unlike the training's a frame is, by the encoder's features."""
