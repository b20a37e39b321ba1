# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The `calibrate` command: what it says of its sources."""

from uncertainty_depth.cli.main import main


def test_calibrate_warns_of_a_wrong_geometry(tmp_path, capfd):
    bag = tmp_path / "bag"
    assert main(["convert", "synthetic:worlds=1,frames=12,width=160,height=120", str(bag)]) == 0
    too_far = ["--lidar-to-camera", "0", "0", "25", "0.5", "-0.5", "0.5", "0.5"]
    options = ["--dry-run", "--samples", "2", *too_far]
    main(["calibrate", "demo", str(bag), *options])
    warning = "lidar_to_camera puts the LiDAR 25 m from the camera"
    assert warning in capfd.readouterr().err
