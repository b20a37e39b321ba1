# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Benchmarks that need ROS: the node's cost and the delivery of images."""
