# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What would make a GPU wait is counted, operation by operation, without one."""

from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.network.hourglass import Hourglass
from uncertainty_depth.training.objective import (
    Objective,
    gaussian_nll,
    laplace_nll,
    log_l1,
)

pytestmark = pytest.mark.usefixtures("one_thread")
NETWORK = NetworkConfig(backbone="tiny", decoder_width=16, input_size=(64, 64), head="laplace")
WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "equal", "unique")


class Waits(TorchDispatchMode):
    """Counts operations whose result's size or value the host has to know."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if name in WAITING or (name.startswith("index") and self._has_mask(args)):
            self.counts[name] += 1
        return function(*args, **(kwargs or {}))

    def _has_mask(self, args):
        indices = [index for each in args if isinstance(each, (list, tuple)) for index in each]
        return any(
            isinstance(index, torch.Tensor) and index.dtype == torch.bool for index in indices
        )


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return Hourglass(NETWORK)


@pytest.mark.parametrize("loss", [log_l1, laplace_nll, gaussian_nll])
def test_a_training_step_waits_for_nothing(loss, network):
    network.train()
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    depth_m = torch.rand(2, 1, 64, 64) + 1
    depth_m[depth_m > 1.5] = torch.nan
    images = torch.rand(2, 3, 64, 64)
    with Waits() as waits:
        value = Objective(loss)(network, images, depth_m)
        value.backward()
        optimizer.step()
    assert waits.counts == {}
    assert torch.isfinite(value)


def test_values_and_masks_are_counted():
    values = torch.rand(3)
    with Waits() as waits:
        values.sum().item()
        values[values > 0.5]
    assert waits.counts == {"_local_scalar_dense": 1, "index": 1}
