# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Calibrate a model folder with a tiny random network, and refuse what cannot be calibrated."""

import json
import os
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest

from uncertainty_depth.calibration import IDENTITY, SigmaMap, report, run
from uncertainty_depth.calibration.fitted_data import FittedData
from uncertainty_depth.calibration.run import calibrate, check
from uncertainty_depth.calibration.sample import Sample, collect
from uncertainty_depth.calibration.table import table
from uncertainty_depth.cli.main import main
from uncertainty_depth.config import CalibrationConfig, PredictorConfig, SynthesisConfig
from uncertainty_depth.errors import CalibrationError, ModelError, SourceError
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.metrics import auce
from uncertainty_depth.metrics.distributions import distribution_of
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.model_folder.writing import export_half, set_calibration, set_members
from uncertainty_depth.records import DepthPrediction, Frame, Skipped
from uncertainty_depth.synthetic.source import synthesize

CONFIG = CalibrationConfig(pixels_per_frame=400)
MAP = SigmaMap("isotonic 50%", (0.0, 0.01, 0.5, 1.0), (0.05, 0.2, 0.4, 0.8))
SMALL = SynthesisConfig(worlds=1, frames=10, width=96, height=72, rings=24)


class ListSource:
    notes: tuple = ()

    def __init__(self, records, name="list"):
        self.records = records
        self.name = name

    def __len__(self):
        return len(self.records)

    def __iter__(self):
        return iter(self.records)


class DrawnPredictor:
    """Sigma is read off the image; the frames' errors are `factor` times as large as it says."""

    def __init__(self):
        self.stamps = []

    def predict(self, image, stamp_ns, camera=None):
        self.stamps.append(stamp_ns)
        return DepthPrediction(
            np.full(image.shape[:2], 5, np.float32), (image[..., 0] / 512).astype(np.float32)
        )


def frame(index, factor=3.0, known=0.5, shape=(24, 32)):
    random = np.random.default_rng(index)
    image = random.integers(1, 256, (*shape, 3), np.uint8)
    truth = 5 + factor * image[..., 0] / 512 * random.normal(size=shape)
    return Frame(
        index * 100,
        f"{index}",
        image=image,
        ground_truth_m=np.where(random.random(shape) < known, truth, np.nan).astype(np.float32),
    )


def frames(number, start=0, **options):
    return ListSource(
        [frame(start + index, **options) for index in range(number)], f"list {start}"
    )


def all_pixels(sample):
    return np.concatenate(sample.frames, axis=1).astype(np.float64)


def test_too_few_frames_say_why_the_others_were_skipped():
    skipped = [
        Skipped(index, "no_depth_held_out", f"frame {index} has it all") for index in (5, 6)
    ]
    source = ListSource([frame(0), *skipped], "few")
    with pytest.raises(SourceError, match=r"calibrate on; of 2 skipped, the first: frame 5 has"):
        collect(source, DrawnPredictor(), CalibrationConfig(), False)


def test_a_sample_is_bounded_seeded_and_made_of_pixels_with_ground_truth():
    source = ListSource(
        [
            frame(0),
            Skipped(50, "bad_image", "..."),
            *(frame(i) for i in range(1, 12)),
            frame(12, known=0.0),
        ]
    )
    one, again, other = (
        collect(
            source,
            DrawnPredictor(),
            CalibrationConfig(pixels_per_frame=200, pixel_seed=seed),
            False,
        )
        for seed in (0, 0, 1)
    )
    assert [part.shape for part in one.frames] == [(3, 200)] * 12
    np.testing.assert_array_equal(all_pixels(one), all_pixels(again))
    assert (all_pixels(one) != all_pixels(other)).any()
    pairs = {(float(sigma), float(truth)) for sigma, truth in one.frames[0][1:].T}
    known = np.isfinite(frame(0).ground_truth_m)
    sigma = (frame(0).image[..., 0] / 512).astype(np.float32)
    assert pairs <= {
        (float(s), float(t))
        for s, t in zip(sigma[known], frame(0).ground_truth_m[known], strict=True)
    }


def test_at_most_max_frames_are_predicted_evenly_spread():
    predictor = DrawnPredictor()
    sample = collect(frames(30), predictor, CalibrationConfig(max_frames=10), False)
    assert predictor.stamps == list(range(0, 3000, 300))
    assert len(sample.frames) == 10


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (frames(7), "7 frames"),
        (frames(20, known=0.0), "0 frames and 0 pixels"),
        (frames(20, known=0.02), "pixels with a prediction and a ground truth"),
        (ListSource([]), "0 frames"),
    ],
)
def test_too_little_to_calibrate_on_is_one_sentence(source, words):
    with pytest.raises(SourceError, match="expected at least 8 frames and 1000 pixels") as caught:
        collect(source, DrawnPredictor(), CONFIG, False)
    assert words in str(caught.value)
    assert source.name in str(caught.value)


def test_a_constant_sigma_of_zero_is_one_sentence():
    class Certain(DrawnPredictor):
        def predict(self, image, stamp_ns, camera=None):
            made = super().predict(image, stamp_ns)
            return DepthPrediction(made.depth_m, np.zeros_like(made.sigma_m))

    with pytest.raises(SourceError, match="sigma is 0 for every pixel"):
        calibrate([frames(20)], Certain(), CONFIG, False)


def test_a_constant_sigma_gets_the_right_size():
    class Constant(DrawnPredictor):
        def predict(self, image, stamp_ns, camera=None):
            made = super().predict(image, stamp_ns)
            return DepthPrediction(made.depth_m, np.full_like(made.sigma_m, 0.25))

    made = calibrate([frames(20)], Constant(), CONFIG, False)
    before, after = made.scores()
    assert after["auce"] < 0.1 < before["auce"]


def test_the_report_of_one_source_is_on_its_last_frames_alone():
    """The last third is miscalibrated otherwise: the map must know nothing of it."""
    source = ListSource(
        [*frames(20, factor=3.0).records, *frames(10, start=20, factor=0.5).records]
    )
    made = calibrate([source], DrawnPredictor(), CONFIG, False)
    np.testing.assert_allclose(made.choice.sigma_map(np.array([0.2])), 0.6, rtol=0.05)
    assert [trial.frames for trial in made.trials] == [10]
    before, after = made.scores()
    assert after["auce"] > before["auce"]


def test_what_gets_worse_on_frames_not_used_is_refused_and_named():
    """The last third is covered 98 % before and much less after: no such map may be served."""
    records = [*frames(20, factor=0.3).records, *frames(10, start=20, factor=0.8).records]
    worse = calibrate([ListSource(records)], DrawnPredictor(), CONFIG, False)
    assert worse.harmed() == ["crps", "nll", "auce", "coverage_95"]
    (marked,) = [line for line in table(worse).splitlines() if line.startswith("NLL  ")]
    assert marked.endswith("worse")
    with pytest.raises(
        CalibrationError, match="is worse than raw sigma on frames not used"
    ) as one:
        check(worse)
    assert "coverage at 95 %" in str(one.value)
    assert "--force" in str(one.value)
    good = calibrate([frames(30)], DrawnPredictor(), CONFIG, False)
    check(good)
    assert "   worse" not in table(good)


def test_each_of_several_sources_is_reported_on_by_the_map_of_the_others():
    sources = [frames(10, 0), frames(10, 100), frames(10, 200, factor=0.3)]
    made = calibrate(sources, DrawnPredictor(), CONFIG, False)
    assert [trial.name for trial in made.trials] == ["list 0", "list 100", "list 200"]
    assert [trial.frames for trial in made.trials] == [10, 10, 10]
    np.testing.assert_allclose(made.trials[2].sigma_map(np.array([0.2])), 0.6, rtol=0.05)
    for source, trial in zip(sources, made.trials, strict=True):
        depth, sigma, truth = all_pixels(
            collect(source, DrawnPredictor(), CalibrationConfig(), False)
        )
        expected = auce(np.abs(depth - truth), trial.sigma_map(sigma))
        assert trial.after["auce"] == pytest.approx(expected, abs=0.02)


def test_sequences_covered_too_much_and_too_little_do_not_cancel():
    sources = [frames(10, 0, factor=0.25), frames(10, 100, factor=4.0)]
    made = calibrate(sources, DrawnPredictor(), CONFIG, False)
    assert made.scores()[1]["auce"] > 0.3
    assert made.scores()[1]["miscoverage_95"] > 0.3
    kept = report.record(made, report.Provenance(("a", "b"), {"samples": 8}, CONFIG))
    assert kept["not_used"]["after"]["auce"] > 0.3


@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_score_gets_better_for_any_number_of_sources(number):
    sources = [frames(24, 100 * index) for index in range(number)]
    made = calibrate(sources, DrawnPredictor(), CONFIG, False)
    before, after = made.scores()
    assert before["auce"] > 0.2
    assert after["auce"] < 0.02
    assert after["nll"] < before["nll"]
    assert after["crps"] < before["crps"]
    assert after["coverage_68"] == pytest.approx(0.68, abs=0.03)
    assert after["coverage_95"] == pytest.approx(0.95, abs=0.02)


def test_the_table_and_the_files_tell_every_candidate_and_both_sides(tmp_path):
    made = calibrate([frames(12), frames(12, 100)], DrawnPredictor(), CONFIG, False)
    text = table(made)
    for words in (
        "identity",
        "scale",
        "affine 50%",
        "isotonic 100%",
        "chosen",
        "before",
        "after",
        "AUCE",
        "coverage at 68 %",
        "coverage at 95 %",
        "list 100",
    ):
        assert words in text
    report.write(made, tmp_path / "out", report.Provenance(("a", "b"), {"model": "m"}, CONFIG))
    content = json.loads((tmp_path / "out" / "calibration.json").read_text())
    assert SigmaMap.from_mapping(content["map"]) == made.choice.sigma_map
    assert content["sources"] == ["a", "b"]
    assert content["not_used"]["after"]["auce"] < content["not_used"]["before"]["auce"]
    assert content["fitted_to"]["frames"] == 24
    assert len(content["trials"]) == 2
    assert (tmp_path / "out" / "calibration.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def model(model_template, tmp_path):
    return shutil.copytree(model_template, tmp_path / "model")


def picture(seed=0):
    """Return an image of the network's size."""
    return np.random.default_rng(seed).integers(0, 256, (64, 64, 3), dtype=np.uint8)


def test_the_folder_gives_the_map_back_and_keeps_the_rest(model):
    before = json.loads((model / "model.json").read_text())
    assert read(model).calibration == {}
    set_calibration(model, "mc_dropout", MAP, {"sources": ["bag"]})
    set_calibration(model, "multi_epochs", IDENTITY, {})
    assert read(model).calibration == {"mc_dropout": MAP, "multi_epochs": IDENTITY}
    after = json.loads((model / "model.json").read_text())
    assert after.pop("calibration")["mc_dropout"]["sources"] == ["bag"]
    assert after == before
    assert not [path for path in model.iterdir() if path.name.startswith(".")]


def test_a_calibrated_model_predicts_the_map_of_its_raw_sigma(model):
    raw = Predictor(model, PredictorConfig(samples=3, device="cpu")).predict(picture(), 7)
    set_calibration(model, "mc_dropout", MAP, {})
    predictor = Predictor(model, PredictorConfig(samples=3, device="cpu"))
    made = predictor.predict(picture(), 7)
    np.testing.assert_array_equal(made.depth_m, raw.depth_m)
    np.testing.assert_array_equal(made.sigma_m, MAP(raw.sigma_m))
    assert (made.sigma_m != raw.sigma_m).all()
    assert predictor.describe()["calibration"] == "isotonic 50%"
    predictor.config = PredictorConfig(samples=3, device="cpu", calibrated=False)
    np.testing.assert_array_equal(predictor.predict(picture(), 7).sigma_m, raw.sigma_m)
    assert predictor.describe()["calibration"] == "off"


def test_sigma_is_calibrated_at_the_network_s_size_and_then_resized(model):
    config = PredictorConfig(samples=3, device="cpu")
    image = picture()
    raw_m = Predictor(model, config).predict(image, 7).sigma_m
    bends = np.quantile(raw_m, (0.3, 0.6))
    curved = SigmaMap("isotonic 50%", (0.0, *bends, 9.0), (0.1, 0.2, 0.9, 10.0))
    set_calibration(model, "mc_dropout", curved, {})
    twice = image.repeat(2, 0).repeat(2, 1)
    calibrated_m = Predictor(model, config).predict(twice, 7).sigma_m
    expected_m = cv2.resize(curved(raw_m), twice.shape[1::-1])
    np.testing.assert_allclose(calibrated_m, expected_m, rtol=1e-5)


def test_a_calibration_holds_for_its_method_alone(model):
    raw = Predictor(model, PredictorConfig(method="multi_epochs", device="cpu")).predict(picture())
    set_calibration(model, "mc_dropout", MAP, {})
    np.testing.assert_array_equal(
        Predictor(model, PredictorConfig(method="multi_epochs", device="cpu"))
        .predict(picture())
        .sigma_m,
        raw.sigma_m,
    )


def test_members_that_are_trained_further_drop_the_calibration(model):
    set_calibration(model, "mc_dropout", MAP, {})
    set_members(model, ["m0", "m1"], "mc_dropout", {"epochs": 4})
    assert read(model).calibration == {}


def test_other_members_drop_the_calibration_and_a_copy_in_half_keeps_it(model, tmp_path):
    set_calibration(model, "mc_dropout", MAP, {})
    export_half(model, tmp_path / "half")
    assert read(tmp_path / "half").calibration == {"mc_dropout": MAP}
    set_members(model, ["m0", "m1"], "multi_epochs")
    assert read(model).calibration == {"mc_dropout": MAP}, "the same members"
    set_members(model, ["m1"], "mc_dropout")
    assert read(model).calibration == {}


@pytest.mark.parametrize(
    "damage",
    [
        [],
        {"mc_dropout": 3},
        {"mc_dropout": {"kind": "scale", "raw_m": [0, 1], "calibrated_m": [1, 0]}},
    ],
)
def test_a_damaged_calibration_is_named(model, damage):
    content = json.loads((model / "model.json").read_text())
    (model / "model.json").write_text(json.dumps({**content, "calibration": damage}))
    with pytest.raises(ModelError, match=r"model\.json cannot be used: "):
        read(model)


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    path = tmp_path_factory.mktemp("bags") / "world"
    synthesize(path, SMALL, progress=False)
    return path


def command(*arguments):
    return main(["calibrate", *map(str, arguments), "--samples", "3", "--device", "cpu"])


def test_a_model_is_calibrated_on_a_bag_from_the_command_line(model, bag, tmp_path, capsys):
    assert command(model, bag, "--dry-run") == 0
    assert "before" in capsys.readouterr().out
    assert read(model).calibration == {}
    assert not (model / "calibration.json").exists()
    assert command(model, bag, "--dry-run", "--output", tmp_path / "out") == 0
    assert (tmp_path / "out" / "calibration.json").exists()
    assert read(model).calibration == {}
    assert command(model, bag) == 0
    assert "written to" in capsys.readouterr().out
    assert (model / "calibration.png").exists()
    content = json.loads((model / "calibration.json").read_text())
    assert content["not_used"]["after"]["auce"] < content["not_used"]["before"]["auce"]
    (found,) = read(model).calibration.values()
    assert found == SigmaMap.from_mapping(content["map"])


def test_calibrating_on_frames_that_the_model_was_trained_on_is_said(model, bag, caplog):
    assert command(model, bag) == 0
    assert json.loads((model / "calibration.json").read_text())["notes"] == []
    set_members(model, ["m0", "m1"], "mc_dropout", {"source": str(bag)})
    assert command(model, bag) == 0
    (note,) = json.loads((model / "calibration.json").read_text())["notes"]
    assert note.endswith(
        f"was trained on frames of {bag}: its errors are smaller there than on new frames"
    )
    assert note in caplog.messages


@pytest.mark.usefixtures("without_plots")
def test_evaluate_says_whether_sigma_was_calibrated(model, bag, tmp_path, capsys):
    set_calibration(model, "mc_dropout", MAP, {})
    arguments = [
        "evaluate",
        str(bag),
        "--model",
        str(model),
        "--output",
        str(tmp_path / "report"),
        "--samples",
        "2",
        "--device",
        "cpu",
        "--overwrite",
    ]
    for option, said in (
        ([], "calibrated sigma (isotonic 50%)"),
        (["--no-calibrated"], "raw sigma (calibration is off)"),
    ):
        assert main([*arguments, *option]) == 0
        assert f"scored: mc_dropout, {said}\n" in capsys.readouterr().out


def test_calibrating_again_starts_from_raw_sigma(model, bag):
    assert command(model, bag) == 0
    first = read(model).calibration
    assert command(model, bag) == 0
    assert read(model).calibration == first


def test_refusals_are_one_sentence_and_leave_the_model_alone(model, bag, capsys):
    before = (model / "model.json").read_bytes()
    assert command(model, bag, bag, "--max-frames", "3") == 1
    assert "expected at least 8 frames" in capsys.readouterr().err
    assert command(model, bag, "--method", "deterministic") == 1
    assert "sigma is 0" in capsys.readouterr().err
    assert command(model, bag / "missing") == 1
    assert command(model, bag, "--output", model / "model.json") == 1
    assert "is a file" in capsys.readouterr().err
    assert (model / "model.json").read_bytes() == before


def test_a_worse_map_is_written_by_force_alone(model, bag, capsys, monkeypatch):
    before = (model / "model.json").read_bytes()
    monkeypatch.setattr(run, "harmed", lambda before, after: ["nll"])
    assert command(model, bag) == 1
    assert "worse than raw sigma on frames not used: NLL" in capsys.readouterr().err
    assert (model / "model.json").read_bytes() == before
    assert not (model / "calibration.json").exists()
    assert command(model, bag, "--force") == 0
    assert read(model).calibration


def test_the_folder_keeps_what_the_map_was_fitted_to(model, bag):
    assert command(model, bag, "--report-fraction", "0.4") == 0
    (fitted,) = read(model).fitted_to.values()
    assert fitted.sources == (str(bag),)
    assert fitted.frames == 6, "the first of ten, without the two fifths reported on"
    assert 0.1 <= fitted.depth_range_m[0] < fitted.depth_range_m[1] <= 80
    assert fitted.camera["aspect"] == [round(96 / 72, 6)] * 2


def test_the_distribution_is_the_heads(model, bag, tmp_path):
    for option, expected in (([], "gaussian"), (["--distribution", "laplace"], "laplace")):
        assert command(model, bag, "--dry-run", "--output", tmp_path / "out", *option) == 0
        content = json.loads((tmp_path / "out" / "calibration.json").read_text())
        assert content["distribution"] == content["config"]["distribution"] == expected
    assert distribution_of("laplace") == "laplace"


@pytest.mark.usefixtures("without_plots")
def test_a_map_of_other_data_is_said_by_the_report_and_the_log(model, bag, tmp_path, caplog):
    """A map fitted to narrow rooms: the bag's depths and raw sigmas are outside of its data."""
    fitted = FittedData(("rooms",), 9, 9000, (0.1, 0.2), (1e-9,) * 7, None)
    set_calibration(model, "mc_dropout", MAP, {"fitted_to": fitted.to_mapping()})
    arguments = ["evaluate", str(bag), "--model", str(model), "--samples", "2", "--device", "cpu"]
    output = tmp_path / "report"
    assert main([*arguments, "--output", str(output)]) == 0
    summary = json.loads((output / "summary.json").read_text())
    for notes, topic in (
        (summary["notes"], "of the raw sigmas are outside"),
        (summary["verdict"]["notes"], "of the ground truth lies outside 0.1 to 0.2 m"),
    ):
        (unlike,) = (note for note in notes if "(isotonic 50%) was fitted to, rooms" in note)
        assert topic in unlike
    topic = "of the raw sigmas are outside"
    assert len([message for message in caplog.messages if topic in message]) == 1
    raw_output = tmp_path / "raw"
    assert main([*arguments, "--no-calibrated", "--output", str(raw_output)]) == 0
    raw = json.loads((raw_output / "summary.json").read_text())
    assert raw["notes"] == []
    assert not [note for note in raw["verdict"]["notes"] if "was fitted to" in note]


def test_half_of_nyu_calibrates_the_other_half():
    """Sigma is a tenth of the depth, depth the split's mean: the map must cover unseen frames."""
    data = os.environ.get("UNCERTAINTY_DEPTH_DATA")
    if not data:
        pytest.skip("UNCERTAINTY_DEPTH_DATA is not set")
    from uncertainty_depth.frames.nyu import NyuSource

    class Guess(DrawnPredictor):
        def predict(self, image, stamp_ns, camera=None):
            height, width = image.shape[:2]
            depth = np.linspace(4.0, 2.0, height, dtype=np.float32)[:, None].repeat(width, axis=1)
            return DepthPrediction(depth, depth / 10)

    made = calibrate(
        [NyuSource(Path(data) / "nyuv2", "test")],
        Guess(),
        CalibrationConfig(max_frames=120),
        False,
    )
    before, after = made.scores()
    assert after["auce"] < before["auce"] / 3
    assert after["nll"] < before["nll"]


def test_sample_names_say_which_block():
    assert [
        block.name for block in Sample("bag", (np.ones((3, 1), np.float32),) * 2).blocks(2)
    ] == ["bag, block 1 of 2", "bag, block 2 of 2"]


def test_a_map_that_leaves_no_spread_is_said(caplog):
    run._warn_if_constant(np.array([1.0, 1.3, 0.8]))
    assert not caplog.messages
    run._warn_if_constant(np.array([1.0, 1.01, 0.99]))
    assert "varies by only 0.8 %" in caplog.text
