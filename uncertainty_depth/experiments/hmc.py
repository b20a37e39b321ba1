"""The true posterior of a small network, by the No-U-Turn sampler of numpyro."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.errors import UncertaintyDepthError
from uncertainty_depth.experiments.runner import write_atomically

Layers = list[tuple[Any, Any]]


def posterior_predictions(
    cache: Path,
    sizes: Sequence[int],
    networks: int,
    log_likelihood: Callable[[Any], Any],
    inputs: NDArray,
    at: NDArray,
    *,
    samples: int,
    warmup: int,
    depth: int,
) -> NDArray[np.float32]:
    """Outputs of posterior samples, read from `cache` where an earlier run left them.

    Args:
        cache: an .npz file; its name must tell apart everything the samples depend on.
        sizes: units per layer of each fully connected ReLU network.
        networks: how many such networks make the model; their outputs are joined along the last axis.
        log_likelihood: outputs (N, networks * sizes[-1]) to the log likelihood of the N examples, in jax.numpy.
        inputs: (N, sizes[0]) training inputs.
        at: (P, sizes[0]) where to predict.
        samples: kept after the warm-up.
        warmup: steps of adaptation.
        depth: greatest depth of the sampler's tree: up to 2^depth gradients for one sample.

    Returns:
        (samples, P, networks * sizes[-1]).

    Raises:
        UncertaintyDepthError: numpyro is not installed.
    """
    if not cache.exists():
        drawn = _sample(sizes, networks, log_likelihood, inputs, at, (samples, warmup, depth))
        write_atomically(cache, lambda temporary: _save(temporary, drawn))
    with np.load(cache) as stored:
        return stored["predictions"]


def _save(path: Path, predictions: NDArray) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, predictions=predictions)


def _sample(sizes: Sequence[int], networks: int, log_likelihood: Callable, inputs: NDArray, at: NDArray, budget: tuple[int, int, int]) -> NDArray:
    try:
        import jax
        from numpyro.infer import MCMC, NUTS
    except ImportError as error:
        raise UncertaintyDepthError("the HMC reference needs numpyro, which is not installed; expected `pip install numpyro`") from error

    def potential(parameters: list[Layers]) -> Any:
        prior = sum((leaf**2).sum() / 2 for leaf in jax.tree_util.tree_leaves(parameters))
        return prior - log_likelihood(_outputs(parameters, inputs))

    keys = jax.random.split(jax.random.PRNGKey(0), networks + 1)
    start = [_start(jax.random, key, sizes) for key in keys[1:]]
    samples, warmup, depth = budget
    chain = MCMC(NUTS(potential_fn=potential, max_tree_depth=depth), num_warmup=warmup, num_samples=samples, progress_bar=True)
    chain.run(keys[0], init_params=start)
    predict = jax.jit(jax.vmap(lambda parameters: _outputs(parameters, at)))
    return np.asarray(predict(chain.get_samples()), dtype=np.float32)


def _start(random: Any, key: Any, sizes: Sequence[int]) -> Layers:
    """Start values: half the prior's scale, as larger weights leave the sampler long in the tails."""
    keys = random.split(key, len(sizes) - 1)
    shapes = zip(keys, pairwise(sizes), strict=True)
    return [(random.normal(part, shape) / 2, random.normal(part, shape[1:]) / 2) for part, shape in shapes]


def _outputs(parameters: list[Layers], inputs: Any) -> Any:
    import jax.numpy as jnp

    return jnp.concatenate([_network(layers, inputs) for layers in parameters], axis=-1)


def _network(layers: Layers, inputs: Any) -> Any:
    import jax.numpy as jnp

    hidden = inputs
    for weight, bias in layers[:-1]:
        hidden = jnp.maximum(hidden @ weight + bias, 0)
    return hidden @ layers[-1][0] + layers[-1][1]
