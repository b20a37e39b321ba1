# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
import torch

from experiments.anchor_methods import adversarial_examples, with_adversarial_examples
from experiments.stacked import StackedMLP


def squared_error(network, inputs, targets):
    return (network(inputs) - targets).square().mean((1, 2))


def examples(members=1):
    """A stack of networks, and inputs and targets of each."""
    return (
        StackedMLP(members, (2, 16, 1)),
        torch.randn(members, 32, 2),
        torch.randn(members, 32, 1),
    )


def test_each_coordinate_moves_by_its_step_up_its_own_members_loss():
    """Goodfellow's fast gradient sign method, with the gradient of one member at a time."""
    network, x, y = examples(3)
    step = torch.tensor([0.1, 0.2])
    moved = adversarial_examples(network, squared_error, x, y, step)
    for member in range(3):
        inputs = x.clone().requires_grad_()
        squared_error(network, inputs, y)[member].backward()
        expected = x + step * inputs.grad.sign()
        torch.testing.assert_close(moved[member], expected[member].detach())


def test_the_networks_gradients_stay_untouched():
    network, x, y = examples()
    adversarial_examples(network, squared_error, x, y, 0.1)
    assert all(parameter.grad is None for parameter in network.parameters())
    assert not x.requires_grad


def test_the_joint_objective_is_the_mean_of_both():
    network, x, y = examples(2)
    moved = adversarial_examples(network, squared_error, x, y, 0.1)
    expected = (squared_error(network, x, y) + squared_error(network, moved, y)) / 2
    torch.testing.assert_close(
        with_adversarial_examples(squared_error, 0.1)(network, x, y), expected
    )
