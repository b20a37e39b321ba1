# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The true posterior of a small network, by the No-U-Turn sampler of numpyro."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core import atomic
from uncertainty_depth.core.errors import UncertaintyDepthError

Layers = list[tuple[Any, Any]]


@dataclass(frozen=True)
class Budget:
    """Length of a sampler's run.

    Attributes:
        chains: independent chains.
        samples: of each chain after its warm-up.
        warmup: steps of adaptation of each chain.
        depth: max depth of the sampler's tree: up to 2^depth gradients for one sample.
    """

    chains: int
    samples: int
    warmup: int
    depth: int


class Posterior(NamedTuple):
    """Posterior predictions, and diagnostics of the sampler."""

    predictions: NDArray[np.float32]
    """(chains, samples, P, outputs)"""
    energy: NDArray[np.float32]
    """(chains, samples): negative log posterior, up to a constant"""
    diverging: NDArray[np.bool_]
    """(chains, samples)"""
    steps: NDArray[np.int64]
    """(chains, samples): gradients that each sample took"""

    def pooled(self) -> NDArray[np.float32]:
        """Return the predictions of all chains, (chains * samples, P, outputs)."""
        return self.predictions.reshape(-1, *self.predictions.shape[2:])


def posterior_predictions(
    cache: Path,
    sizes: Sequence[int],
    networks: int,
    log_likelihood: Callable[[Any], Any],
    inputs: NDArray,
    at: NDArray,
    budget: Budget,
) -> Posterior:
    """Return outputs of posterior samples; chains of an earlier run are read from `cache`.

    Args:
        cache: folder of the chains, one for all that the samples depend on besides the budget.
        sizes: units per layer of each fully connected ReLU network.
        networks: number of such networks in the model; their outputs are joined along the last
            axis.
        log_likelihood: outputs (N, networks * sizes[-1]) to the log likelihood of the N examples,
            in jax.numpy.
        inputs: (N, sizes[0]) training inputs.
        at: (P, sizes[0]) where to predict.
        budget: length of the run.

    Raises:
        UncertaintyDepthError: numpyro is not installed.
    """
    chains = []
    for chain in range(budget.chains):
        path = cache / f"hmc_{budget.samples}_{budget.warmup}_{budget.depth}_{chain}.npz"
        if not path.exists():
            samples = _sample(sizes, networks, log_likelihood, inputs, at, budget, chain)
            with atomic.replacing(path) as temporary, temporary.open("wb") as file:
                np.savez_compressed(file, **samples)  # type: ignore[arg-type]  # names, not flags
        with np.load(path) as stored:
            chains.append([stored[name] for name in Posterior._fields])
    return Posterior(*(np.stack(part) for part in zip(*chains, strict=True)))


def split_r_hat(values: NDArray) -> NDArray[np.float64]:
    """Return the potential scale reduction of half chains: near 1 if the chains agree.

    Gelman et al. 2013, Bayesian Data Analysis, section 11.4.

    Args:
        values: (chains, samples, ...), at least 4 samples.

    Returns:
        (...); infinite if every half chain is constant at another value, and 1 if all are
            constant at the same.
    """
    half = values.shape[1] // 2
    halves = np.concatenate([values[:, :half], values[:, -half:]]).astype(np.float64)
    within = halves.var(1, ddof=1).mean(0)
    between = halves.mean(1).var(0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(np.where(between == 0, 1.0, (half - 1) / half + between / within))


def _sample(
    sizes: Sequence[int],
    networks: int,
    log_likelihood: Callable,
    inputs: NDArray,
    at: NDArray,
    budget: Budget,
    chain: int,
) -> dict[str, NDArray]:
    """Return one chain from its own start: the fields of `Posterior` without their first axis."""
    try:
        import jax
        from numpyro.infer import MCMC, NUTS
    except ImportError as error:
        raise UncertaintyDepthError(
            "the HMC reference needs numpyro, which is not installed; run: "
            f"{sys.executable} -m pip install numpyro"
        ) from error

    def potential(parameters: list[Layers]) -> Any:
        prior = sum((leaf**2).sum() / 2 for leaf in jax.tree_util.tree_leaves(parameters))
        return prior - log_likelihood(_outputs(parameters, inputs))

    keys = jax.random.split(jax.random.PRNGKey(chain), networks + 1)
    start = [_start(jax.random, key, sizes) for key in keys[1:]]
    sampler = MCMC(
        NUTS(potential_fn=potential, max_tree_depth=budget.depth),
        num_warmup=budget.warmup,
        num_samples=budget.samples,
    )
    sampler.run(
        keys[0], init_params=start, extra_fields=("potential_energy", "diverging", "num_steps")
    )
    predict = jax.jit(jax.vmap(lambda parameters: _outputs(parameters, at)))
    extra = sampler.get_extra_fields()
    return {
        "predictions": np.asarray(predict(sampler.get_samples())),
        "energy": np.asarray(extra["potential_energy"]),
        "diverging": np.asarray(extra["diverging"]),
        "steps": np.asarray(extra["num_steps"]),
    }


def _start(random: Any, key: Any, sizes: Sequence[int]) -> Layers:
    """Draw a start at half the prior's scale: from larger weights warm-up takes longer."""
    keys = random.split(key, len(sizes) - 1)
    shapes = zip(keys, pairwise(sizes), strict=True)
    return [
        (random.normal(part, shape) / 2, random.normal(part, shape[1:]) / 2)
        for part, shape in shapes
    ]


def _outputs(parameters: list[Layers], inputs: Any) -> Any:
    import jax.numpy as jnp

    return jnp.concatenate([_network(layers, inputs) for layers in parameters], axis=-1)


def _network(layers: Layers, inputs: Any) -> Any:
    import jax.numpy as jnp

    hidden = inputs
    for weight, bias in layers[:-1]:
        hidden = jnp.maximum(hidden @ weight + bias, 0)
    return hidden @ layers[-1][0] + layers[-1][1]
