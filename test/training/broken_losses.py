# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Losses that end a training, and plans with them; worker processes import them by name."""

from __future__ import annotations

import itertools
import os
import signal
from dataclasses import replace

from uncertainty_depth.errors import ConfigError
from uncertainty_depth.training.objective import log_l1
from uncertainty_depth.training.plan import make_plan

calls = itertools.count(1)


def killed(depth_m, scale_m, targets_m):
    """As when the memory is full, in the second epoch: each has two batches and a validation."""
    if next(calls) > 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return log_l1(depth_m, scale_m, targets_m)


def refused(depth_m, scale_m, targets_m):
    """As when the loss is not finite any more."""
    raise ConfigError("the loss has had enough")


def plan_with(losses):
    """Return a `make_plan` that gives members, by their index, one of these losses."""

    def make_broken_plan(network, training):
        plan = make_plan(network, training)
        for index, loss in losses.items():
            member = plan[index]
            plan[index] = replace(member, objective=replace(member.objective, loss=loss))
        return plan

    return make_broken_plan
