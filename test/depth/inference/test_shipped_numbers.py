# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The shipped models predict what they predicted when they were shipped, in any process.

Whatever changes in networks, normalisation, noise of the dropout, estimators or resizing, and
should not, changes these numbers.
"""

import numpy as np
import pytest

from uncertainty_depth import Predictor

COLUMNS, ROWS = np.meshgrid(np.linspace(0, 1, 120), np.linspace(0, 1, 90))
IMAGE = np.stack(
    [200 * COLUMNS, 255 * np.cos(9 * ROWS) ** 2, 60 + 99 * (COLUMNS > ROWS)], axis=-1
).astype(np.uint8)
PIXELS = ([10, 45, 80, 45], [20, 60, 100, 110])
EXPECTED = {
    # model, method: depth and sigma of four pixels, metres, and the unfamiliarity
    ("demo", "mc_dropout"): (
        [1.04254, 1.06851, 1.01949, 1.01332], [0.388908, 0.418458, 0.315157, 0.322067], 2.28302
    ),
    ("demo", "deterministic"): (
        [0.998237, 1.0794, 1.00337, 0.995874], [0.386098, 0.405472, 0.295814, 0.331876], 2.28302
    ),
    ("indoor", "mirrored"): (
        [1.01343, 0.795694, 0.811985, 0.850598], [0.604022, 0.512707, 0.504918, 0.488177], 3.17873
    ),
}  # fmt: skip


@pytest.mark.parametrize(("model", "method"), EXPECTED)
def test_a_shipped_model_predicts_the_numbers_that_it_was_shipped_with(model, method):
    depth_m, sigma_m, unfamiliarity = EXPECTED[model, method]
    predictor = Predictor(model, method=method, samples=3, device="cpu", calibrated=False)
    made = predictor.predict(IMAGE, 1_700_000_000_123_456_789, camera=100)
    np.testing.assert_allclose(made.depth_m[PIXELS], depth_m, rtol=1e-4)
    np.testing.assert_allclose(made.sigma_m[PIXELS], sigma_m, rtol=1e-3)
    assert made.unfamiliarity == pytest.approx(unfamiliarity, rel=1e-3)
