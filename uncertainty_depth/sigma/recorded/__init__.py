# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth and confidence that any camera, network or file brings: read, align, put in metres."""
