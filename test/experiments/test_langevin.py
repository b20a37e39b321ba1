import pytest
import torch

from uncertainty_depth.experiments.langevin import SGHMC, SGLD


def sample(kind, lr, data_size=1, weight_decay=0.0, steps=600, keep=150, loss_scale=0.5):
    """Many chains side by side, from far away; the kept states of all."""
    chains = torch.nn.Parameter(torch.full((4000,), 3.0))
    optimizer = kind([chains], lr=lr, data_size=data_size, weight_decay=weight_decay)
    kept = []
    for step in range(steps):
        optimizer.zero_grad()
        (loss_scale * chains.square()).sum().backward()
        optimizer.step()
        if step >= steps - keep:
            kept.append(chains.detach().clone())
    return torch.stack(kept)


@pytest.mark.parametrize(("kind", "lr"), [(SGLD, 0.02), (SGHMC, 0.005)])
def test_samples_a_standard_normal(kind, lr):
    samples = sample(kind, lr)
    assert samples.mean().item() == pytest.approx(0.0, abs=0.05)
    assert samples.var().item() == pytest.approx(1.0, rel=0.05)
    assert ((samples**4).mean() / samples.var() ** 2).item() == pytest.approx(3.0, rel=0.05)


@pytest.mark.parametrize(("kind", "lr"), [(SGLD, 0.02), (SGHMC, 0.005)])
def test_the_posterior_narrows_with_the_number_of_examples(kind, lr):
    """The loss is a mean over N examples, so the posterior's variance is 1 / N of that of one."""
    assert sample(kind, lr, data_size=100).var().item() == pytest.approx(0.01, rel=0.05)


@pytest.mark.parametrize(("kind", "lr"), [(SGLD, 0.02), (SGHMC, 0.005)])
def test_weight_decay_is_a_normal_prior(kind, lr):
    """With no likelihood at all, a decay of 1 / N samples the prior N(0, 1)."""
    samples = sample(kind, lr * 10, data_size=10, weight_decay=0.1, loss_scale=0.0)
    assert samples.var().item() == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize("kind", [SGLD, SGHMC])
def test_parameters_without_a_gradient_stay(kind):
    used, unused = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3))
    optimizer = kind([used, unused], lr=0.1, data_size=1)
    used.sum().backward()
    optimizer.step()
    assert unused.tolist() == [1, 1, 1]
    assert used.tolist() != [1, 1, 1]


@pytest.mark.parametrize("kind", [SGLD, SGHMC])
def test_a_scheduler_lowers_the_noise_with_the_step(kind):
    parameter = torch.nn.Parameter(torch.zeros(20000))
    optimizer = kind([parameter], lr=0.5, data_size=1)
    scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=2, power=1.0)
    parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.25)
    with torch.no_grad():
        parameter.zero_()
    optimizer.state.clear()
    optimizer.step()
    expected = 2 * 0.25 * optimizer.param_groups[0].get("friction", 1.0)
    assert parameter.var().item() == pytest.approx(expected, rel=0.05)
