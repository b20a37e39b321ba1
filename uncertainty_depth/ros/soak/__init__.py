# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Run the whole graph for minutes, and check its processes for growth."""
