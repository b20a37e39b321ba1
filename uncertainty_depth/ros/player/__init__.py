# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The player: publishes a bag into ROS 2."""
