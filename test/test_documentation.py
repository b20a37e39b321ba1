"""What the documentation shows in Python runs."""

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import uncertainty_depth

ROOT = Path(__file__).parents[1]
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SOURCE = "synthetic:worlds=1,frames=2,width=64,height=48"
ROOMS = ("metrics", "core.geometry", "sigma.calibration", "report", "frames.messages", "depth")


@pytest.mark.parametrize("page", ["README.md", "docs/api/index.md", "docs/your_network.md"])
def test_examples_run(page, monkeypatch, tmp_path, plots_without_pixels):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = PYTHON.findall(text)
    assert blocks
    rng = np.random.default_rng(0)
    names = {
        "image": rng.integers(0, 255, (48, 64, 3), np.uint8),
        "ground_truth_m": rng.uniform(1, 5, (48, 64)).astype(np.float32),
    }
    for block in blocks:
        exec(block.replace('"my_bag"', repr(SOURCE)), names)
    assert (tmp_path / "my_report" / "report.html").exists() == (
        "my_report" in text and page != "README.md"
    )
    assert names["prediction"].sigma_m.shape == (48, 64)


@pytest.mark.parametrize("address", ["", "https://example.org/repository"])
def test_the_wheels_description_leads_nowhere_that_an_index_has_not(address):
    described = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "--long-description"],
        cwd=ROOT,
        env=os.environ | {"REPOSITORY_URL": address},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    links = re.findall(r"(!?)\[[^]]*\]\(([^)]*)\)", described)
    assert all(link.startswith(("https://", "#")) for _, link in links), links
    own = [bang for bang, link in links if address and link.startswith(address)]
    assert own.count("!") == (2 if address else 0), "the pictures"
    assert "Camera image, depth, sigma" in described or not address
    assert "grey was" not in described or address, "the caption of a picture that is left out"
    assert described.count("\n") > 80


def test_docstring_examples_run():
    tried = 0
    for room in ROOMS:
        package = importlib.import_module(f"uncertainty_depth.{room}")
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            results = doctest.testmod(importlib.import_module(found.name))
            assert not results.failed, found.name
            tried += results.attempted
    assert tried, "no docstring has an example"


def test_the_front_door_names_what_it_opens():
    assert set(dir(uncertainty_depth)) == {"__version__", *uncertainty_depth.__all__}
    for name in uncertainty_depth.__all__:
        assert getattr(uncertainty_depth, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = uncertainty_depth.nothing
