# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Engines: what runs a network. torch is the reference; the others run its graphs."""
