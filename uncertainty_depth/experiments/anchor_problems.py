# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Regression problems with an exact answer: known functions that are linear in coefficients.

Schmähling et al. 2022 name the families: E.1 sinusoids of main frequency 1 to 5, E.2 the
Styblinski-Tang polynomial in 1 to 4 dimensions, E.3 a quadratic in two. The numbers in `PROBLEMS`
(neighbouring frequencies, coefficients, ranges, points, noise) are this project's choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RegressionProblem:
    """y = h(x) . coefficients + N(0, noise^2), x uniform in the box [-limit, limit]^dimension.

    Attributes:
        name: family and complexity, e.g. "E.1 f_main=3".
        level: grows with the difficulty inside the family.
        dimension: of x.
        basis: (N, dimension) to (N, p), the nonlinear functions h.
        coefficients: (p,).
        limit: half the width of the training box; out of distribution is a box a fifth wider,
            without the training box.
        noise: standard deviation of y around the function.
        points: training points.
    """

    name: str
    level: int
    dimension: int
    basis: Callable[[Array], Array]
    coefficients: Array
    limit: float
    noise: float
    points: int

    def function(self, x: Array) -> Array:
        """Return the values of the true function, (N,)."""
        return self.basis(x) @ self.coefficients

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw training inputs (points, dimension) and targets (points,)."""
        x = rng.uniform(-self.limit, self.limit, (self.points, self.dimension))
        return x, self.function(x) + rng.normal(0.0, self.noise, self.points)

    def test_points(self, rng: np.random.Generator, count: int) -> dict[str, Array]:
        """Draw `count` points inside the training box, and as many around it."""
        inside = rng.uniform(-self.limit, self.limit, (count, self.dimension))
        wide = rng.uniform(-1.2 * self.limit, 1.2 * self.limit, (20 * count, self.dimension))
        return {"in": inside, "out": wide[np.abs(wide).max(1) > self.limit][:count]}


def sinusoids(main: int) -> RegressionProblem:
    """Return E.1: sine and cosine at the main frequency and half a period beside it."""

    def basis(x: Array) -> Array:
        angle = 2 * np.pi * x * np.array([main - 0.5, main, main + 0.5])
        return np.concatenate([np.sin(angle), np.cos(angle)], axis=1)

    coefficients = np.array([0.3, 1.0, 0.3, 0.3, 0.0, 0.3])
    return RegressionProblem(f"E.1 f_main={main}", main, 1, basis, coefficients, 0.5, 0.2, 200)


def styblinski_tang(dimension: int) -> RegressionProblem:
    """Return E.2: powers 1 to 4 of each coordinate, sum of (x^4 - 16 x^2 + 5 x) / 2."""

    def basis(x: Array) -> Array:
        return np.concatenate([np.ones((len(x), 1)), x, x**2, x**3, x**4], axis=1)

    ones = np.ones(dimension)
    coefficients = np.concatenate([[0.0], 2.5 * ones, -8 * ones, 0 * ones, 0.5 * ones])
    return RegressionProblem(
        f"E.2 d={dimension}", dimension, dimension, basis, coefficients, 4.0, 5.0, 200 * dimension
    )


def quadratic() -> RegressionProblem:
    """Return E.3: all six terms up to the second order in two dimensions."""

    def basis(x: Array) -> Array:
        second = [x[:, i] * x[:, j] for i, j in combinations_with_replacement(range(2), 2)]
        return np.column_stack([np.ones(len(x)), x, *second])

    return RegressionProblem(
        "E.3", 2, 2, basis, np.array([1.0, 1.0, -1.0, 1.0, 0.5, -1.0]), 2.0, 0.5, 200
    )


PROBLEMS = [
    *(sinusoids(main) for main in range(1, 6)),
    *(styblinski_tang(dimension) for dimension in range(1, 5)),
    quadratic(),
]
QUICK_PROBLEMS = [PROBLEMS[index] for index in (0, 2, 5, 6, 9)]


def bayesian_linear_regression(design: Array, y: Array, at: Array) -> tuple[Array, Array]:
    """Return posterior mean and standard deviation of the function.

    Under the reference prior p(coefficients, sigma) = 1 / sigma, the posterior of
    h . coefficients is a scaled t distribution with N - p degrees of freedom around the
    least-squares fit.

    Args:
        design: (N, p) basis functions at the training points, N > p + 2.
        y: (N,) targets.
        at: (P, p) basis functions where to predict.

    Returns:
        Mean and standard deviation, (P,) each.

    Raises:
        ValueError: too few points for a finite standard deviation.
    """
    freedom = len(y) - design.shape[1]
    if freedom <= 2:
        raise ValueError(
            f"design has {design.shape[0]} rows for {design.shape[1]} columns; "
            f"expected at least {design.shape[1] + 3} rows"
        )
    q, r = np.linalg.qr(design)
    coefficients = solve_triangular(r, q.T @ y)
    variance = np.square(y - design @ coefficients).sum() / (freedom - 2)
    leverage = np.square(solve_triangular(r, at.T, trans="T")).sum(0)
    return at @ coefficients, np.sqrt(variance * leverage)
