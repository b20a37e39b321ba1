# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Worlds that the experiments render beside the package's rooms."""
