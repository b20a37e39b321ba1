# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Files of tensors against the format's own library, both ways."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save

from uncertainty_depth.depth.model_folder.files import DTYPES, TensorFile, TensorFileError, packed

SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)
KINDS = st.dictionaries(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=5).filter(
        lambda name: name != "__metadata__"
    ),
    st.tuples(st.sampled_from(sorted(DTYPES)), SHAPES),
    max_size=6,
)


def made(kinds):
    rng = np.random.default_rng(0)
    return {
        name: torch.from_numpy(np.array(rng.integers(0, 2, shape))).to(DTYPES[dtype])
        for name, (dtype, shape) in kinds.items()
    }


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


@given(kinds=KINDS)
def test_the_library_reads_what_is_written_and_the_other_way(kinds, tmp_path_factory):
    tensors = made(kinds)
    assert_equal(load(packed(tensors)), tensors)
    path = tmp_path_factory.mktemp("file") / "it.safetensors"
    path.write_bytes(save(tensors, {"words": "of its own"}))
    file = TensorFile.open(path)
    assert_equal(file.tensors(), tensors)
    assert file.metadata == {"words": "of its own"}


def test_metadata_are_the_librarys_too(tmp_path):
    path = tmp_path / "it.safetensors"
    path.write_bytes(packed({"a": torch.ones(2).t()}, {"history": "[]"}))
    with safe_open(path, "pt") as file:
        assert file.metadata() == {"history": "[]"}


GOOD = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}


@pytest.mark.parametrize(
    ("header", "content", "told"),
    [
        (GOOD, 7, "it has 7 bytes of tensors; its header says 8"),
        (GOOD, 9, "it has 9 bytes of tensors; its header says 8"),
        ({"a": {**GOOD["a"], "shape": [3]}}, 8, "has 8 bytes for shape"),
        ({"a": {**GOOD["a"], "data_offsets": [1, 9]}}, 9, "starts at 1, not at 0"),
        ({**GOOD, "b": GOOD["a"]}, 8, "starts at 0, not at 8"),
        ({"a": {**GOOD["a"], "shape": [-2]}}, 8, "its header says of a"),
        ({"a": {**GOOD["a"], "shape": [2.0]}}, 8, "its header says of a"),
        ({"a": {**GOOD["a"], "dtype": "F4"}}, 8, "its header says of a"),
        ({"a": 5}, 8, "its header says of a"),
        ([], 8, "no JSON object"),
    ],
)
def test_what_is_not_of_the_format_is_refused_as_the_library_does(tmp_path, header, content, told):
    text = json.dumps(header).encode()
    path = tmp_path / "it.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(content))
    with pytest.raises(SafetensorError):
        load(path.read_bytes())
    with pytest.raises(TensorFileError, match=told):
        TensorFile.open(path)


@pytest.mark.parametrize("content", [b"", b"\x01", b"\xff" * 9, b"\x05" + bytes(7) + b"{nope"])
def test_what_has_no_header_is_refused(tmp_path, content):
    path = tmp_path / "it.safetensors"
    path.write_bytes(content)
    with pytest.raises(TensorFileError, match="its header"):
        TensorFile.open(path)
