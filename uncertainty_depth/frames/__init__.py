# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Readers: frames from bags, KITTI drives and NYU folders."""
