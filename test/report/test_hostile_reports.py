# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A stranger's report is read, or refused in one sentence, whatever it claims to hold."""

import io
import json
import shutil
import tracemalloc
import zipfile

import numpy as np
import pytest

from test.report.conftest import evaluated, evaluation_of, saved
from uncertainty_depth.cli.main import main
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.core.strict import limits_of
from uncertainty_depth.report import report
from uncertainty_depth.report.model_facts import median_depth_of
from uncertainty_depth.report.page import Images, render
from uncertainty_depth.report.saved_state import read_report

MAX_PEAK = 100e6
"""Bytes that reading an eight-frame report may take, whatever it claims."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports") / "whole"
    return saved(evaluation_of(frames=8), folder).folder


@pytest.fixture
def damaged(whole, tmp_path):
    """Returns a function that damages a copy's file, or removes it."""

    def make(file, damage):
        folder = shutil.copytree(whole, tmp_path / "report")
        content = (folder / file).read_bytes()
        (folder / file).unlink()
        if damage is not None:
            (folder / file).write_bytes(damage(content))
        return folder

    return make


def summary_with(**changes):
    """Damage: other values in summary.json; None removes one."""

    def damage(content):
        summary = {**json.loads(content), **changes}
        return json.dumps({k: v for k, v in summary.items() if v is not None}).encode()

    return damage


def state_with(**members):
    """Damage: other members in state.npz, with these bytes."""

    def damage(content):
        made = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w", 8) as new:
            for name in {*old.namelist(), *members}:
                data = members[name] if name in members else old.read(name)
                new.writestr(name, data if isinstance(data, bytes) else data(old.read(name)))
        return made.getvalue()

    return damage


def header_with(**changes):
    """Damage: other values in the state's header."""

    def damage(data):
        header = {**json.loads(np.load(io.BytesIO(data)).tobytes()), **changes}
        return npy(np.frombuffer(json.dumps(header).encode(), np.uint8))

    return state_with(**{"header.npy": damage})


def exponent_with(value):
    """Damage: another value in place of the blocks' exponent."""

    def damage(data):
        table = np.load(io.BytesIO(data))
        table["ratio_exponent"] = value
        return npy(table)

    return state_with(**{"blocks.npy": damage})


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def npy_claiming(dtype, shape, data=b""):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return file.getvalue() + data


def cut(share):
    return lambda content: content[: int(len(content) * share)]


STATE = "state.npz"
SUMMARY = "summary.json"
FAULTS = [
    # file, damage, part of the sentence
    (SUMMARY, None, "holds no report"),
    (SUMMARY, cut(0.5), "holds no report"),
    (SUMMARY, lambda _: b"[" * 3000, "is JSON of more than 32 levels"),
    (SUMMARY, lambda _: b'{"a":' * 3000, "is JSON of more than 32 levels"),
    (SUMMARY, lambda _: b" " * (2**24 + 1), "expected at most 16777216"),
    (SUMMARY, lambda _: b"[]", "has []; expected a dict"),
    (SUMMARY, lambda _: b'{"a": NaN}', "JSON has NaN"),
    (SUMMARY, summary_with(verdict=None), "has verdict = None; expected a dict"),
    (SUMMARY, summary_with(verdict="green"), "has verdict = 'green'; expected a dict"),
    (SUMMARY, summary_with(verdict={"color": 5}), "verdict.color = 5; expected a str"),
    (
        SUMMARY,
        summary_with(verdict={"color": "red", "text": "", "numbers": ""}),
        "verdict.lines = None",
    ),
    (
        SUMMARY,
        summary_with(verdict={"color": 'x"><script>', "text": "", "numbers": "", "lines": []}),
        "expected a color",
    ),
    (SUMMARY, summary_with(source=["x"] * 10**5), "has source = ['x', "),
    (SUMMARY, summary_with(notes=[1]), "has notes = 1; expected a str"),
    (SUMMARY, summary_with(model=None), "has model = None; expected a dict"),
    (SUMMARY, summary_with(frames={"evaluated": "8"}), "frames.evaluated = '8'; expected"),
    (STATE, None, "not a complete state"),
    *((STATE, cut(share), "not a complete state") for share in (0.0, 0.1, 0.5, 0.9, 0.999)),
    (STATE, header_with(format=10**6), "format"),
    (STATE, header_with(evaluated="many"), "not a complete state"),
    (STATE, header_with(evaluated=10**400), "not a complete state"),
    (STATE, header_with(skipped=[1]), "not a complete state"),
    (STATE, header_with(cameras={"aspect": "wide"}), "not a complete state"),
    (STATE, header_with(details=5), "has details = 5; expected a dict"),
    (STATE, header_with(details={"options": {}, "trained_on": 1}), "details.trained_on = 1"),
    (
        STATE,
        header_with(details={"options": {}, "trained_on": [{"source": "a", "certain": 1}]}),
        "details.trained_on.certain = 1; expected a bool",
    ),
    (STATE, state_with(**{"header.npy": npy(np.frombuffer(b"[" * 9999, np.uint8))}), "32 levels"),
    (
        STATE,
        state_with(**{"header.npy": npy_claiming("|u1", (2**40,))}),
        "expected uint8 of shape",
    ),
    (STATE, state_with(**{"header.npy": npy(np.array([object()]))}), "expected uint8 of shape"),
    (STATE, state_with(**{"frame_keys.npy": npy_claiming("<u8", (2**40,))}), "expected uint64"),
    (STATE, state_with(**{"frame_keys.npy": npy(np.zeros(3))}), "expected uint64 of shape"),
    (STATE, state_with(**{"frame_keys.npy": b"\x93NUMPY\x01\x00\xff\xff{"}), "not a complete"),
    (STATE, state_with(**{"frame_keys.npy": bytes(10**8)}), "not a complete state"),
    *(
        (STATE, exponent_with(value), "expected one whole number")
        for value in (1e300, np.nan, np.inf, 0.5, np.arange(8))
    ),
]
FRAME_FAULTS = [
    (None, "does not hold the sums of the frames"),
    (cut(0.5), "does not hold the sums of the frames"),
    (lambda content: content.replace(b"stamp_ns", b"stamp"), "does not hold the sums"),
    (lambda content: content.replace(b'"stamp_ns": 0', b'"stamp_ns": x'), "is not JSON"),
    (lambda content: content[:99] + bytes(len(content) - 99), "does not hold the sums"),
    (lambda content: b"9" * len(content), "does not hold the sums of the frames"),
    (lambda content: b"\xff" * len(content), "does not hold the sums of the frames"),
]


@pytest.mark.parametrize(("file", "damage", "sentence"), FAULTS)
def test_a_damaged_report_is_refused_in_one_sentence(damaged, file, damage, sentence):
    folder = damaged(file, damage)
    tracemalloc.start()
    try:
        with pytest.raises(SourceError) as caught:
            read_report(folder)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 800
    assert peak < MAX_PEAK


@pytest.mark.parametrize(("damage", "sentence"), FRAME_FAULTS)
def test_damaged_frames_end_compare_and_merge_in_one_sentence(
    whole, damaged, tmp_path, capsys, damage, sentence
):
    folder = damaged("frames.sums", damage)
    for command in ("compare", "merge"):
        reports = [str(whole), str(folder)] if command == "compare" else [str(folder)]
        assert main([command, *reports, "--output", str(tmp_path / command)]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("uncertainty-depth: ")
        assert sentence in line


def test_what_the_layout_does_not_name_is_not_read(damaged):
    """300 MB of zeros are 300 kB in the file."""
    bomb = npy_claiming("|u1", (3 * 10**8,), bytes(3 * 10**8))
    folder = damaged(STATE, state_with(**{"surplus.npy": bomb}))
    del bomb
    tracemalloc.start()
    try:
        assert read_report(folder).evaluation.evaluated == 8
        assert tracemalloc.get_traced_memory()[1] < MAX_PEAK
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("value", [3, "ab", [1], [1, "b"], [2, 1], [0, 1], [1, float("inf")]])
def test_what_is_no_pair_of_limits_is_none(value):
    assert limits_of(value) is None


@pytest.mark.parametrize("value", [None, [], [[1.0] * 20] * 15, "median", [["x"] * 20] * 16])
def test_what_is_no_median_depth_is_none(value):
    assert median_depth_of({"training": {"median_depth_m": value}}) is None


@pytest.mark.parametrize(
    "model",
    [
        {"head": [], "depth_range": "far", "training": "x"},
        {"training": {"camera": 3, "source": {"a": 1}, "median_depth_m": {}}},
        {"training": {"camera": {"aspect": ["a", "b"], "focal_length_per_width": None}}},
        {"model": None, "method": 7, "calibration": "x" * 1000},
        {"training": {"median_depth_m": [[None] * 20] * 16, "camera": {"aspect": [2, 1]}}},
    ],
)
def test_invalid_description_gives_a_grey_domain_and_a_report(model):
    context = report.Context("live", model)
    summary = report.summarize(evaluated(frames=3), context)
    assert summary["verdict"]["lines"][-1]["color"] == "grey"
    assert render(summary, "", Images({})).startswith("<!doctype html>")
