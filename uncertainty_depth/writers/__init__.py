# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Writers of bags: predictions, synthetic worlds and converted data sets."""
