# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Every option once: frozen dataclasses by subject, which hold the only defaults.

The command line, YAML files, ROS parameters and launch arguments are all made from them (see
`core.options`), so an option has one name, one default, one range and one line of help.
"""
