# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Splits that keep neighbours together, and a choice by a proper score that harms nothing."""

import numpy as np
import pytest

from uncertainty_depth.calibration.choose import best, choose
from uncertainty_depth.calibration.sample import Sample
from uncertainty_depth.calibration.scores import MARGINS, harmed, scores
from uncertainty_depth.calibration.sigma_map import IDENTITY
from uncertainty_depth.errors import SourceError

UNHARMED = {
    "crps": 0.3,
    "nll": 1.2,
    "auce": 0.05,
    "coverage_68": 0.7,
    "coverage_95": 0.986,
    "miscoverage_95": 0.036,
}


def scored(**changes):
    return {**UNHARMED, **changes}


def test_blocks_are_contiguous_complete_and_in_order(draw):
    sample = draw(lambda raw: raw, frames=11, pixels=3)
    identities = [id(frame) for frame in sample.frames]
    for number in range(1, 12):
        blocks = sample.blocks(number)
        assert [id(frame) for block in blocks for frame in block.frames] == identities
        assert {len(block.frames) for block in blocks} <= {11 // number, 11 // number + 1}
    with pytest.raises(SourceError, match=r"11 frames.*at least 12"):
        sample.blocks(12)


@pytest.mark.parametrize("fraction", [0.0, 0.05, 0.33, 0.9, 1.0])
def test_the_last_frames_are_kept_apart(draw, fraction):
    sample = draw(lambda raw: raw, frames=10, pixels=3)
    used, kept = sample.split(fraction)
    assert len(used.frames) + len(kept.frames) == 10
    assert 1 <= len(kept.frames) <= 9
    assert kept.frames[-1] is sample.frames[-1]
    assert used.frames[0] is sample.frames[0]


@pytest.mark.parametrize("distribution", ["gaussian", "laplace"])
def test_every_score_gets_better_on_frames_that_were_not_seen(draw, distribution):
    def true_sigma(raw):
        return 0.1 + 3 * raw

    parts = [draw(true_sigma, seed=seed, law=distribution) for seed in range(3)]
    choice = choose(parts, distribution)
    fresh = draw(true_sigma, seed=9, law=distribution)
    before, after = (
        scores(fresh, sigma_map, distribution) for sigma_map in (IDENTITY, choice.sigma_map)
    )
    assert after["nll"] < before["nll"] - 1
    assert after["crps"] < before["crps"]
    assert after["auce"] < 0.02 < before["auce"]
    assert after["coverage_68"] == pytest.approx(0.68, abs=0.02)
    assert after["coverage_95"] == pytest.approx(0.95, abs=0.01)


def test_a_calibrated_sigma_stays_as_it_is(draw):
    choice = choose([draw(lambda raw: raw, seed=seed) for seed in range(3)], "gaussian")
    raw = np.linspace(0.05, 0.5, 10)
    np.testing.assert_allclose(choice.sigma_map(raw), raw, rtol=0.05)


def test_a_calibrated_laplace_sigma_is_not_shrunk_as_a_gaussian_one(draw):
    """The AUCE of a Gaussian would have it at three quarters of its size."""
    parts = [draw(lambda raw: raw, seed=seed, law="laplace") for seed in range(3)]
    assert choose(parts, "laplace").sigma_map(np.ones(1))[0] == pytest.approx(1, rel=0.05)
    as_gaussian = choose(parts, "gaussian")
    assert scores(parts[0], as_gaussian.sigma_map, "gaussian")["coverage_95"] > 0.92


def test_a_part_is_scored_by_maps_that_did_not_see_it(draw):
    """Two sequences of opposite miscalibration: a map of both would cover both better."""
    held_out = choose([draw(lambda raw: raw / 4), draw(lambda raw: 4 * raw)], "gaussian").held_out
    assert held_out["scale"]["auce"] > held_out["identity"]["auce"]


def test_sequences_that_disagree_leave_raw_sigma_alone(draw):
    parts = [draw(lambda raw: raw / 4), draw(lambda raw: 4 * raw)]
    assert choose(parts, "gaussian").sigma_map == IDENTITY


def test_the_smallest_crps_of_those_that_harm_nothing_is_chosen():
    held_out = {
        "identity": scored(),
        "scale": scored(crps=0.28),
        "affine 50%": scored(crps=0.27),
    }
    assert best(held_out) == "affine 50%"


def test_a_scale_that_raises_nll_and_lowers_coverage_is_not_chosen():
    """As once on a recording: AUCE fell, NLL rose from 1.212 to 1.356, coverage fell by 16 %."""
    scale = scored(crps=0.2, auce=0.01, nll=1.356, coverage_95=0.826, miscoverage_95=0.124)
    raw = scored(nll=1.212)
    assert best({"identity": raw, "scale": scale}) == "identity"
    assert harmed(raw, scale) == ["nll", "coverage_95"]


@pytest.mark.parametrize("name", MARGINS)
def test_harm_is_more_than_the_margin(name):
    key = "miscoverage_95" if name == "coverage_95" else name
    for change, names in ((0.9, []), (1.1, [name]), (-100.0, [])):
        after = scored(**{key: UNHARMED[key] + change * MARGINS[name]})
        assert harmed(UNHARMED, after) == names


def test_scores_may_be_infinite_or_unknown():
    infinite = scored(nll=np.inf)
    assert harmed(infinite, scored()) == []
    assert harmed(infinite, infinite) == []
    assert harmed(scored(), infinite) == ["nll"]
    assert harmed(scored(), scored(nll=np.nan)) == ["nll"]
    assert harmed(scored(nll=np.nan), scored()) == []


def test_scores_are_those_of_all_pixels_together(draw):
    sample = draw(lambda raw: raw, frames=4, pixels=200)
    together = Sample("one", (np.concatenate(sample.frames, axis=1),))
    raw = choose([sample, draw(lambda raw: raw, seed=1)], "gaussian").sigma_map
    assert scores(sample, raw, "gaussian") == scores(together, raw, "gaussian")
