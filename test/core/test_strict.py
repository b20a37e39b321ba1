# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""JSON of unknown origin is read within limits, or refused with one exception."""

import json
import math
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncertainty_depth.core import strict
from uncertainty_depth.core.strict import FormatError

VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
    | st.integers(-(10**300), 10**300),
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts),
    max_leaves=20,
)  # fmt: skip


def test_json_is_strict(tmp_path):
    strict.write_json(
        tmp_path / "x.json",
        {"a": np.float32(0.5), "b": np.inf, "c": np.arange(2), 3: (True, None)},
    )
    assert json.loads((tmp_path / "x.json").read_text()) == {
        "a": 0.5,
        "b": None,
        "c": [0, 1],
        "3": [True, None],
    }


@given(VALUES)
def test_what_json_writes_is_read_back(value):
    assert strict.read_json(json.dumps(value), 10**6, 100) == value
    assert strict.read_json(json.dumps(value).encode(), 10**6, 100) == value


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{" * 10, "more than 4 levels"),
        ('{"a": [[[["]]]]"]]]]}', "more than 4 levels"),
        ("[" * 100_000, "more than 4 levels"),
        ("9" * 5000, "9{40}; expected one that fits a float"),
        ("[-" + "9" * 310 + "]", "expected one that fits a float"),
        ("1e400", "1e400; expected one that fits a float"),
        ("[NaN]", "NaN; expected a finite number"),
        ("-Infinity", "-Infinity; expected a finite number"),
        ("", "is not JSON"),
        ('"\\', "is not JSON"),
        ('{"a": 1', "is not JSON"),
        (b"\xff", "not UTF-8"),
        ("[1," + "1," * 1_000_000, "2000003 bytes; expected at most 200000"),
    ],
    ids=range(13),
)
def test_what_is_beyond_the_limits_is_one_exception(text, sentence):
    with pytest.raises(FormatError, match=sentence):
        strict.read_json(text, 200_000, 4)


def test_every_string_can_be_written_to_a_file():
    assert strict.read_json(r'{"a\udc80": ["\ud800"]}', 100) == {"a?": ["?"]}
    assert strict.read_json(r'"\ud83d\ude00"', 100) == "😀"


def test_a_file_is_read_no_further_than_its_limit(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"a": [1, 2]}' + " " * 100)
    assert strict.read_json_file(path, 113) == {"a": [1, 2]}
    with pytest.raises(FormatError, match="JSON of 101 bytes; expected at most 100"):
        strict.read_json_file(path, 100)


def test_nan_is_read_only_if_asked_for():
    with pytest.raises(FormatError, match="JSON has NaN"):
        strict.read_json("[NaN]", 100)
    assert math.isnan(strict.read_json("[NaN]", 100, allow_nan=True)[0])


@given(st.text(alphabet='[]{}",:\\ud8 10eE-+.NaInfty\n', max_size=60) | st.text())
def test_any_text_is_a_value_or_that_exception(text):
    with suppress(FormatError):
        strict.read_json(text, 1000, 8)
