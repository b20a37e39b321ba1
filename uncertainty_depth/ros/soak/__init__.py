# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The whole graph run for long, and watched for growth."""
