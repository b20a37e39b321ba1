# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""One way into a source: frames, pixels held out, geometry check, what predicts."""
