# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What is scored and how it is reported: one Evaluation, filled offline and live alike."""
