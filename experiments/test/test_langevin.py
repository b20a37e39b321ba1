# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
import pytest
import torch

from experiments.langevin import FRICTIONS, SGHMC

STEP_SIZES = {"sgld": 0.02, "sghmc": 0.005}


def sample(kind, speed=1, data_size=1, weight_decay=0.0, loss_scale=0.5, steps=600, keep=150):
    """Many chains side by side, from far away; the kept states of all."""
    chains = torch.nn.Parameter(torch.full((4000,), 3.0))
    optimizer = SGHMC(
        [chains],
        lr=speed * STEP_SIZES[kind],
        data_size=data_size,
        weight_decay=weight_decay,
        friction=FRICTIONS[kind],
    )
    kept = []
    for step in range(steps):
        optimizer.zero_grad()
        (loss_scale * chains.square()).sum().backward()
        optimizer.step()
        if step >= steps - keep:
            kept.append(chains.detach().clone())
    return torch.stack(kept)


@pytest.mark.parametrize("kind", STEP_SIZES)
@pytest.mark.parametrize(
    ("options", "variance"),
    [
        ({}, 1.0),
        ({"data_size": 100}, 0.01),  # the loss is a mean over so many examples
        ({"speed": 10, "data_size": 10, "weight_decay": 0.1, "loss_scale": 0.0}, 1.0),
    ],
    ids=["a standard normal", "narrower of more examples", "the prior alone"],
)
def test_samples_have_the_law_of_the_posterior(kind, options, variance):
    samples = sample(kind, **options)
    deviation = variance**0.5
    assert samples.mean().item() == pytest.approx(0.0, abs=0.05 * deviation)
    assert samples.var().item() == pytest.approx(variance, rel=0.05)
    assert ((samples**4).mean() / samples.var() ** 2).item() == pytest.approx(3.0, rel=0.05)


@pytest.mark.parametrize("kind", FRICTIONS)
def test_parameters_without_a_gradient_stay(kind):
    used = torch.nn.Parameter(torch.ones(3))
    unused = torch.nn.Parameter(torch.ones(3))
    optimizer = SGHMC([used, unused], lr=0.1, data_size=1, friction=FRICTIONS[kind])
    used.sum().backward()
    optimizer.step()
    assert unused.tolist() == [1, 1, 1]
    assert used.tolist() != [1, 1, 1]


def test_sgld_is_the_published_step():
    """Welling and Teh's update, written out with the noise of the same seed; its step shrinks."""
    parameter = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer = SGHMC([parameter], lr=0.1, data_size=4, weight_decay=0.25, friction=1.0)
    for lr in (0.1, 0.05):
        optimizer.param_groups[0]["lr"] = lr  # as a scheduler does
        before = parameter.detach().clone()
        parameter.grad = torch.tensor([0.5, 3.0])
        torch.manual_seed(1)
        optimizer.step()
        torch.manual_seed(1)
        expected = (
            before
            - lr * (torch.tensor([0.5, 3.0]) + before / 4)
            + (2 * lr / 4) ** 0.5 * torch.randn(2)
        )
        torch.testing.assert_close(parameter.detach(), expected)


def test_each_chain_may_have_friction_and_step_of_its_own():
    """A stack of both kinds moves as each kind alone."""
    noise = torch.Generator().manual_seed(0)
    start = torch.randn(2, 3, 1, generator=noise)
    gradients = torch.randn(5, 2, 3, 1, generator=noise)
    friction = torch.tensor([1.0, 0.1])[:, None, None]
    scale = torch.tensor([0.5, 0.02])[:, None, None]

    def run(chosen, friction, lr, scale=1.0):
        parameter = torch.nn.Parameter(start.clone())
        optimizer = SGHMC(
            [parameter], lr=lr, data_size=7, weight_decay=0.1, friction=friction, scale=scale
        )
        torch.manual_seed(3)
        for gradient in gradients:
            parameter.grad = gradient.clone()
            optimizer.step()
        return parameter.detach()[chosen]

    for chosen in range(2):
        alone = run(chosen, friction[chosen].item(), scale[chosen].item())
        torch.testing.assert_close(run(chosen, friction, 1.0, scale), alone)
