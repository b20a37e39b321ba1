from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from uncertainty_depth.report.evaluation import Evaluation

# Before torch is imported, and for every process that a test starts: the workers share the
# processors, and threads that wait for each other take time from all.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import numpy as np
import torch

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.records import DepthPrediction, Frame, Skipped

# A shell starts background jobs with SIGINT ignored, and children inherit it: Ctrl-C is tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine takes longer for an example, and is no fault.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")


class ListSource:
    """Records from memory; it counts how often it is read."""

    notes = ()

    def __init__(self, records: Iterable[Frame | Skipped], name: str = "list") -> None:
        self.records = list(records)
        self.name = name
        self.reads = 0

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Frame | Skipped]:
        self.reads += 1
        return iter(self.records)


def wall(index: int, known_share: float = 0.1) -> Frame:
    """A wall whose depth can be read off its brightness, and whose ground truth may be sparse."""
    rng = np.random.default_rng(index)
    depth = rng.uniform(1, 4) + np.linspace(0, rng.uniform(0.5, 2), 80)[None].repeat(60, axis=0)
    image = np.clip(255 * depth / 6 + rng.normal(0, 3, (60, 80)), 0, 255).astype(np.uint8)
    truth = np.where(rng.random((60, 80)) < known_share, depth, np.nan).astype(np.float32)
    rgb = image[..., None].repeat(3, axis=-1)
    return Frame(index * 10**8, f"{index:04d}", image=rgb, ground_truth_m=truth)


def scored(
    index: int, truth: np.ndarray, depth: np.ndarray, sigma: np.ndarray, **parts: object
) -> Frame:
    """Return a frame with ground truth and prediction, metres, and other parts."""
    made = DepthPrediction(depth, sigma)
    return Frame(index, str(index), ground_truth_m=truth, prediction=made, **parts)


@contextmanager
def refused(reason: str, sentence: str | None = None) -> Iterator[pytest.ExceptionInfo]:
    """Expect a MessageError of this reason, whose text matches."""
    with pytest.raises(MessageError, match=sentence) as caught:
        yield caught
    assert caught.value.reason == reason


def save_maps(folder: Path, name: str, **maps: np.ndarray) -> None:
    """Add one frame's maps to folders of recorded predictions."""
    for kind, values in maps.items():
        (folder / kind).mkdir(parents=True, exist_ok=True)
        np.save(folder / kind / f"{name}.npy", values)


def summary_of(folder: Path) -> dict[str, Any]:
    """Return the content of a report's summary.json."""
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))


def evaluated(folder: Path, *arguments: object) -> dict[str, Any]:
    """Run the command `evaluate`, and return its report's summary."""
    from uncertainty_depth.cli.main import main

    assert main(["evaluate", *map(str, arguments), "--output", str(folder)]) == 0
    return summary_of(folder)


def frame_lines(evaluation: Evaluation) -> list[str]:
    """Return the lines of frames.csv while the evaluation goes on."""
    rows = evaluation.table.saved().folder / "frames.csv"
    return rows.read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="session", autouse=True)
def files_are_not_synced() -> Iterator[None]:
    """Let no write wait for the disk: what a test reads again comes from memory anyway."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def make_model() -> Callable[..., Path]:
    """Write a small model of random weights, whose members differ in their seed.

    They may share their encoder.
    """
    from uncertainty_depth.core.config.training import NetworkConfig
    from uncertainty_depth.depth.model_folder.writing import create, set_members, write_member
    from uncertainty_depth.depth.networks.hourglass import Hourglass

    def make(
        folder: Path,
        method: str = "mc_dropout",
        members: tuple[str, ...] = ("m0", "m1"),
        training: dict[str, object] | None = None,
        shared: bool = False,
        **options: object,
    ) -> Path:
        small = {"backbone": "tiny", "decoder_width": 16, "input_size": (80, 64)}
        for seed, name in enumerate(members):
            torch.manual_seed(seed)
            network = Hourglass(NetworkConfig(**{**small, **options}))
            if seed == 0:
                first = network.encoder.state_dict()
            if shared:
                network.encoder.load_state_dict(first)
                network.freeze_encoder()
            if seed == 0:
                create(folder, network, training or {})
            write_member(folder, name, network)
        set_members(folder, list(members), method)
        return folder

    return make


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder of somebody's pictures."""
    folder = tmp_path / "photos"
    (folder / "sub").mkdir(parents=True)
    for name in ("a.png", "worst_0.jpg", "b.jpg", "sub/c.png"):
        (folder / name).write_text(name)
    return folder


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Run torch on one thread, then restore the number of threads.

    The results have the same bits everywhere, and tests that run in parallel have processors left.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session", autouse=True)
def quick_reports() -> Iterator[None]:
    """Leave out of reports what takes longer than what most tests are about.

    That is their plots, and how far 95 % coverage is from 95 % where that can be foreseen.
    """
    from uncertainty_depth.report import comparison, report
    from uncertainty_depth.report.page import Images

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "draw", lambda *_: Images({}))
        patch.setattr(report, "excess_risk", lambda *_: 0.0)
        patch.setattr(comparison, "encoded", lambda *_: b"\x89PNG")
        yield


@pytest.fixture(scope="session")
def drawing() -> Callable[[], AbstractContextManager[None]]:
    """Return a context in which reports and comparisons are written with their plots."""
    from uncertainty_depth.report import comparison, images, plots, report

    @contextmanager
    def draws() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(report, "draw", plots.draw)
            patch.setattr(comparison, "encoded", images.encoded)
            yield

    return draws


@pytest.fixture
def plots_without_pixels(
    drawing: Callable[[], AbstractContextManager[None]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Make a report's figures without drawing them; LiDAR on an image is still drawn."""
    from uncertainty_depth.report import plots

    monkeypatch.setattr(plots, "encoded", lambda *_: b"")
    with drawing():
        yield
