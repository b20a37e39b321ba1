# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The notation of sources, and several that are read as one."""

import itertools

import cv2
import numpy as np
import pytest

from test.conftest import ListSource, evaluated, save_maps, wall
from test.frames.conftest import ENORMOUS
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.errors import ConfigError, SourceError
from uncertainty_depth.frames.protocol import NAME_SEPARATOR, JoinedSource
from uncertainty_depth.stream.opening import calibrated_on, open_source, trained_on

CONFIG = SourceConfig()


@pytest.mark.parametrize(
    ("notation", "part"),
    [
        *itertools.product(("nyu:{}:test", "rgbd:{}"), ("rgb", "depth")),
        *itertools.product(("predictions:{}",), ("depth", "confidence", "ground_truth")),
    ],
)
def test_an_image_of_a_folder_that_claims_too_many_pixels_is_counted(notation, part, tmp_path):
    for name in ("rgb", "depth", "confidence", "ground_truth"):
        (tmp_path / name).mkdir()
        suffix = "jpg" if notation.startswith("nyu") and name == "rgb" else "png"
        pixels = np.ones((240, 320), np.uint8 if name == "rgb" else np.uint16)
        cv2.imwrite(str(tmp_path / name / f"0000.{suffix}"), pixels)
    (tmp_path / "test.txt").write_text("0000\n")
    next((tmp_path / part).iterdir()).write_bytes(ENORMOUS)
    (skipped,) = open_source(notation.format(tmp_path), CONFIG)
    assert skipped.reason == "image_too_large"
    assert f"{tmp_path / part}" in skipped.message


def test_a_bag_whose_name_has_a_colon_is_a_bag(write_bag):
    assert len(open_source(str(write_bag("run:3")), CONFIG)) == 5


@pytest.mark.parametrize("notation", ["nowhere", "nuy:/nowhere", "json:/nowhere", "/nowhere"])
def test_an_error_for_a_missing_path_lists_the_other_notations(notation):
    with pytest.raises(
        SourceError,
        match=rf"^no such bag: {notation}; "
        r"expected a bag's path, nyu:DIR, kitti:DRIVE_DIR, rgbd:DIR, or MODULE:\.\.\. of a Python "
        r"module with open_source \(in a clone: synthetic:\)$",
    ):
        open_source(notation, CONFIG)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ("worlds", SourceError, "has 'worlds'; expected option=value"),
        ("worlds=many", ConfigError, "worlds is 'many'; expected int"),
        ("test_objects=maybe", ConfigError, "expected bool"),
        ("planets=3", ConfigError, "unknown option 'planets'"),
        ("worlds=0", ConfigError, "worlds is 0; expected at least 1"),
    ],
)
def test_wrong_options_of_the_synthetic_world_are_one_sentence(options, error, sentence):
    with pytest.raises(error, match=sentence):
        open_source(f"synthetic:{options}", CONFIG)


def test_a_python_module_in_front_of_the_colon_opens_a_source_of_its_own(tmp_path, monkeypatch):
    (tmp_path / "my_sources.py").write_text(
        "def open_source(rest, config):\n    return [rest, config.max_pixels]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert open_source("my_sources:a:b", CONFIG) == ["a:b", CONFIG.max_pixels]


MOVED = "a source of the same name"


@pytest.mark.parametrize(
    ("source", "trained", "found"),
    [
        ("bags/run", "bags/run", "frames of"),
        ("bags/run", "./bags/other/../run/", "frames of"),
        ("/a/run", "/b/run", MOVED),
        ("/a/run", "/a/walk", None),
        ("/a/run", "kitti:/a/run", None),
        ("run:3", "run:3", "frames of"),
        ("kitti:/a/drive_0001", "kitti:/a/drive_0001", "frames of"),
        ("kitti:/a/drive_0001", "kitti:/b/drive_0001", MOVED),
        ("kitti:/a/drive_0001", "kitti:/a/drive_0002", None),
        ("nyu:/a/nyu:test", "nyu:/a/nyu:train", None),
        ("nyu:/a/nyu:test", "nyu:/b/nyu:train", None),
        ("nyu:/a/nyu:calibrate", "nyu:/a/nyu:fit", None),
        ("nyu:/a/nyu:calibrate", "nyu:/a/nyu:train", "frames of"),
        ("nyu:/a/nyu:test", "nyu:/a/nyu", "frames of"),
        ("nyu:/a/nyu", "nyu:/a/nyu:train", "frames of"),
        ("nyu:/a/nyu:train", "nyu:/b/nyu:train", MOVED),
        (
            "synthetic:worlds=1,frames=2,seed=3",
            "synthetic:worlds=9,frames=9,seed=3,noise=0.5",
            "frames of",
        ),
        ("synthetic:worlds=1,seed=3", "synthetic:worlds=1,seed=4", None),
        ("synthetic:worlds=1,seed=3,test_objects=true", "synthetic:worlds=1,seed=3", None),
        ("rgbd:/a/drive,per_metre=5000", "rgbd:/a/drive,of_another_version=1", "frames of"),
        ("/a/run", "", None),
        ("/a/run", None, None),
    ],
)
def test_a_source_that_the_model_was_trained_on_is_recognised_by_its_name(source, trained, found):
    overlaps = trained_on("my_model", {"source": trained}, [source])
    assert len(overlaps) == (found is not None)
    for overlap in overlaps:
        assert str(overlap).startswith(f"my_model was trained on {found}")
        assert source in str(overlap)
        assert overlap.certain == (found == "frames of")


def test_a_certain_overlap_is_not_hidden_by_a_hint():
    training = {"source": "/old/run", "started_from": {"sources": ["/a/run"]}}
    (overlap,) = trained_on("my_model", training, ["/a/run"])
    assert overlap.certain


def test_a_source_that_sigma_was_calibrated_on_is_recognised_by_its_name():
    fitted_to = {"sources": ["/a/run", "nyu:/nyu:train"]}
    (overlap,) = calibrated_on(fitted_to, ["/a/run"])
    assert str(overlap) == (
        "sigma was calibrated on frames of /a/run: its size fits better there than on new frames"
    )
    assert len(calibrated_on(fitted_to, ["nyu:/nyu", "/b/run"])) == 2
    assert calibrated_on(fitted_to, ["nyu:/nyu:test", "/b/other"]) == []
    assert calibrated_on({}, ["/a/run"]) == []


@pytest.mark.parametrize("end", ["bag", "b\0g", "b" * 300])
def test_a_model_may_have_been_trained_on_any_place(tmp_path, end):
    (tmp_path / "loop").symlink_to("loop")
    place = f"{tmp_path}/loop/{end}"
    assert len(trained_on("my_model", {"source": place}, [place])) == 1
    assert trained_on("my_model", {"source": place}, ["other"]) == []
    (overlap,) = calibrated_on({"sources": [place]}, [f"elsewhere/{end}"])
    assert not overlap.certain
    assert "if they are one" in str(overlap)


def test_several_sources_are_read_as_one_in_their_order():
    first, second = ListSource([wall(0), wall(1)], "first"), ListSource([wall(2)], "second")
    second.notes = ("it is dark",)
    joined = JoinedSource([first, second])
    assert joined.name.split(NAME_SEPARATOR) == ["first", "second"]
    assert [record.name for record in joined] == ["0000", "0001", "0002"]
    assert len(joined) == 3
    assert joined.notes == ["second: it is dark"]


def test_frames_without_ground_truth_take_nobodys_place(tmp_path):
    """Of ten recorded frames the first and the sixth, which would be chosen, have none."""
    folder = tmp_path / "recorded"
    for index in range(10):
        depth = np.full((40, 50), 2.0 + index, np.float32)
        maps = {"depth": depth} if index in (0, 5) else {"depth": depth, "ground_truth": depth}
        save_maps(folder, str(index), **maps)
    (folder / "depth" / "9.npy").write_bytes(b"not read")
    report = tmp_path / "report"
    summary = evaluated(report, f"predictions:{folder}", "--max-frames", 2)
    assert summary["frames"]["evaluated"] == 2
    assert summary["frames"]["skipped"] == {"no_ground_truth": 2}, "frames left out are not read"
    names = [row.split(",")[0] for row in (report / "frames.csv").read_text().splitlines()[1:]]
    assert names == ["1", "6"]
