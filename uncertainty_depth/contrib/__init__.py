# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Optional libraries: other runtimes, Ray, the Hub, the viewer rerun."""
