# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A bag played through both nodes on one machine."""
