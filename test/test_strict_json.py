from __future__ import annotations

import json

import numpy as np

from uncertainty_depth import strict_json


def test_json_is_strict(tmp_path):
    strict_json.write(
        tmp_path / "x.json",
        {"a": np.float32(0.5), "b": np.inf, "c": np.arange(2), 3: (True, None)},
    )
    assert json.loads((tmp_path / "x.json").read_text()) == {
        "a": 0.5,
        "b": None,
        "c": [0, 1],
        "3": [True, None],
    }
