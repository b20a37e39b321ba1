# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Recipes: their maps against the estimators that serve them, and NumPy."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_equal

from experiments.nyu_data import open_splits
from experiments.nyu_passes import Passes, load_networks
from experiments.nyu_recipes import ALL_PLACES, Recipe, dropout, questions
from experiments.nyu_search import (
    SmallFrames,
    collect,
    fit_maps,
    parts_of,
    score_recipes,
    some_pixels,
)
from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.metrics import auce
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.network.encoder import image_tensor
from uncertainty_depth.training.frames import read_frames, split
from uncertainty_depth.uncertainty import ESTIMATORS

STAMP = 3


def parts(nyu_like, settings, seed=0):
    splits = open_splits(nyu_like, settings.train_frames, settings.test_frames)
    return parts_of(
        *(read_frames(source, (32, 32)) for source in (splits.train, splits.test)), settings, seed
    )


@pytest.fixture(scope="module")
def image():
    return np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)


@pytest.fixture
def passes(nyu_models, image):
    def look(variant):
        made = Passes(load_networks(nyu_models / "models" / f"{variant}-0"))
        made.look_at(image, STAMP)
        return made

    return look


def estimated(nyu_models, image, variant, method, part="total", samples=8):
    estimator = ESTIMATORS[method].load(
        read(nyu_models / "models" / f"{variant}-0"), lambda network: network
    )
    return estimator.estimate(
        image_tensor(image[None]),
        STAMP,
        PredictorConfig(samples=samples, sampling="independent"),
    ).maps(part)


@pytest.mark.parametrize("part", ["total", "epistemic", "aleatoric"])
@pytest.mark.parametrize("method", ["multi_epochs", "mc_dropout", "deterministic"])
def test_a_recipe_gives_what_its_method_serves(nyu_models, passes, image, method, part):
    recipe = {
        "multi_epochs": Recipe,
        "mc_dropout": dropout,
        "deterministic": lambda variant, part: Recipe(variant, -1, part=part),
    }[method]
    found = passes("multi_epochs_laplace").maps(recipe("multi_epochs_laplace", part=part))
    assert_allclose(
        found,
        estimated(nyu_models, image, "multi_epochs_laplace", method, part),
        rtol=1e-3,
        atol=1e-5,
    )


def test_the_number_of_passes_is_that_of_the_method(nyu_models, passes, image):
    found = passes("multi_epochs").maps(dropout(passes=3))
    assert_allclose(
        found,
        estimated(nyu_models, image, "multi_epochs", "mc_dropout", samples=3),
        rtol=1e-3,
        atol=1e-5,
    )


def test_the_logarithm_of_the_depth_is_numpys(nyu_models, passes, image):
    networks = load_networks(nyu_models / "models" / "multi_epochs-0")
    depths = np.stack(
        [network(image_tensor(image[None])).depth_m[0, 0].numpy() for network in networks.values()]
    ).astype(np.float64)
    depth, sigma = passes("multi_epochs").maps(Recipe("multi_epochs", space="log"))
    assert_allclose(depth, depths.mean(0), rtol=1e-5)
    assert_allclose(sigma, depths.mean(0) * np.log(depths).std(0), rtol=1e-2, atol=1e-5)


def test_a_weight_multiplies_the_spread_and_leaves_the_predicted_part(passes):
    made = passes("multi_epochs_laplace")
    (_, epistemic), (_, aleatoric) = (
        made.maps(Recipe("multi_epochs_laplace", part=part)) for part in ("epistemic", "aleatoric")
    )
    _, sigma = made.maps(Recipe("multi_epochs_laplace", weight=3.0))
    assert_allclose(sigma, np.hypot(3 * epistemic, aleatoric), rtol=1e-5)
    assert_array_equal(made.maps(Recipe("multi_epochs_laplace", weight=0.0))[1], aleatoric)


def test_dropout_that_is_off_or_has_rate_0_leaves_no_spread(passes):
    made = passes("multi_epochs")
    alone, _ = made.maps(Recipe("multi_epochs", -1))
    for recipe in (dropout(places=()), dropout(rate=0.0)):
        depth, sigma = made.maps(recipe)
        assert_allclose(depth, alone, rtol=1e-5)
        assert sigma.max() < 1e-5


def test_each_place_and_a_higher_rate_change_the_spread(passes):
    made = passes("multi_epochs")
    spreads = [made.maps(dropout(places=(place,)))[1] for place in ALL_PLACES]
    assert all(spread.mean() > 1e-5 for spread in spreads)
    assert len({spread.tobytes() for spread in spreads}) == 3
    rates = [made.maps(dropout(rate=rate))[1].mean() for rate in (0.05, 0.2, 0.5)]
    assert rates == sorted(rates)
    assert_array_equal(made.maps(dropout(rate=0.2)), made.maps(dropout()))


def test_members_draw_dropout_of_their_own_and_are_chosen_by_name_or_as_served(nyu_models, passes):
    made = passes("multi_epochs")
    members = read(nyu_models / "models" / "multi_epochs-0").members
    assert made.maps(Recipe("multi_epochs", passes=2))[1].mean() > 0
    early, late = (
        made.maps(recipe)[0]
        for recipe in (
            Recipe("multi_epochs", stop=1, order="name"),
            Recipe("multi_epochs", -1, order="name"),
        )
    )
    served = [made.maps(Recipe("multi_epochs", number, number + 1))[0] for number in range(2)]
    assert_array_equal(served[members.index("epoch_0001")], early)
    assert_array_equal(served[members.index("epoch_0002")], late)


def test_a_new_frame_forgets_the_last_one(passes, image):
    made = passes("multi_epochs")
    before, _ = made.maps(Recipe("multi_epochs"))
    made.look_at(255 - image, STAMP)
    assert not np.array_equal(made.maps(Recipe("multi_epochs"))[0], before)


def test_every_recipe_has_a_key_of_its_own_and_is_scored_once(tiny_settings):
    asked = questions(tiny_settings)
    recipes, calibrated = collect(asked)
    everything = [recipe for each in recipes.values() for recipe in each]
    assert len({recipe.key for recipe in everything}) == len(set(everything)) == len(everything)
    assert {recipe for question in asked for recipe in question.answers.values()} == set(
        everything
    )
    assert len(calibrated) == 3
    assert len({question.title for question in asked}) == len(asked)


def test_parts_are_the_held_out_frames_of_the_trainings_and_the_test_split(
    nyu_like, nyu_models, tiny_settings
):
    frames = read_frames(open_splits(nyu_like, tiny_settings.train_frames).train, (32, 32))
    held_out = [split(10, 0.4, seed)[1] for seed in range(3)]
    assert held_out[0] not in held_out[1:]
    for seed, indices in enumerate(held_out):
        validation, test = parts(nyu_like, tiny_settings, seed)
        assert_array_equal(validation.images, [frames.images[index] for index in indices])
    assert len(test.images) == len(test.truths) == 3
    recorded = json.loads((nyu_models / "models" / "multi_epochs-0" / "model.json").read_text())[
        "training"
    ]["frames"]
    assert recorded["validation"] == len(validation.images)


def test_maps_are_fitted_on_the_validation_frames_and_scored_on_the_others(
    nyu_like, nyu_models, tiny_settings
):
    validation, test = parts(nyu_like, tiny_settings)
    made = Passes(load_networks(nyu_models / "models" / "multi_epochs-0"))
    recipe = Recipe("multi_epochs")
    other = dropout()
    found = score_recipes(made, [recipe, other], {recipe.key}, validation, test)
    assert set(found[recipe.key]["calibrated"]) == {"scale", "affine", "isotonic", "chosen"}
    assert found[other.key]["calibrated"] == {}
    hidden = SmallFrames(test.images, [np.full_like(truth, np.nan) for truth in test.truths])
    blind = score_recipes(made, [recipe], {recipe.key}, validation, hidden)
    assert_equal(blind[recipe.key]["validation"], found[recipe.key]["validation"])
    assert blind[recipe.key]["chosen_kind"] == found[recipe.key]["chosen_kind"]
    raw = found[recipe.key]["test"]["uncertainty"]
    scaled = found[recipe.key]["calibrated"]["scale"]["uncertainty"]
    assert scaled["n_merci"] == pytest.approx(raw["n_merci"], rel=0.01)


def test_fitted_maps_repair_a_sigma_of_the_wrong_size():
    rng = np.random.default_rng(0)
    sigma = rng.uniform(0.1, 1.0, (8, 2000))
    truth = np.full_like(sigma, 5.0)
    frames = [
        np.stack([5 + one * rng.normal(size=2000), one / 10, known]).astype(np.float32)
        for one, known in zip(sigma, truth, strict=True)
    ]
    error = np.concatenate([np.abs(frame[0] - 5) for frame in frames])
    raw = np.concatenate([frame[1] for frame in frames])
    for sigma_map in fit_maps("made up", frames, "gaussian").values():
        assert auce(error, sigma_map(raw)) < 0.02 < auce(error, raw)


def test_pixels_for_the_fit_are_bounded_known_and_repeatable():
    depth = np.full((50, 50), 2.0, np.float32)
    truth = np.full((50, 50), 3.0, np.float32)
    sigma = np.arange(2500, dtype=np.float32).reshape(50, 50)
    truth[:10] = np.nan
    kept = some_pixels(depth, sigma, truth, 1)
    assert kept.shape == (3, 1000)
    assert kept[1].min() >= 500
    assert len(np.unique(kept[1])) == 1000
    assert_array_equal(kept, some_pixels(depth, sigma, truth, 1))
