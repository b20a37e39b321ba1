# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""`evaluate` without a model: a bag's or folders' depth and confidence, against the truth."""

import json
import re
import shutil

import cv2
import numpy as np
import pytest

from test.sigma.recorded.conftest import NAMES, TOPICS, run, scene
from uncertainty_depth.cli.main import main
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.metrics.metric import SigmaKind

FRAMES = 4


def millimetres(values):
    return np.round(values * 1000).astype(np.uint16)


CAMERAS = {
    "oak": (
        ("/oak/stereo/image_raw", "/oak/stereo/confidence"),
        lambda s: millimetres(s.depth),
        lambda s: (255 * (1 - s.texture)).astype(np.uint8),
        "uncertainty_rank",
    ),
    "realsense_d400": (
        ("/camera/camera/depth/image_rect_raw", ""),
        lambda s: millimetres(s.depth),
        None,
        "",
    ),
    "realsense_l515": (
        ("/camera/camera/depth/image_rect_raw", "/camera/camera/confidence/image_rect_raw"),
        lambda s: millimetres(s.depth),
        lambda s: (15 * s.texture).astype(np.uint8),
        "certainty_rank",
    ),
    "roboception_error": (
        ("/rc/stereo/depth", "/rc/stereo/error_depth"),
        lambda s: s.depth,
        lambda s: s.sigma,
        "sigma",
    ),
}


@pytest.mark.parametrize("camera", CAMERAS)
def test_every_camera_is_scored_with_its_topics_and_encodings(camera, write_camera):
    topics, depth, confidence, confidence_type = CAMERAS[camera]
    bag = write_camera(topics, depth, confidence, FRAMES)
    evaluation, stream = run(bag, topics, confidence_type=confidence_type)
    assert evaluation.frames() == {"read": FRAMES, "evaluated": FRAMES, "skipped": {}}
    summary = evaluation.summary()
    assert 0.01 < summary["depth"]["abs_rel"] < 0.1
    assert summary["scale"]["mean_factor"] == pytest.approx(1, abs=0.01)
    ranks = summary["uncertainty"]["spearman"]
    assert np.isnan(ranks) if not topics[1] else ranks > 0.2
    kinds = {"": SigmaKind.NONE, "sigma": SigmaKind.METRES}
    assert evaluation.sigma_kind is kinds.get(confidence_type, SigmaKind.RANK)
    has_size = confidence_type == "sigma"
    assert np.isnan(summary["uncertainty"]["auce"]) == (not has_size)
    if has_size:
        assert summary["uncertainty"]["auce"] < 0.02, "it is the true sigma"
    assert not stream.predicting.notes()
    assert not stream.predicting.doubts(evaluation.metrics.total())


@pytest.fixture(scope="module")
def bag(write_shared):
    return write_shared(TOPICS, frames=FRAMES)


def test_a_depth_image_can_be_the_ground_truth(write_camera):
    bag = write_camera(TOPICS, truth_image=True)
    config = SourceConfig(ground_truth_topic="/truth/image")
    evaluation, _ = run(bag, config=config)
    assert evaluation.evaluated == FRAMES
    assert evaluation.metrics.pixels == FRAMES * 48 * 64
    alone, _ = run(bag)  # it is the only depth image that is neither depth nor confidence
    assert alone.summary()["depth"] == evaluation.summary()["depth"]


def test_stamps_that_differ_are_counted_on_both_sides(write_camera):
    bag = write_camera(TOPICS, confidence_delay_ns=1_000_000)
    evaluation, _ = run(bag)
    assert evaluation.frames() == {
        "read": 2 * FRAMES,
        "evaluated": 0,
        "skipped": {"depth_without_uncertainty": FRAMES, "uncertainty_without_depth": FRAMES},
    }
    for here, there in (TOPICS, TOPICS[::-1]):
        (sentence,) = [text for text in evaluation.first_skips.values() if f"on {here} at" in text]
        assert f"no partner of the same stamp on {there}; expected" in sentence


def test_sizes_that_differ_are_counted(write_camera):
    bag = write_camera(TOPICS, confidence=lambda s: s.sigma[::2, ::2])
    evaluation, _ = run(bag)
    assert evaluation.frames()["skipped"] == {"uncertainty_wrong_size": FRAMES}
    assert "(32, 24) pixels" in evaluation.first_skips["uncertainty_wrong_size"]


def test_info_tells_how_to_read_the_depth_of_a_known_driver(write_camera, capsys):
    zed = ("/zed/zed_node/depth/depth_registered", "/zed/zed_node/confidence/confidence_map")
    bag = write_camera(zed)
    assert main(["info", str(bag)]) == 0
    told = capsys.readouterr().out
    options = f"--depth-topic {zed[0]} --confidence-topic {zed[1]}"
    assert f"evaluate {bag} {options} --confidence-type uncertainty_rank --output" in told
    assert "geometry of the first frames: median depth" in told


def test_sparse_ground_truth_is_not_aligned_to(write_camera):
    bag = write_camera(TOPICS, depth=lambda s: np.where(np.arange(64) < 1, s.depth, np.nan))
    evaluation, _ = run(bag, align="scale")
    assert evaluation.frames()["skipped"] == {"too_few_points_to_align": FRAMES}
    whole, _ = run(bag, align="scale", align_per="source")
    assert whole.evaluated == FRAMES, "all frames together have enough"


SCALES = (0.5, 0.6, 0.4, 0.5)


def scaled(scale_of_frame, form):
    """Depth at another scale in each frame."""
    count = iter(scale_of_frame)
    return lambda s: form(s) * next(count)


def test_each_frame_is_brought_to_scale_and_the_drift_is_told(write_camera):
    bag = write_camera(
        TOPICS, scaled(SCALES, lambda s: s.depth), scaled(SCALES, lambda s: s.sigma)
    )
    evaluation, stream = run(bag, align="scale")
    summary = evaluation.summary()
    assert summary["depth"]["abs_rel"] < 0.1
    assert summary["uncertainty"]["auce"] < 0.03, "sigma is scaled along"
    logs = np.log(SCALES)
    assert summary["scale"]["scale_deviation"] == pytest.approx(logs.std(), rel=0.05)
    (note,) = stream.predicting.notes()
    assert "each frame is aligned" in note
    whole, fitted = run(bag, align="scale", align_per="source")
    assert whole.summary()["scale"]["scale_deviation"] == pytest.approx(logs.std(), rel=0.05)
    assert whole.summary()["depth"]["abs_rel"] > 0.1
    assert "as a whole" in fitted.predicting.notes()[0]
    raw, _ = run(bag)
    assert raw.summary()["scale"]["mean_factor"] == pytest.approx(2, rel=0.1)


def test_a_relative_inverse_depth_is_brought_to_metres(write_camera):
    bag = write_camera(
        TOPICS,
        depth=lambda s: ((1 / s.depth - 0.02) * 700).astype(np.float32),
        confidence=lambda s: s.texture,
    )
    meaning = {"depth_type": "inverse_depth", "confidence_type": "confidence_0_1"}
    evaluation, _ = run(bag, align="scale_shift", **meaning)
    assert evaluation.evaluated == FRAMES
    assert evaluation.summary()["depth"]["abs_rel"] < 0.1
    failed, _ = run(bag, align="scale_shift", confidence_type="confidence_0_1")
    assert failed.frames()["skipped"] == {"alignment_failed": FRAMES}


def write_folder(folder, suffix, frames=3, leave_out=()):
    kinds = {"depth": "depth", "confidence": "sigma", "ground_truth": "truth"}
    for name, field in kinds.items():
        (folder / name).mkdir(parents=True)
        for index in range(frames):
            if (name, index) in leave_out:
                continue
            values = getattr(scene(index), field)
            path = folder / name / f"{index:03}{suffix}"
            if suffix == ".npy":
                np.save(path, values)
            else:
                cv2.imwrite(str(path), millimetres(values) if suffix == ".png" else values)
    return f"predictions:{folder}"


@pytest.mark.parametrize("suffix", [".png", ".tiff", ".npy"])
def test_folders_of_every_format_give_the_same_scores(suffix, tmp_path):
    notation = write_folder(tmp_path, suffix)
    evaluation, _ = run(notation, ("", ""))
    assert evaluation.frames() == {"read": 3, "evaluated": 3, "skipped": {}}
    summary = evaluation.summary()
    assert summary["uncertainty"]["auce"] < 0.02
    errors = []
    for now in map(scene, range(3)):
        errors.append(np.abs(now.depth - now.truth) / now.truth)
    assert summary["depth"]["abs_rel"] == pytest.approx(np.mean(errors), abs=2e-4)


def test_png_of_another_unit_and_files_that_lack_a_partner(tmp_path):
    leave_out = {("confidence", 0), ("ground_truth", 1), ("depth", 2)}
    notation = write_folder(tmp_path, ".png", 4, leave_out)
    (tmp_path / "depth" / "003.png").write_bytes(b"no image")
    evaluation, stream = run(f"{notation},per_metre=1000", ("", ""))
    assert evaluation.frames()["skipped"] == {
        "depth_without_uncertainty": 1,
        "no_ground_truth": 1,
        "uncertainty_without_depth": 1,
        "image_undecodable": 1,
    }
    assert len(stream) == 4


def command(bag, tmp_path, *options):
    return main(
        ["evaluate", str(bag), *options, "--output", str(tmp_path / "report")]
    ), tmp_path / "report" / "summary.json"


def test_the_command_needs_no_model_and_says_what_has_no_unit(bag, tmp_path, capsys):
    options = [*NAMES, "--confidence-type", "uncertainty_rank", "--align", "median"]
    code, summary = command(bag, tmp_path, *options)
    assert code == 0
    content = json.loads(summary.read_text())
    assert content["uncertainty"]["auce"] is None
    assert content["uncertainty"]["n_merci"] > 0
    assert content["model"]["confidence_type"] == "uncertainty_rank"
    assert content["config"]["depth_topic"] == TOPICS[0]
    printed = capsys.readouterr().out
    assert "has no AUCE" in printed
    assert "grey" in printed
    assert "no unit" in printed
    assert "as a Gaussian's" not in printed
    assert command(bag, tmp_path, *NAMES, "--overwrite")[0] == 0
    assert "sigma is judged as a Gaussian's: nothing says how" in capsys.readouterr().out


@pytest.mark.usefixtures("plots_without_pixels")
@pytest.mark.parametrize("options", [[], ["--confidence-topic", TOPICS[1]]])
def test_a_depth_without_confidence_is_judged_as_a_depth(bag, tmp_path, capsys, options):
    """No confidence is given, or the one that is given is told not to be read."""
    kind = ["--confidence-type", "none"] if options else []
    code, summary = command(bag, tmp_path, "--depth-topic", TOPICS[0], *options, *kind)
    assert code == 0
    content = json.loads(summary.read_text())
    assert content["sigma_kind"] == content["model"]["confidence_type"] == "none"
    assert content["config"]["confidence_topic"] == ""
    assert [line["name"] for line in content["verdict"]["lines"]] == ["depth"]
    printed = capsys.readouterr().out
    assert "scored: recorded, depth alone" in printed
    assert "switched on" not in printed


def test_a_folder_without_confidence_is_judged_as_a_depth(tmp_path):
    notation = write_folder(tmp_path, ".npy", FRAMES)
    shutil.rmtree(tmp_path / "confidence")
    evaluation, _ = run(notation, ("", ""))
    assert evaluation.evaluated == FRAMES
    assert evaluation.sigma_kind is SigmaKind.NONE


EVALUATE = "evaluate {bag} --output {tmp}/report"
BOTH = " ".join(["", *NAMES])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (f"{EVALUATE} --depth-topic /no/topic", f"depth_topic '/no/topic'.*{TOPICS[0]}"),
        (f"{EVALUATE} --confidence-topic {TOPICS[1]}", "expected --depth-topic"),
        (f"{EVALUATE} --depth-topic {TOPICS[0]} --model demo", "not both"),
        (EVALUATE, "--depth-topic"),
        (
            f"{EVALUATE} {BOTH} --confidence-type dust3r",
            r"cannot be dust3r \(at least 1\).*expected confidence_type",
        ),
        (
            f"{EVALUATE} --model demo --align median",
            "align is 'median', an option of recorded predictions, but --model is demo",
        ),
        (
            f"{EVALUATE} --depth-topic {TOPICS[0]} --write-bag {{tmp}}/new",
            "expected a bag with --depth-topic and --confidence-topic",
        ),
        (
            f"{EVALUATE} {BOTH} --confidence-type uncertainty_rank --write-bag {{tmp}}/new",
            "'uncertainty_rank' has no unit; expected --sigma-map",
        ),
        (
            f"{EVALUATE} --depth-topic {TOPICS[0]} --confidence-type uncertainty_rank",
            "confidence_type is 'uncertainty_rank', but .* without a confidence; expected",
        ),
        (
            f"{EVALUATE} --depth-topic {TOPICS[0]} --require auce<=0.05",
            "'auce<=0.05' is required of sigma, but the depth has no confidence",
        ),
        (
            f"{EVALUATE} --depth-topic {TOPICS[0]} --require by_distance.n_merci.2_3m<=1",
            "is required of sigma, but the depth has no confidence",
        ),
        (
            f"{EVALUATE} {BOTH} --confidence-type uncertainty_rank --require auce<=0.05",
            "'auce<=0.05' is required of sigma, but the confidence has no unit",
        ),
        ("calibrate {tmp} --depth-topic /a", "expected --output map.json"),
        ("calibrate {tmp} --depth-topic /a --output m.json --align median", "align none"),
        ("calibrate {tmp} --depth-topic /a --output .", "it is the current folder"),
        ("calibrate {tmp}", "expected MODEL SOURCE"),
    ],
)
def test_contradictory_options_are_refused_in_one_sentence(words, sentence, bag, tmp_path, capsys):
    assert main(words.format(bag=bag, tmp=tmp_path).split()) == 1
    lines = capsys.readouterr().err.splitlines()
    (line,) = [line for line in lines if "uncertainty-depth:" in line]
    assert re.search(sentence, line)
    assert not (tmp_path / "new").exists()
