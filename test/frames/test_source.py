# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The notation of sources."""

from __future__ import annotations

import pytest

from uncertainty_depth.config import SourceConfig
from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.frames.source import calibrated_on, open_source, trained_on

CONFIG = SourceConfig()


def test_a_bag_whose_name_has_a_colon_is_a_bag(write_bag):
    assert len(open_source(str(write_bag("run:3")), CONFIG)) == 5


@pytest.mark.parametrize("notation", ["synthetic", "nuy:/nowhere", "/nowhere"])
def test_an_error_for_a_missing_path_lists_the_other_notations(notation):
    with pytest.raises(
        SourceError,
        match=rf"^no such bag: {notation}; "
        r"expected a bag's path, nyu:DIR, kitti:DRIVE_DIR, rgbd:DIR or synthetic:$",
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
        ("/a/run", "", None),
        ("/a/run", None, None),
    ],
)
def test_a_source_that_the_model_was_trained_on_is_recognised_by_its_name(source, trained, found):
    sentences = trained_on("my_model", {"source": trained}, [source])
    assert len(sentences) == (found is not None)
    assert all(f"my_model was trained on {found}" in one and source in one for one in sentences)


def test_a_source_that_sigma_was_calibrated_on_is_recognised_by_its_name():
    fitted_to = {"sources": ["/a/run", "nyu:/nyu:train"]}
    (sentence,) = calibrated_on(fitted_to, ["/a/run"])
    assert sentence == (
        "sigma was calibrated on frames of /a/run: its size fits better there than on new frames"
    )
    assert len(calibrated_on(fitted_to, ["nyu:/nyu", "/b/run"])) == 2
    assert calibrated_on(fitted_to, ["nyu:/nyu:test", "/b/other"]) == []
    assert calibrated_on({}, ["/a/run"]) == []
