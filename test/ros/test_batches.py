# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Which methods a budget of time is offered for."""

import pytest

from uncertainty_depth.errors import ConfigError
from uncertainty_depth.ros.batches import check_budget


def test_a_budget_is_refused_where_fewer_passes_are_another_sigma():
    with pytest.raises(ConfigError, match="frame_budget_ms is 50, but the sigma of tta"):
        check_budget("tta", 50.0)
    check_budget("tta", 0.0)
    check_budget("mc_dropout", 50.0)
