# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The camera model, rigid transforms, and the projection between points and images."""
