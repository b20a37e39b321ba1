# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Run the command line by `python -m uncertainty_depth`."""

import sys

from uncertainty_depth.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
