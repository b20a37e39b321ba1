# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What every room uses: records, arrays, options, errors, files, geometry. No torch, no ROS."""
