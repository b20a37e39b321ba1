# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Synthetic indoor worlds: rooms, a ray tracer, and a robot with camera and LiDAR."""
