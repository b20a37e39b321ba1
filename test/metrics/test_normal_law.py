"""The table of the normal distribution against SciPy's function."""

import numpy as np
from scipy.special import erf

from uncertainty_depth.metrics.distributions import NORMAL_LIMIT, NORMAL_STEPS, folded_normal


def test_it_is_scipys_within_rounding_of_the_series():
    between_nodes = (np.arange(NORMAL_STEPS * 9) + 0.5) / NORMAL_STEPS
    values = np.concatenate(([0.0, 5e-324, 1e-9, NORMAL_LIMIT], between_nodes))
    density, probability = folded_normal(values.copy())
    np.testing.assert_allclose(probability, erf(values / np.sqrt(2)), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(density, np.sqrt(2 / np.pi) * np.exp(-(values**2) / 2), rtol=1e-12)


def test_beyond_the_table_the_probability_is_one():
    _, probability = folded_normal(np.array([NORMAL_LIMIT, 40.0, 1e300, np.inf]))
    np.testing.assert_array_equal(probability, 1.0)
