# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The `calibrate` command: what it says of its sources."""

from __future__ import annotations

import shutil
from pathlib import Path

import uncertainty_depth
from uncertainty_depth.cli.main import main

DEMO = Path(uncertainty_depth.__file__).parent / "models" / "demo"


def test_what_calibrate_says_at_the_end_is_what_it_did(tmp_path, capsys):
    """In rooms like its training's no map beats the demo's raw sigma, which stays."""
    model = shutil.copytree(DEMO, tmp_path / "model")
    rooms = "synthetic:worlds=8,frames=2,rate=0.25,seed=30000,dense=true,width=160,height=120"
    assert main(["calibrate", str(model), rooms, "--samples", "4", "--device", "cpu"]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    assert last == f"sigma of mc_dropout stays raw; its scores are kept in {model}"


def test_calibrate_warns_of_a_wrong_geometry(tmp_path, capfd):
    bag = tmp_path / "bag"
    assert main(["convert", "synthetic:worlds=1,frames=12,width=160,height=120", str(bag)]) == 0
    too_far = ["--lidar-to-camera", "0", "0", "25", "0.5", "-0.5", "0.5", "0.5"]
    options = ["--dry-run", "--samples", "2", *too_far]
    main(["calibrate", "demo", str(bag), *options])
    warning = "lidar_to_camera puts the LiDAR 25 m from the camera"
    assert warning in capfd.readouterr().err
