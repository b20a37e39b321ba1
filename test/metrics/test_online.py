"""The one-pass accumulator against the exact functions on everything it has seen."""

import numpy as np

from uncertainty_depth.metrics import OnlineMetrics


def test_one_frame_has_the_same_exact_and_accumulated_figures(pixels):
    metrics = OnlineMetrics()
    figures = metrics.update(*pixels)
    summary = metrics.compute()
    assert summary["pixels"] == figures["pixels"] == pixels[0].size
    assert summary["uncertainty"]["ause"] == figures["uncertainty"]["ause"]
    np.testing.assert_allclose(summary["uncertainty"]["n_merci"], figures["uncertainty"]["n_merci"], rtol=2e-3)
