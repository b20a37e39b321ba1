# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth completion: which known depth a model is given, and which it is scored on."""
