# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.anchor_methods import adversarial_examples, with_adversarial_examples
from experiments.stacked import StackedMLP


def squared_error(network, inputs, targets):
    return (network(inputs) - targets).square().mean((1, 2))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_adversarial_examples_raise_the_loss_of_every_member(seed):
    torch.manual_seed(seed)
    network = StackedMLP(3, (2, 16, 1))
    x = torch.randn(3, 32, 2)
    y = torch.randn(3, 32, 1)
    moved = adversarial_examples(network, squared_error, x, y, 1e-3)
    assert (squared_error(network, moved, y) > squared_error(network, x, y)).all()


def test_random_moves_of_the_same_size_raise_it_less():
    network = StackedMLP(1, (2, 16, 1))
    x = torch.randn(1, 64, 2)
    y = torch.randn(1, 64, 1)
    worst = squared_error(network, adversarial_examples(network, squared_error, x, y, 0.05), y)
    random = [squared_error(network, x + 0.05 * torch.randn_like(x).sign(), y) for _ in range(50)]
    assert worst > max(random)


def test_each_coordinate_moves_by_its_step():
    network = StackedMLP(1, (2, 16, 1))
    x = torch.randn(1, 8, 2)
    y = torch.randn(1, 8, 1)
    moved = adversarial_examples(network, squared_error, x, y, torch.tensor([0.1, 0.2]))
    torch.testing.assert_close((moved - x).abs(), torch.tensor([0.1, 0.2]).expand(1, 8, 2))


def test_the_networks_gradients_stay_untouched():
    network = StackedMLP(1, (2, 4, 1))
    x = torch.randn(1, 8, 2)
    y = torch.randn(1, 8, 1)
    adversarial_examples(network, squared_error, x, y, 0.1)
    assert all(parameter.grad is None for parameter in network.parameters())
    assert not x.requires_grad


def test_the_joint_objective_is_the_mean_of_both():
    network = StackedMLP(2, (2, 4, 1))
    x = torch.randn(2, 8, 2)
    y = torch.randn(2, 8, 1)
    moved = adversarial_examples(network, squared_error, x, y, 0.1)
    expected = (squared_error(network, x, y) + squared_error(network, moved, y)) / 2
    torch.testing.assert_close(
        with_adversarial_examples(squared_error, 0.1)(network, x, y), expected
    )
