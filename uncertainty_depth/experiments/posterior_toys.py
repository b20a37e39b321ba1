"""What both toy problems of Gustafsson et al. 2020 (section 4.1, appendix B) share: the methods, their schedules and the comparison.

Schedules as in the paper and its public code: Adam at 0.001 and batches of 32; ensembling 150 epochs without a prior; MC-dropout 300 epochs
with the prior N(0, I), dropout after the first hidden layer; SGLD and SGHMC (friction 0.1) 150 L epochs (L = 64 and 256) from a step size
that falls to zero as a polynomial of power 0.9, M samples evenly spaced over the last quarter of the epochs.
What differs: ensemble members and chains are trained stacked, each repetition has an ensemble of its own (the paper deals 1,024 members
into groups), and the prior's gradient weighs the same against the likelihood in every method (the public code doubles it for MC-dropout
in the regression problem only together with the likelihood, which Adam does not see).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from uncertainty_depth.experiments import figures, tables
from uncertainty_depth.experiments.hmc import posterior_predictions
from uncertainty_depth.experiments.langevin import SGHMC, SGLD
from uncertainty_depth.experiments.runner import resume, write_json
from uncertainty_depth.experiments.stacked import Objective, StackedMLP, train


@dataclass(frozen=True)
class Schedule:
    """How long everything runs."""

    counts: tuple[int, ...] = (8, 16, 32, 64, 128, 256)
    ensemble_epochs: int = 150
    dropout_epochs: int = 300
    chain_lengths: tuple[int, ...] = (64, 256)
    chain_unit: int = 150
    hmc_samples: int = 1000
    hmc_warmup: int = 1000
    hmc_depth: int = 10


QUICK = Schedule((8, 16, 32, 64), 60, 120, (1,), 150, 100, 150, 8)


@dataclass(frozen=True)
class Problem:
    """One toy problem.

    Attributes:
        inputs: (N, in) training inputs.
        targets: (N, ...) training targets.
        at: (P, in) where predictions are compared.
        make: (members, noise modules or None) to a stack of networks.
        loss: (outputs (M, B, out), targets (M, B, ...)) to the mean negative log likelihood (M,).
        dropout: the rate of MC-dropout.
        step_sizes: where SGLD and SGHMC start.
        distance: (K, P, out) sampled outputs to named distances from the HMC reference; the first is the paper's.
    """

    inputs: Tensor
    targets: Tensor
    at: Tensor
    make: Callable[[int, Sequence[nn.Module] | None], StackedMLP]
    loss: Callable[[Tensor, Tensor], Tensor]
    dropout: float
    step_sizes: tuple[float, float]
    distance: Callable[[NDArray], dict[str, float]]


def reference(
    output: Path, schedule: Schedule, sizes: Sequence[int], networks: int, log_likelihood: Callable, inputs: NDArray, at: NDArray
) -> NDArray:
    """(samples, P, out) outputs of the HMC samples, cached in the output folder."""
    budget = {"samples": schedule.hmc_samples, "warmup": schedule.hmc_warmup, "depth": schedule.hmc_depth}
    cache = output / f"hmc_{'_'.join(map(str, budget.values()))}.npz"
    return posterior_predictions(cache, sizes, networks, log_likelihood, inputs, at, **budget)


def objective(problem: Problem) -> Objective:
    """The mean negative log likelihood of each member; the prior N(0, I) enters as weight decay 1 / N."""
    return lambda network, inputs, targets: problem.loss(network(inputs), targets)


@torch.no_grad()
def outputs(network: StackedMLP, at: Tensor) -> NDArray[np.float32]:
    """(M, P, out) outputs in the network's present mode, a few members' grid at a time."""
    return network(at).numpy()


def ensemble(problem: Problem, schedule: Schedule, seed: int) -> NDArray[np.float32]:
    """(greatest M, P, out): independently started members, maximum likelihood."""
    network = problem.make(max(schedule.counts), None)
    _train_adam(problem, network, 0.0, schedule.ensemble_epochs, seed)
    return outputs(network.eval(), problem.at)


def mc_dropout(problem: Problem, schedule: Schedule, seed: int) -> NDArray[np.float32]:
    """(greatest M, P, out): passes through one network with its dropout on."""
    network = problem.make(1, [nn.Dropout(problem.dropout), nn.Identity()])
    _train_adam(problem, network, (1 - problem.dropout) / len(problem.inputs), schedule.dropout_epochs, seed)
    return outputs(network.train(), problem.at.repeat(max(schedule.counts), 1)).reshape(max(schedule.counts), len(problem.at), -1)


def _train_adam(problem: Problem, network: StackedMLP, weight_decay: float, epochs: int, seed: int) -> None:
    optimizer = torch.optim.Adam(network.parameters(), lr=0.001, weight_decay=weight_decay, fused=True)
    options = {"epochs": epochs, "batch_size": 32, "generator": torch.Generator().manual_seed(seed), "label": "epochs"}
    for _ in train(network, objective(problem), problem.inputs, problem.targets, optimizer, **options):
        pass


def chain(problem: Problem, schedule: Schedule, kind: type, length: int, chains: int) -> dict[int, NDArray[np.float32]]:
    """M to (chains, M, P, out): samples of independent chains that run stacked."""
    epochs = length * schedule.chain_unit
    wanted = {count: sample_epochs(epochs, count) for count in schedule.counts}
    network = problem.make(chains, None)
    size = len(problem.inputs)
    optimizer = kind(network.parameters(), lr=problem.step_sizes[kind is SGHMC], data_size=size, weight_decay=1 / size)
    scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=epochs * -(-size // 32) + 1, power=0.9)
    options = {"epochs": epochs, "batch_size": 32, "generator": torch.Generator().manual_seed(length), "label": f"{kind.__name__}-{length}"}
    keep = set().union(*wanted.values())
    kept = {
        epoch: outputs(network.eval(), problem.at)
        for epoch in train(network, objective(problem), problem.inputs, problem.targets, optimizer, scheduler=scheduler, **options)
        if epoch in keep
    }
    return {count: np.stack([kept[epoch] for epoch in chosen], axis=1) for count, chosen in wanted.items() if len(set(chosen)) == count}


def sample_epochs(epochs: int, count: int) -> list[int]:
    """`count` epochs spaced evenly from three quarters of the way to the end."""
    return [round(epoch) for epoch in np.linspace(0.75 * epochs, epochs, count)]


def pieces(schedule: Schedule, seeds: int) -> list[str]:
    """`method_seed` for each repetition of ensembling and MC-dropout, `method_chains` for each kind of chain: all of a kind run stacked."""
    repeated = [f"{method}_{seed:03d}" for method in ("ensemble", "mc_dropout") for seed in range(seeds)]
    return repeated + [f"{kind}-{length}_{seeds:03d}" for length in schedule.chain_lengths for kind in ("sgld", "sghmc")]


def compute(name: str, problem: Problem, schedule: Schedule) -> dict[str, Any]:
    """The distances of one piece: method, and per M a list with one entry per repetition."""
    method, _, number = name.rpartition("_")
    torch.manual_seed(int(number))
    if method in ("ensemble", "mc_dropout"):
        drawn = {"ensemble": ensemble, "mc_dropout": mc_dropout}[method](problem, schedule, int(number))
        return {"method": method, "distances": {count: [problem.distance(drawn[:count])] for count in schedule.counts}}
    kind, length = method.split("-")
    sampled = chain(problem, schedule, {"sgld": SGLD, "sghmc": SGHMC}[kind], int(length), int(number))
    return {"method": method, "distances": {count: [problem.distance(part) for part in chains] for count, chains in sampled.items()}}


def compare(output: Path, problem: Problem, schedule: Schedule, seeds: int, label: str) -> dict[str, dict[int, dict[str, list[float]]]]:
    """Run or resume every piece; method to M to distance to one value per repetition."""
    settings = {key: value for key, value in asdict(schedule).items() if key != "chain_lengths"}  # the names tell these apart
    results = resume(output / "results", pieces(schedule, seeds), settings, lambda name: compute(name, problem, schedule), label)
    table: dict[str, dict[int, dict[str, list[float]]]] = {}
    for result in results:
        for count, repetitions in result["distances"].items():
            cell = table.setdefault(result["method"], {}).setdefault(int(count), {})
            for distances in repetitions:
                for name, value in distances.items():
                    cell.setdefault(name, []).append(np.nan if value is None else value)
    return table


def floor(make_problem: Callable[[NDArray], Problem], samples: NDArray) -> dict[str, float]:
    """Distances of the second half of the HMC samples from the first: what lies below says nothing, and what is large says that HMC did not mix."""
    half = len(samples) // 2
    return make_problem(samples[:half]).distance(samples[half:])


def report(output: Path, found: dict, schedule: Schedule, seeds: int, quick: bool, reference_floor: dict[str, float]) -> None:
    """table.md, table.csv, summary.json and kl.png: every distance against M, mean and standard deviation over the repetitions."""
    names = list(next(iter(next(iter(found.values())).values())))
    header = ["distance", "method", *(f"M = {count}" for count in schedule.counts)]
    rows = [
        [name, method, *(tables.mean_and_deviation(cells[count][name]) if count in cells else "" for count in schedule.counts)]
        for name in names
        for method, cells in found.items()
    ]
    intro = f"{seeds} repetitions, {schedule.hmc_samples} HMC samples; mean ± standard deviation. Quick run: {'yes' if quick else 'no'}."
    halves = ", ".join(f"{name} {value:.3f}" for name, value in reference_floor.items())
    text = f"{intro} The two halves of the HMC samples, from each other: {halves}.\n\n{tables.markdown(header, rows)}"
    (output / "table.md").write_text(text)
    tables.write_table(output / "table.csv", header, rows)
    write_json(output / "summary.json", {"settings": asdict(schedule), "seeds": seeds, "quick": quick, "floor": reference_floor, "distances": found})
    figures.save(distance_figure(found, names), output / "kl.png")


def distance_figure(found: dict, names: Sequence[str]) -> figures.Figure:
    """The paper's figure: distance to HMC against M, one panel per distance."""
    figure, axes = figures.panels(1, len(names), width=4.6, height=3.6)
    counts = sorted({count for cells in found.values() for count in cells})
    for axis, name in zip(axes.flat, names, strict=True):
        for (method, cells), color in zip(found.items(), figures.COLORS, strict=False):
            values = [np.array(cells[count][name]) for count in cells]
            mean, deviation = np.array([value.mean() for value in values]), np.array([value.std() for value in values])
            axis.errorbar(list(cells), mean, deviation, color=color, label=method, marker="o", markersize=3, capsize=2)
        axis.set(title=name, xlabel="number of samples M", ylabel="KL divergence from HMC", xscale="log", yscale="log")
        axis.set_xticks(counts, [str(count) for count in counts])
        axis.minorticks_off()
        axis.legend(fontsize=7)
    return figure
