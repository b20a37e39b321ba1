# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Regression problems with known functions that are linear in coefficients.

Schmähling et al. 2021, section 3 and its details on the implementation: E.1 four sinusoids around
a main frequency, E.2 the Styblinski-Tang polynomial in several dimensions, E.3 a quadratic in two.
Inputs are drawn once for a problem; from one repetition to the next only the noise is another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

Array = NDArray[np.float64]
TRAINING_LIMIT = 4.0
"""Half the width of the training box of every problem."""
GRID = 1000
WITHOUT_2_PI = "E.1 without 2 pi,"
"""Family of the sinusoids of f x instead of 2 pi f x."""
MAP_GRID = 41


@dataclass(frozen=True, eq=False)
class RegressionProblem:
    """y = G(x) . gamma + N(0, noise^2), x uniform in the box [-4, 4]^dimension.

    Attributes:
        name: family and complexity, e.g. "E.1 f_main=3".
        level: c, the main frequency or the dimension; epochs are proportional to it.
        dimension: of x.
        basis: (N, dimension) to (N, p), the nonlinear functions G.
        coefficients: gamma, (p,).
        noise: standard deviation of y around the function; known to all methods.
        points: training points.
        at: (P, dimension) test inputs.
        inputs: indices of the test inputs that the paper reports on, by its name for them.
        share: a run divides its repetitions and members by this; for costly problems.
    """

    name: str
    level: int
    dimension: int
    basis: Callable[[Array], Array]
    coefficients: Array
    noise: float
    points: int
    at: Array
    inputs: dict[str, int]
    share: int = 1

    def function(self, x: Array) -> Array:
        """Return the values of the true function, (N,)."""
        return self.basis(x) @ self.coefficients

    def training_inputs(self) -> Array:
        """Return the inputs of all training sets, (points, dimension)."""
        rng = np.random.default_rng([self.points, self.dimension, self.level])
        return rng.uniform(-TRAINING_LIMIT, TRAINING_LIMIT, (self.points, self.dimension))

    def targets(self, repetitions: int) -> Array:
        """Return the targets of each repetition, (repetitions, points); each has its own seed."""
        function = self.function(self.training_inputs())
        seeds = range(repetitions)
        noise = [
            np.random.default_rng([seed, self.level]).normal(size=self.points) for seed in seeds
        ]
        return function + self.noise * np.stack(noise)

    def is_inside(self) -> NDArray[np.bool_]:
        """Return which test inputs are in distribution, (P,)."""
        return np.asarray(np.abs(self.at).max(1) <= TRAINING_LIMIT)


def sinusoids(main: int, with_2_pi: bool = True) -> RegressionProblem:
    """Return E.1, eq. 9: frequencies and phases equally spaced, coefficients uniform in [0, 1].

    Args:
        main: frequency in the middle of the four.
        with_2_pi: sin(2 pi f x + phase), as in the text. With it 50 points lie on eight periods
            and more, and nothing that does not know the basis can learn the function; without it
            they lie on one and a quarter.
    """
    frequencies = main * np.linspace(0.9, 1.1, 4)
    phases = np.linspace(0, 2 * np.pi, 4)
    factor = 2 * np.pi if with_2_pi else 1.0

    def basis(x: Array) -> Array:
        return np.sin(factor * x * frequencies + phases)

    coefficients = np.random.default_rng(1).uniform(0, 1, 4)
    at: Array = np.linspace(-6, 6, GRID, dtype=np.float64)[:, None]
    inputs = {f"x = {x}": int(np.abs(at[:, 0] - x).argmin()) for x in (-2.38, 1.2, -5.11)}
    family = "E.1" if with_2_pi else WITHOUT_2_PI
    return RegressionProblem(
        f"{family} f_main={main}", main, 1, basis, coefficients, 0.75, 50, at, inputs
    )


def styblinski_tang(dimension: int) -> RegressionProblem:
    """Return E.2, eq. 10, the sum of (x^4 - 16 x^2 + 5 x) / 2; tested on the diagonal."""

    def basis(x: Array) -> Array:
        return np.stack([x, x**2, x**4], axis=2).reshape(len(x), -1)

    coefficients = np.tile([2.5, -8.0, 0.5], dimension)
    diagonal = np.linspace(-5, 5, GRID)
    at: Array = np.repeat(diagonal[:, None], dimension, axis=1)
    inputs = {"lambda = 0.5996": 599, "lambda = 0.074": 74}
    return RegressionProblem(
        f"E.2 d={dimension}",
        dimension,
        dimension,
        basis,
        coefficients,
        3.0,
        100 * 9 ** (dimension - 1),
        at,
        inputs,
        share={1: 1, 2: 2, 3: 10}[dimension],
    )


def quadratic() -> RegressionProblem:
    """Return E.3, eq. 11: all six terms up to the second order in two dimensions."""

    def basis(x: Array) -> Array:
        first, second = x.T
        ones = np.ones(len(x))
        return np.column_stack([ones, first, second, first * second, first**2, second**2])

    axis = np.linspace(-5, 5, MAP_GRID)
    at = np.stack(np.meshgrid(axis, axis), axis=2).reshape(-1, 2)
    coefficients = np.random.default_rng(3).uniform(0, 1, 6)
    return RegressionProblem("E.3", 2, 2, basis, coefficients, 0.5, 450, at, {}, share=2)


PROBLEMS = [
    styblinski_tang(1),
    sinusoids(1),
    sinusoids(1, with_2_pi=False),
    styblinski_tang(2),
    sinusoids(3),
    sinusoids(3, with_2_pi=False),
    quadratic(),
    sinusoids(2),
    sinusoids(5),
    sinusoids(5, with_2_pi=False),
    styblinski_tang(3),
]
"""A run computes them in this order: cheap and telling ones first."""
QUICK_PROBLEMS = [PROBLEMS[index] for index in (0, 1, 2, 6)]


def bayesian_linear_regression(
    design: Array, y: Array, at: Array, noise: float
) -> tuple[Array, Array]:
    """Return mean and standard deviation of the function, eq. 5 and 6: the anchor.

    With known noise and the prior pi(gamma) = 1 the posterior of G(x) . gamma is normal around the
    least-squares fit.

    Args:
        design: (N, p) basis functions at the training points, N >= p.
        y: (R, N) targets of each repetition.
        at: (P, p) basis functions where to predict.
        noise: standard deviation of the targets.

    Returns:
        Mean (R, P), and standard deviation (P,), which does not depend on the targets.
    """
    q, r = np.linalg.qr(design)
    coefficients = solve_triangular(r, q.T @ y.T)
    leverage = np.square(solve_triangular(r, at.T, trans="T")).sum(0)
    return (at @ coefficients).T, noise * np.sqrt(leverage)
