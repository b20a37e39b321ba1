# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The depth networks: encoder, decoder, and the hourglass of both."""

import importlib.util

from uncertainty_depth.core.errors import UncertaintyDepthError, missing

for _library in ("torch",):
    if importlib.util.find_spec(_library) is None:
        raise UncertaintyDepthError(missing(_library))
