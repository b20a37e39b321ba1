# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What is no depth is none for every reader, whatever the file, the message or the type."""

import cv2
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from test.frames.messages.conftest import compressed_message, encoded, image_message
from uncertainty_depth.core.config.source import PredictionConfig, SourceConfig
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.frames.messages.images import as_ground_truth, decode_depth, decode_maps
from uncertainty_depth.sigma.recorded.interpreter import Interpreter
from uncertainty_depth.stream.opening import open_source

METRES = np.tile(np.linspace(1, 4, 16, dtype=np.float32), (12, 1))
HOLES = {"i": (0, -1, 65535), "u": (0, 65535), "f": (0.0, -1.0, 65535.0, 65.535, np.nan, -np.inf)}
"""By kind of number: what drivers and data sets write where they know no depth."""


def with_holes(dtype: str, per_metre: float = 1000) -> np.ndarray:
    """A map as a driver stores it, and in its first row every kind of hole."""
    kind = np.dtype(dtype).kind
    values = METRES if kind == "f" else np.rint(METRES * per_metre)
    values = values.astype(dtype)
    limits = np.iinfo(dtype) if kind != "f" else None
    holes = [hole for hole in HOLES[kind] if limits is None or limits.min <= hole <= limits.max]
    values[0, : len(holes)] = holes
    values[0, len(holes)] = values[0, 0]
    return values


def is_hole(values: np.ndarray) -> np.ndarray:
    """The naive rule, number by number."""
    known = [
        [number > 0 and number != 65535 and abs(number - 65.535) > 1e-5 for number in row]
        for row in values.tolist()
    ]
    return ~np.array(known)


def check(depth_m: np.ndarray, values: np.ndarray, atol: float = 1e-6) -> None:
    expected = is_hole(values)
    assert 3 <= expected.sum() <= 7
    assert_array_equal(np.isnan(depth_m), expected)
    assert_allclose(depth_m[~expected], METRES[~expected], atol=6e-4 + atol)


MESSAGES = {
    "32FC1": (lambda values: image_message(values, "32FC1"), "f4"),
    "16UC1": (lambda values: image_message(values, "16UC1"), "u2"),
    "32FC1, big-endian, padded": (lambda values: image_message(values, "32FC1", 12, True), "f4"),
    "16UC1, big-endian, padded": (lambda values: image_message(values, "16UC1", 3, True), "u2"),
    "mono16": (lambda values: image_message(values, "mono16"), "u2"),
    "png": (lambda values: compressed_message("16UC1; png compressed ", encoded(values)), "u2"),
    "compressedDepth": (
        lambda values: compressed_message(
            "16UC1; compressedDepth png", bytes(12) + encoded(values)
        ),
        "u2",
    ),
}


@pytest.mark.parametrize(("message_of", "dtype"), MESSAGES.values(), ids=MESSAGES.keys())
def test_a_hole_in_a_message_is_no_prediction_and_no_ground_truth(message_of, dtype):
    values = with_holes(dtype)
    message = message_of(values)
    depth_m, _ = decode_maps(message, None, PredictionConfig())
    check(depth_m, values)
    check(as_ground_truth(decode_depth(message), METRES.shape), values)


def test_infinity_is_beyond_the_range_and_no_hole_but_no_ground_truth():
    values = METRES.copy()
    values[0, 0] = np.inf
    message = image_message(values, "32FC1")
    assert decode_maps(message, None, PredictionConfig())[0][0, 0] == np.inf
    assert np.isnan(as_ground_truth(decode_depth(message), METRES.shape)[0, 0])


def write(path, values):
    if path.suffix == ".npy":
        np.save(path, values)
    else:
        cv2.imwrite(str(path), values)


def folder_of(folder, suffix, **maps):
    for name, values in maps.items():
        (folder / name).mkdir()
        write(folder / name / f"000{suffix}", values)
    return f"predictions:{folder}"


FILES = [
    (".png", "u2"),
    (".tiff", "u2"),
    (".tiff", "f4"),
    (".tiff", "f8"),
    *((".npy", dtype) for dtype in ("u2", "i4", "u4", "i8", "f4", "f8")),
]


@pytest.mark.parametrize(("suffix", "dtype"), FILES)
def test_a_hole_in_a_file_is_no_prediction_and_no_ground_truth(suffix, dtype, tmp_path):
    values = with_holes(dtype)
    notation = folder_of(tmp_path, suffix, depth=values, ground_truth=values)
    (frame,) = open_source(notation, SourceConfig())
    check(frame.recorded.depth, values, 2e-3)
    check(frame.ground_truth_m, values, 2e-3)


def test_whole_numbers_of_another_unit_are_brought_to_metres(tmp_path):
    values = with_holes("i4", 10_000)
    notation = folder_of(tmp_path, ".npy", depth=values, ground_truth=values)
    (frame,) = open_source(f"{notation},per_metre=10000", SourceConfig())
    check(frame.recorded.depth, values)


def test_a_hole_in_an_rgbd_folder_is_no_ground_truth(tmp_path):
    values = with_holes("u2")
    colours = np.zeros((*METRES.shape, 3), np.uint8)
    for name, pixels in (("rgb", colours), ("depth", values)):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "0.png", pixels)
    source = open_source(f"rgbd:{tmp_path}", SourceConfig())
    (frame,) = source
    check(frame.ground_truth_m, values)
    share = f"{is_hole(values).mean():.1%} of the depth images' pixels hold no depth"
    assert [note for note in source.notes if note.startswith(share)]


@pytest.mark.parametrize("suffix", [".tiff", ".npy"])
def test_inverse_depth_of_0_or_below_is_none_and_its_largest_number_is_the_nearest(
    suffix, tmp_path
):
    """MiDaS and its kin stretch inverse depth over 16 bits: 65535 is what is nearest."""
    inverse = (1 / METRES).astype(np.float32)
    inverse[0, :5] = 0, -1, np.nan, np.inf, 65535
    stretched = np.rint(65535 / METRES).astype(np.uint16)
    stretched[0, :2] = 0, 65535
    for name, values in (("floats", inverse), ("stretched", stretched)):
        (tmp_path / name).mkdir()
        maps = {"depth": values, "ground_truth": METRES}
        notation = folder_of(tmp_path / name, suffix, **maps)
        meaning = PredictionConfig(depth_type="inverse_depth")
        (frame,) = open_source(notation, SourceConfig(), meaning=meaning)
        known = (values > 0) & np.isfinite(values)
        assert_array_equal(np.isnan(frame.recorded.depth), ~known)
        assert_array_equal(frame.recorded.depth[known], values[known].astype(np.float32))


def test_a_sigma_of_0_is_a_claim_and_a_rank_of_0_a_rank():
    values = with_holes("f4")
    values[0, 1] = 0.1
    sigma = np.zeros_like(METRES)
    for name in ("sigma", "uncertainty_rank"):
        meaning = PredictionConfig(confidence_type=name)
        _, confidence = decode_maps(
            image_message(values, "32FC1"), image_message(sigma, "32FC1"), meaning
        )
        assert_array_equal(confidence, sigma)


def test_a_sigma_of_the_largest_number_of_16_bits_is_none():
    sigma = np.full_like(METRES, 0.1)
    sigma[0, :2] = 65535, 65.535
    meaning = PredictionConfig(confidence_type="sigma")
    _, confidence = decode_maps(
        image_message(METRES, "32FC1"), image_message(sigma, "32FC1"), meaning
    )
    assert_array_equal(np.isnan(confidence), sigma > 1)


def test_how_much_of_the_depth_is_none_or_infinite_is_a_note(tmp_path):
    values = METRES.copy()
    values[0, :4] = 0, np.nan, np.inf, 65.535
    notation = folder_of(tmp_path, ".npy", depth=values, ground_truth=METRES)
    (frame,) = open_source(notation, SourceConfig())
    interpreter = Interpreter(PredictionConfig(confidence_type="none"))
    interpreter.predict(frame)
    (note,) = interpreter.notes()
    assert note.startswith(f"{4 / METRES.size:.1%} of the recorded pixels hold no depth")


@pytest.mark.parametrize("suffix", [".png", ".tiff", ".npy"])
@pytest.mark.parametrize("name", ["depth", "ground_truth", "confidence"])
def test_a_map_of_8_bits_has_no_unit_and_is_refused(name, suffix, tmp_path):
    maps = {"depth": METRES, "ground_truth": METRES, "confidence": METRES / 10}
    maps = {key: np.rint(values * 1000).astype(np.uint16) for key, values in maps.items()}
    maps[name] = np.rint(METRES * 50).astype(np.uint8)
    (record,) = open_source(folder_of(tmp_path, suffix, **maps), SourceConfig())
    assert isinstance(record, Skipped)
    assert record.reason == "depth_undecodable"
    assert "8 bits" in record.message
    assert "expected 16 bits" in record.message


def test_a_picture_of_8_bits_may_hold_inverse_depth_or_a_rank(tmp_path):
    picture = np.rint(255 / METRES).astype(np.uint8)
    maps = {"depth": picture, "confidence": picture, "ground_truth": METRES}
    notation = folder_of(tmp_path, ".npy", **maps)
    meaning = PredictionConfig(depth_type="inverse_depth", confidence_type="uncertainty_rank")
    (frame,) = open_source(notation, SourceConfig(), meaning=meaning)
    assert isinstance(frame, Frame)
    assert_array_equal(frame.recorded.depth, picture)


def test_an_npy_that_claims_more_than_it_has_or_than_may_be_is_refused(tmp_path):
    maps = {"depth": METRES, "ground_truth": METRES}
    notation = folder_of(tmp_path, ".npy", **maps)
    path = tmp_path / "depth" / "000.npy"
    data = path.read_bytes()
    for claim, sentence in (
        (b"(90000, 90000)", "cannot be read"),
        (b"(12, 'a')", "cannot be"),
        (b"[[[[[", "cannot be read"),
    ):
        path.write_bytes(data.replace(b"(12, 16), }".ljust(len(claim) + 3), claim + b", }"))
        (record,) = open_source(notation, SourceConfig())
        assert record.reason == "depth_undecodable"
        assert sentence in record.message
    np.lib.format.open_memmap(path, "w+", np.float32, (5000, 5000)).flush()  # sparse on disk
    (record,) = open_source(notation, SourceConfig())
    assert record.reason == "image_too_large"
