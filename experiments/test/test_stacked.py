# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
import pytest
import torch
from torch import nn

from experiments.stacked import PairedMLP, StackedMLP, bootstrap_indices, train


def squared_error(network, inputs, targets):
    return (network(inputs) - targets).square().mean((1, 2))


def alone(stack: StackedMLP, member: int) -> nn.Sequential:
    """The same network made of torch.nn.Linear."""
    layers = []
    for weight, bias in zip(stack.weights, stack.biases, strict=True):
        linear = nn.Linear(weight.shape[2], weight.shape[1])
        linear.weight.data, linear.bias.data = (
            weight[member].detach().clone(),
            bias[member, :, 0].detach().clone(),
        )
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def data(size=40):
    x = torch.linspace(-1, 1, size)[:, None]
    return x, torch.sin(3 * x)


def run(network, optimizer, x, y, **options):
    defaults = {"epochs": 3, "batch_size": len(x), "generator": torch.Generator().manual_seed(0)}
    return list(train(network, squared_error, x, y, optimizer, **(defaults | options)))


def test_members_equal_plain_networks():
    stack = StackedMLP(3, (2, 7, 5, 1))
    x = torch.randn(11, 2)
    for member in range(3):
        torch.testing.assert_close(stack(x)[member], alone(stack, member)(x))


def test_training_a_stack_equals_training_each_member_alone():
    stack, (x, y) = StackedMLP(3, (1, 8, 1)), data()
    singles = [alone(stack, member) for member in range(3)]
    assert run(stack, torch.optim.Adam(stack.parameters(), lr=0.01), x, y) == [1, 2, 3]
    for member, single in enumerate(singles):
        optimizer = torch.optim.Adam(single.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            (single(x) - y).square().mean().backward()
            optimizer.step()
        torch.testing.assert_close(stack(x)[member], single(x), atol=1e-5, rtol=1e-4)


def test_training_sees_only_the_examples_it_is_given():
    """A member whose indices leave out the outlier never learns of it."""
    x = torch.zeros(4, 1)
    y = torch.tensor([1.0, 1.0, 1.0, 100.0])[:, None]
    stack = StackedMLP(2, (1, 4, 1))
    indices = torch.tensor([[0, 1, 2, 2], [3, 3, 3, 3]])
    run(
        stack,
        torch.optim.Adam(stack.parameters(), lr=0.05),
        x,
        y,
        epochs=300,
        batch_size=2,
        indices=indices,
    )
    assert stack(x)[0, 0].item() == pytest.approx(1.0, abs=0.1)
    assert stack(x)[1, 0].item() > 10


def test_bootstrap_samples_differ_and_repeat_examples():
    indices = bootstrap_indices(50, 6, torch.Generator().manual_seed(1))
    assert indices.shape == (6, 50)
    assert indices.min() >= 0
    assert indices.max() < 50
    assert len({tuple(sorted(row.tolist())) for row in indices}) == 6
    unique = [len(set(row.tolist())) for row in indices]
    assert max(unique) < 50
    assert sum(unique) / 300 == pytest.approx(1 - (1 - 1 / 50) ** 50, abs=0.06)


@pytest.mark.parametrize("shape", [(9, 1), (3, 9, 1)])
def test_a_pair_joins_mean_and_log_variance_networks(shape):
    pair = PairedMLP(3, (1, 4, 1))
    x = torch.randn(shape)
    outputs = pair(x)
    assert outputs.shape == (3, 9, 2)
    for member in range(3):
        own = x if x.dim() == 2 else x[member]
        torch.testing.assert_close(outputs[member, :, :1], alone(pair, member)(own))
        torch.testing.assert_close(outputs[member, :, 1:], alone(pair, member + 3)(own))


def test_dropout_masks_of_members_differ():
    stack = StackedMLP(2, (1, 64, 1), noise=[nn.Dropout(0.5)])
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter[1] = parameter[0]
    x = torch.ones(1, 1)
    assert stack.train()(x)[0].item() != stack(x)[1].item()
    assert stack.eval()(x)[0].item() == stack(x)[1].item()
