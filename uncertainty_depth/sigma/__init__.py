# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What sigma becomes: calibrated, corrected online, read from others' confidence, gated."""
