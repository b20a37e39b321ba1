# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A synthetic indoor world, rendered by analytic ray casting: solids, textures, rooms, furniture, light, a drive, sensors."""
