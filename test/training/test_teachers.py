# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Networks that learn from networks: distilling a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from uncertainty_depth.errors import ConfigError
from uncertainty_depth.model_folder import folder as model_folder
from uncertainty_depth.training.objective import (
    prediction_of,
)
from uncertainty_depth.training.run import train


def test_a_network_is_taught_an_ensemble_s_mean_and_total_sigma(
    small, make, tmp_path: Path
) -> None:
    teacher = make(
        (small[0], replace(small[1], head="laplace"), small[2]),
        tmp_path / "teacher",
        "multi_inits",
    )
    source, network, training = small
    folder = train(source, tmp_path / "model", network, replace(training, distill=str(teacher)))
    assert model_folder.read(folder).method == "distilled"
    image = torch.rand(1, 3, 32, 32)
    targets = prediction_of(teacher, folder, torch.device("cpu"))(
        image.repeat(2, 1, 1, 1), torch.zeros(2, 1, 32, 32)
    )
    with torch.no_grad():
        outputs = [
            member(image)
            for member in map(model_folder.read(teacher).load, model_folder.read(teacher).members)
        ]
    depths = torch.cat([output.depth_m for output in outputs])
    variance = depths.var(0, correction=0) + torch.cat(
        [2 * output.scale_m.square() for output in outputs]
    ).mean(0)
    torch.testing.assert_close(targets[1, 0], depths.mean(0)[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(targets[1, 1], variance.sqrt()[0], rtol=1e-3, atol=1e-5)


def test_what_cannot_be_distilled_is_refused(small, make, tmp_path: Path) -> None:
    teacher = str(make(small, tmp_path / "teacher", "deterministic"))
    network = replace(small[1], input_size=(64, 32))
    with pytest.raises(ConfigError, match="input_size is"):
        train(small[0], tmp_path / "model", network, replace(small[2], distill=teacher))
