"""Splits that keep neighbours together, and a choice that repairs AUCE without harm to what is guarded."""

import numpy as np
import pytest

from uncertainty_depth.calibration.choose import GUARDED, MARGIN, best, choose, figures
from uncertainty_depth.calibration.sample import Sample
from uncertainty_depth.calibration.sigma_map import IDENTITY
from uncertainty_depth.config import CalibrationConfig
from uncertainty_depth.errors import SourceError

CONFIG = CalibrationConfig()


def test_blocks_are_contiguous_complete_and_in_order(draw):
    sample = draw(lambda raw: raw, frames=11, pixels=3)
    for number in range(1, 12):
        blocks = sample.blocks(number)
        assert [id(frame) for block in blocks for frame in block.frames] == [
            id(frame) for frame in sample.frames
        ]
        assert {len(block.frames) for block in blocks} <= {11 // number, 11 // number + 1}
    with pytest.raises(SourceError, match=r"11 frames.*at least 12"):
        sample.blocks(12)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.33, 0.9, 1.0])
def test_the_last_frames_are_kept_apart(draw, share):
    sample = draw(lambda raw: raw, frames=10, pixels=3)
    used, kept = sample.split(share)
    assert len(used.frames) + len(kept.frames) == 10
    assert 1 <= len(kept.frames) <= 9
    assert kept.frames[-1] is sample.frames[-1]
    assert used.frames[0] is sample.frames[0]


def test_auce_falls_on_frames_that_were_not_seen_and_nothing_guarded_rises(draw):
    parts = [draw(lambda raw: 0.1 + 3 * raw, seed=seed, tail=4) for seed in range(3)]
    choice, fresh = choose(parts, CONFIG), draw(lambda raw: 0.1 + 3 * raw, seed=9, tail=4)
    before, after = (figures(fresh, sigma_map, 0.95) for sigma_map in (IDENTITY, choice.sigma_map))
    assert before["auce"] > 0.2
    assert after["auce"] < 0.02
    assert after["nll"] < before["nll"] - 1
    for name in GUARDED:
        assert after[name] <= before[name] * (1 + CONFIG.tolerance) + 1e-6, name


def test_a_calibrated_sigma_stays_as_it_is(draw):
    choice = choose([draw(lambda raw: raw, seed=seed) for seed in range(3)], CONFIG)
    raw = np.linspace(0.05, 0.5, 10)
    np.testing.assert_allclose(choice.sigma_map(raw), raw, rtol=0.05)


def test_a_part_is_scored_by_maps_that_did_not_see_it(draw):
    """Two sequences of opposite miscalibration: a map that had seen both would cover both better."""
    small, large = draw(lambda raw: raw / 4), draw(lambda raw: 4 * raw)
    held_out = choose([small, large], CONFIG).held_out
    assert held_out["scale"]["auce"] > held_out["identity"]["auce"]


def scored(**changes):
    return {"auce": 0.2, "nll": 3.0, **dict.fromkeys(GUARDED, 0.5), **changes}


def test_the_rule_is_least_auce_then_likelihood_among_what_harms_nothing():
    raw, good = scored(), scored(auce=0.02, nll=1.5)
    assert best({"identity": raw, "scale": good}, 0.02) == "scale"
    assert (
        best(
            {
                "identity": raw,
                "scale": good,
                "affine 50%": scored(auce=0.02 + MARGIN / 2, nll=1.2),
            },
            0.02,
        )
        == "affine 50%"
    )
    assert (
        best(
            {
                "identity": raw,
                "scale": good,
                "affine 50%": scored(auce=0.02 + 2 * MARGIN, nll=1.2),
            },
            0.02,
        )
        == "scale"
    )


@pytest.mark.parametrize("name", GUARDED)
def test_what_harms_a_guarded_figure_is_refused(name):
    harmful, bearable = (
        scored(auce=0.0, nll=0.0, **{name: 0.52}),
        scored(auce=0.0, nll=0.0, **{name: 0.505}),
    )
    assert best({"identity": scored(), "isotonic 100%": harmful}, 0.02) == "identity"
    assert best({"identity": scored(), "isotonic 100%": bearable}, 0.02) == "isotonic 100%"


def test_guarded_figures_may_be_negative_infinite_or_unknown():
    for value, worse in ((-1.0, -0.9), (float("inf"), 5.0), (float("nan"), 5.0)):
        found = best(
            {"identity": scored(n_merci=value), "scale": scored(auce=0.0, n_merci=worse)}, 0.02
        )
        assert found == ("identity" if value == -1.0 else "scale")


def test_figures_are_those_of_all_pixels_together(draw):
    sample = draw(lambda raw: raw, frames=4, pixels=200)
    together = Sample("one", (np.concatenate(sample.frames, axis=1),))
    raw = choose([sample, draw(lambda raw: raw, seed=1)], CONFIG).sigma_map
    assert figures(sample, raw, 0.95) == figures(together, raw, 0.95)
