"""The NYU experiment from end to end, its scores against `evaluate`, its tables and its rules."""

import csv
import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from uncertainty_depth.config import EvaluationConfig, PredictorConfig
from uncertainty_depth.evaluation import evaluate
from uncertainty_depth.evaluation.frame_table import flatten
from uncertainty_depth.experiments import nyu, nyu_figures, nyu_scores, nyu_search, nyu_tables
from uncertainty_depth.experiments.nyu_data import open_splits
from uncertainty_depth.experiments.nyu_methods import ROWS, load
from uncertainty_depth.experiments.nyu_recipes import Question, Recipe
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.metrics import by_depth
from uncertainty_depth.records import DepthPrediction
from uncertainty_depth.training import run as training_run

FILES = {"table.md", "summary.json", "models", "results"}
TABLES = {
    f"{name}.csv" for name in ("table", "change", "intervals", "recipes", "calibration", "ideal")
}
PICTURES = {f"{name}.png" for name in ("intervals", "n_merci", "sparsification", "maps")}


@pytest.fixture(scope="module")
def finished(nyu_like, tiny_settings, tmp_path_factory):
    """Output folder of a whole run."""
    output = tmp_path_factory.mktemp("nyu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nyu, "QUICK", tiny_settings)
        # A picture takes most of the time of so small a training.
        patch.setattr(
            "uncertainty_depth.training.member_run.write_picture", lambda *_: None, raising=False
        )
        nyu.run(output, 1, True, nyu_like)
    return output


def table(folder, name):
    with open(folder / f"{name}.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_a_run_writes_everything_and_says_that_it_was_quick(finished):
    assert {path.name for path in finished.iterdir()} == FILES | TABLES | PICTURES
    text = (finished / "table.md").read_text()
    assert text.startswith("**Quick run")
    assert "Multi Epochs is best (n-MeRCI 0.11)" in text
    assert "Best recipe" in text
    assert json.loads((finished / "summary.json").read_text())["quick"] is True
    assert all((finished / name).read_bytes().startswith(b"\x89PNG") for name in PICTURES)


def test_a_second_run_trains_and_scores_nothing(finished, nyu_like, tiny_settings, monkeypatch):
    monkeypatch.setattr(nyu, "QUICK", tiny_settings)
    for module, name in (
        (training_run, "read_frames"),
        (nyu_scores, "score"),
        (nyu_scores, "side_by_side"),
        (nyu_search, "score_recipes"),
    ):
        monkeypatch.setattr(module, name, lambda *_, name=name: pytest.fail(f"{name} again"))
    before = (finished / "table.md").read_text()
    nyu.run(finished, 1, True, nyu_like)
    assert (finished / "table.md").read_text() == before


def test_rows_have_two_baselines_and_a_time(finished):
    rows = table(finished, "table")
    assert [row["method"] for row in rows[::3]] == [row.title for row in ROWS.values()]
    assert all(row["n-MeRCI trimmed"].startswith("1.000") for row in rows[1::3])
    assert all(float(row["s / frame"]) > 0 < float(row["of one pass"]) for row in rows[::3])


@pytest.mark.parametrize("name", ["mc_dropout", "learned_error", "log_likelihood"])
def test_numbers_are_those_of_evaluate_on_the_same_folder(finished, nyu_like, name):
    row = ROWS[name]
    predictor = Predictor(
        finished / "models" / f"{row.variant}-0", PredictorConfig(method=row.served)
    )
    flat = flatten(
        evaluate.run(
            open_splits(nyu_like, 0, 3).test, predictor, EvaluationConfig(), progress=False
        ).summary()
    )
    shown = next(line for line in table(finished, "table") if line["method"] == row.title)
    for title, key in {
        "abs_rel": "depth.abs_rel",
        "n-MeRCI": "uncertainty.n_merci",
        "AUSE rmse": "uncertainty.ause.rmse",
    }.items():
        assert shown[title] == f"{flat[key]:.3f}"


def test_several_seeds_are_a_mean_and_a_deviation():
    def summary(value):
        figures = dict.fromkeys(("n_merci_trimmed", "n_merci", "auce", "nll", "spearman"), value)
        areas = {
            kind: dict.fromkeys(("abs_rel", "rmse", "a1"), value) for kind in ("ause", "aurg")
        }
        halves = {
            **{name: 0.5 for name in figures},
            **{kind: dict.fromkeys(("abs_rel", "rmse", "a1"), 0.5) for kind in areas},
        }
        baselines = {name: halves for name in ("constant", "proportional_to_depth")}
        return {
            "depth": dict.fromkeys(("mae", "abs_rel", "rmse"), value),
            "uncertainty": {**figures, **areas},
            "baselines": baselines,
        }

    def scored(*values):
        return [{"summary": summary(value), "greatest_depth_m": value} for value in values]

    scores = {name: scored(0.2, 0.4) for name in ROWS} | {
        "mc_dropout": scored(None, 0.4),
        "bagging": scored(1234.5),
    }
    _, rows = nyu_tables.main_table(
        scores, {name: {"seconds": 1.0, "of_one_pass": 2.0} for name in ROWS}
    )
    assert rows[0] == ["Multi Epochs", "2", *["0.300 ± 0.100"] * 15, "1.0000", "2.00"]
    assert set(rows[3][2:-2]) == {"0.400, 1 not finite"}
    bagging = next(row for row in rows if row[0] == "Bagging")
    assert set(bagging[2:-2]) == {"1234"}
    _, changes = nyu_tables.change_table(scores)
    assert changes[0] == ["Multi Epochs", *["-40 ± 20 %"] * 5]
    assert set(changes[1][1:]) == {"-20 %, 1 not finite"}


def test_change_is_against_the_same_depth(finished):
    summary = json.loads((finished / "summary.json").read_text())["scores"]["multi_inits"][0]
    change = 100 * (
        summary["uncertainty"]["ause"]["rmse"]
        / summary["baselines"]["proportional_to_depth"]["ause"]["rmse"]
        - 1
    )
    row = next(line for line in table(finished, "change") if line["method"] == "Multi Inits")
    assert row["AUSE rmse"] == f"{change:+.0f} %"


def test_intervals_are_the_exact_figures_of_the_thinned_pixels(nyu_models, nyu_like):
    source, predictor = (
        open_splits(nyu_like).test,
        load(nyu_models / "models", ROWS["learned_error"]),
    )
    found = nyu_scores.score(predictor, source)["intervals"]
    pixels = []
    for frame in source:
        made = predictor.predict(frame.image, frame.stamp_ns)
        depth, sigma, truth = (
            values[::2, ::2] for values in (made.depth_m, made.sigma_m, frame.ground_truth_m)
        )
        pixels.append(np.stack([np.abs(depth - truth), sigma, truth])[:, np.isfinite(truth)])
    for reading, trimmed in (("plain", False), ("trimmed", True)):
        expected = by_depth(*np.concatenate(pixels, axis=1), 0.1, 0.95, trimmed)
        assert_allclose(found[reading], expected.n_merci)
        assert found[f"mean_{reading}"] == expected.mean_n_merci > 0
        assert found["intervals_with_enough"] == expected.intervals_with_enough > 0


def test_an_interrupted_score_is_not_kept(nyu_like):
    class Interrupted:
        def predict(self, image, stamp_ns):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nyu_scores.score(Interrupted(), open_splits(nyu_like, 0, 2).test)


def test_side_by_side_gives_each_row_a_turn_in_every_round(one_seeded_thread, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(nyu_scores.time, "perf_counter", lambda: now[0])

    class Counted:
        def __init__(self, seconds):
            self.seconds, self.turns = seconds, 0

        def predict(self, image):
            self.turns += 1
            now[0] += self.seconds

    rows, single = {"much": Counted(3.0), "little": Counted(0.5)}, Counted(1.5)
    found = nyu_scores.side_by_side(rows, single, np.zeros((4, 4, 3), np.uint8), 5)
    assert [one.turns for one in (*rows.values(), single)] == [5, 5, 5]
    assert found["much"] == pytest.approx({"seconds": 3.0, "of_one_pass": 2.0})
    assert found["little"] == pytest.approx({"seconds": 0.5, "of_one_pass": 1 / 3})


def scores_of(**n_merci):
    return {
        name: [
            {"summary": {"uncertainty": {"n_merci_trimmed": value}}}
            for value in n_merci.get(name, [None])
        ]
        for name in ROWS
    }


def test_ranking_is_by_the_middle_seed_the_best_first_and_what_has_no_figure_last():
    found = nyu_tables.ranking(
        scores_of(bagging=[0.2], mc_dropout=[0.9, None, 0.1], self_teaching=[0.6, 0.3])
    )
    assert found[:3] == [("bagging", 0, 0.2), ("self_teaching", 1, 0.3), ("mc_dropout", 0, 0.9)]
    assert all(value == math.inf for _, _, value in found[3:])
    assert len(found) == len(ROWS)


def test_the_typical_frame_has_the_median_error_over_all_rows():
    errors = {
        "a": (0.1, 0.9),
        "b": (0.2, 0.2),
        "c": (0.3, 0.4),
        "d": (0.1, 0.1),
        "e": (0.9, 0.9),
    }  # means 0.5, 0.2, 0.35, 0.1, 0.9
    rows = [
        [{"frames": {frame: {"depth.abs_rel": pair[row]} for frame, pair in errors.items()}}]
        for row in range(2)
    ]
    assert nyu_figures.typical_frame(dict(zip(("x", "y"), rows, strict=True))) == "c"


def found_with(held_out, test=(1.0, 2.0)):
    def summary(trimmed, rmse):
        method = {
            "n_merci_trimmed": trimmed,
            "n_merci": trimmed,
            "ause": {"rmse": rmse},
            "auce": 0.1,
            "spearman": 0.3,
        }
        baseline = {"n_merci_trimmed": 1.0, "ause": {"rmse": 2.0}}
        return {
            "depth": {"abs_rel": 0.2},
            "uncertainty": method,
            "baselines": {"proportional_to_depth": baseline},
        }

    return {"validation": summary(*held_out), "test": summary(*test)}


def test_the_winner_is_the_recipe_whose_worse_gain_is_best_on_the_held_out_frames_alone():
    recipes = {
        name: Recipe(name)
        for name in ("one-sided", "balanced", "best on test", "unknown", "good once")
    }
    found = {
        recipes["one-sided"].key: [found_with((0.1, 1.9), (0.1, 0.1))],
        recipes["balanced"].key: [
            found_with((0.6, 1.3), (0.8, 1.8)),
            found_with((0.8, 1.1), (0.8, 1.8)),
        ],
        recipes["best on test"].key: [found_with((0.9, 1.0), (0.1, 0.1))],
        recipes["unknown"].key: [found_with((None, 0.1), (0.1, 0.1))],
        recipes["good once"].key: [found_with((0.1, 0.1)), found_with((1.9, 3.9))],
    }
    best = nyu_tables.winner([Question("which?", recipes)], found)
    assert (best.question, best.answer, best.seeds) == ("which?", "balanced", 2)
    assert best.held_out == pytest.approx({"n-MeRCI trimmed": 0.7, "AUSE rmse": 0.6})
    assert best.test == pytest.approx({"n-MeRCI trimmed": 0.8, "AUSE rmse": 0.9})


def test_answers_are_compared_over_the_seeds_that_all_of_them_have():
    recipes = {name: Recipe(name) for name in ("three seeds", "one seed")}
    found = {
        recipes["three seeds"].key: [found_with((value, 1.0)) for value in (0.2, 0.4, 0.9)],
        recipes["one seed"].key: [found_with((0.3, 1.0))],
    }
    header, rows = nyu_tables.search_table(
        [Question("both", recipes), Question("alone", {"three": recipes["three seeds"]})], found
    )
    shown = [row[: header.index("held out: n-MeRCI trimmed, change") + 1] for row in rows]
    assert shown == [
        ["both", "three seeds", "1", "0.200", "-80 %"],
        ["both", "one seed", "1", "0.300", "-70 %"],
        ["alone", "three", "3", "0.500 ± 0.294", "-50 ± 29 %"],
    ]


def test_what_is_not_finite_is_left_out_and_counted():
    assert nyu_tables.over_seeds([0.25, None, 0.75]) == "0.500 ± 0.250, 1 not finite"
    assert nyu_tables.over_seeds([None, math.inf]) == "–"
    assert nyu_tables.over_seeds([0.25, math.nan]) == "0.250, 1 not finite"


def test_maps_are_drawn_in_the_order_given_with_method_and_figure(nyu_like):
    frame = next(iter(open_splits(nyu_like, 0, 1).test))
    made = DepthPrediction(
        np.full((60, 80), 2.0, np.float32),
        np.linspace(0, 1, 4800, dtype=np.float32).reshape(60, 80),
    )
    figure = nyu_figures.maps_figure(
        frame, [("Bagging", 0.21, 0.3, made), ("MC-dropout", 0.9, 0.4, made)]
    )
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles[0] == f"test image {frame.name}"
    assert titles[4:] == [
        "1. Bagging\n0.210 (this image 0.300)",
        "2. MC-dropout\n0.900 (this image 0.400)",
    ]
