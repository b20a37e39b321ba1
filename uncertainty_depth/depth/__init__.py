# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""From an image to depth: networks, estimators, the model on disk, `Predictor`, training."""
