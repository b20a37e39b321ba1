# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Types of arrays that many modules name."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
