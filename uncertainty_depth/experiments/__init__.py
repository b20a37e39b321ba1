# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The experiments of the papers this package rests on, one file per question; `registry` names them."""
