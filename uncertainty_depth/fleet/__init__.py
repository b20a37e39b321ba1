# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Evaluate many sources: one worker a source, on this machine or on a Ray cluster."""
