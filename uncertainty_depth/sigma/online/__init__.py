# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Correcting sigma and the depth's scale by LiDAR while the robot drives."""
