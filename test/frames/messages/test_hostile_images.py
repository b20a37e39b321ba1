# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Images of unknown origin: each is decoded as its header says, or refused with a reason."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from uncertainty_depth.core.config.source import MAX_PIXELS
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.frames.image_files import read_pixels
from uncertainty_depth.frames.messages import compressed
from uncertainty_depth.frames.messages.compressed import JPEG_MAGIC, PNG_MAGIC, image_size
from uncertainty_depth.frames.messages.decoding import total
from uncertainty_depth.frames.messages.depth_images import (
    decode_depth,
    ground_truth_from_depth_image,
)
from uncertainty_depth.frames.messages.images import COLOR_ENCODINGS, decode_image

IMAGE = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
FORMATS = {
    "png": (".png", []),
    "jpeg": (".jpg", []),
    "progressive": (".jpg", [cv2.IMWRITE_JPEG_PROGRESSIVE, 1]),
    "restarts": (".jpg", [cv2.IMWRITE_JPEG_RST_INTERVAL, 2]),
}


def message(data: bytes, text: str = "jpeg") -> SimpleNamespace:
    return SimpleNamespace(format=text, data=data)


def encoded(name: str, image: np.ndarray = IMAGE) -> bytes:
    suffix, options = FORMATS[name]
    return cv2.imencode(suffix, image, options)[1].tobytes()


def png_chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


def png_claiming(width: int, height: int) -> bytes:
    """A PNG with a sound header of any size and nothing behind it."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return PNG_MAGIC + png_chunk(b"IHDR", header)


def jpeg_claiming(width: int, height: int) -> bytes:
    data = bytearray(encoded("jpeg"))
    position = data.index(b"\xff\xc0")
    data[position + 5 : position + 9] = struct.pack(">HH", height, width)
    return bytes(data)


@pytest.mark.parametrize("name", FORMATS)
@given(width=st.integers(1, 70), height=st.integers(1, 70))
@settings(max_examples=20, deadline=None)
def test_the_size_in_the_header_is_the_size_that_is_decoded(name, width, height):
    data = encoded(name, np.zeros((height, width, 3), np.uint8))
    assert image_size(data) == (width, height)
    assert decode_image(message(data)).shape == (height, width, 3)


@pytest.mark.parametrize(
    ("claiming", "size"),
    [
        (png_claiming, (30_000, 30_000)),
        (png_claiming, (1, 2**31 - 1)),
        (png_claiming, (2**32 - 1, 2**32 - 1)),
        (jpeg_claiming, (65_500, 65_500)),
    ],
)
def test_an_image_that_claims_too_many_pixels_never_reaches_the_decoder(
    claiming, size, monkeypatch
):
    data = claiming(*size)
    monkeypatch.setattr(compressed.cv2, "imdecode", None)
    too_large = f"{size[0]}x{size[1]} pixels; expected at most"
    with pytest.raises(MessageError, match=too_large) as error:
        decode_image(message(data))
    assert error.value.reason == "image_too_large"


def test_a_jpeg_of_endless_scans_never_reaches_the_decoder(monkeypatch):
    """1000 scans of 16 million pixels are 125 kB, and 15 s of the decoder's time."""
    data = bytearray(encoded("progressive"))
    position = data.index(b"\xff\xc2")
    data[position + 5 : position + 9] = struct.pack(">HH", 4000, 4000)
    last = data.rindex(b"\xff\xda")
    bomb = bytes(data[:last] + data[last:-2] * 20 + data[-2:])
    monkeypatch.setattr(compressed.cv2, "imdecode", None)
    with pytest.raises(MessageError, match="scans; expected at most 16") as error:
        decode_image(message(bomb))
    assert error.value.reason == "image_undecodable"


def jpeg_hiding(marker: int, hidden: bytes, shown: bytes) -> bytes:
    """A JPEG within a segment of this marker, and behind it another."""
    segment = bytes([0xFF, marker]) + struct.pack(">H", len(hidden)) + hidden[2:]
    return JPEG_MAGIC[:2] + segment + shown[2:]


def test_a_jpeg_whose_header_is_hidden_in_no_segment_never_reaches_the_decoder(monkeypatch):
    """FF 00 is no marker: libjpeg goes on to the next one, of 400 million pixels."""
    data = jpeg_hiding(0x00, jpeg_claiming(20_000, 20_000), encoded("jpeg"))
    monkeypatch.setattr(compressed.cv2, "imdecode", None)
    with pytest.raises(MessageError, match="does not begin as a JPEG or PNG") as error:
        decode_image(message(data))
    assert error.value.reason == "image_undecodable"


def test_no_jpeg_marker_hides_another_image():
    hidden = encoded("jpeg", np.zeros((8, 40, 3), np.uint8))
    decoded = 0
    for marker in range(256):
        data = jpeg_hiding(marker, hidden, encoded("jpeg"))
        for length in (b"\0\0", b"\0\1", data[4:6]):
            changed = data[:4] + length + data[6:]
            pixels = decode_or_refuse(decode_image, message(changed))
            assert pixels is None or pixels.shape[:2][::-1] == image_size(changed)
            decoded += pixels is not None
    assert decoded >= 16  # APP0 to APP15, at least, hide nothing


def test_what_is_decoded_to_another_size_than_its_header_says_is_refused(monkeypatch):
    monkeypatch.setattr(compressed, "image_size", lambda data: (16, 16))
    with pytest.raises(MessageError, match="has 32x24 pixels, its header says 16x16") as error:
        decode_image(message(encoded("jpeg")))
    assert error.value.reason == "image_undecodable"


@pytest.mark.parametrize("bomb", ["surplus pixels", "text"])
def test_a_png_is_inflated_no_further_than_its_header_says(bomb, monkeypatch):
    """Text chunks of a megabyte inflate to 1 GB, 5 s of libpng's time; so do surplus pixels."""
    surplus = zlib.compress(bytes(8_000_000))
    pixels = zlib.compress(bytes(24 * (1 + 3 * 32)) + bytes(8_000_000 * (bomb != "text")))
    text = png_chunk(b"zTXt", b"a\0\0" + surplus) * (bomb == "text")
    ends = png_chunk(b"IDAT", pixels) + png_chunk(b"IEND", b"")
    data = png_claiming(32, 24) + text + ends
    reached = []
    decode = compressed.cv2.imdecode

    def imdecode(content, flags):
        reached.append(content.tobytes())
        return decode(content, flags)

    monkeypatch.setattr(compressed.cv2, "imdecode", imdecode)
    assert_array_equal(decode_image(message(data, "png")), np.zeros((24, 32, 3)))
    (given,) = reached
    assert b"zTXt" not in given
    assert len(given) < 10 * 24 * 32  # neither packed nor surplus: work by the pixel


@pytest.mark.parametrize(
    "image",
    [
        np.random.default_rng(0).integers(0, 65536, (7, 5), np.uint16),
        np.random.default_rng(0).integers(0, 65536, (1, 9, 4), np.uint16),
        np.random.default_rng(0).integers(0, 256, (9, 1, 4), np.uint8),
    ],
    ids=["depth", "row", "column"],
)
def test_a_png_of_any_depth_and_channels_keeps_its_pixels(image):
    png = cv2.imencode(".png", image)[1].tobytes()
    pixels = compressed.decode_compressed(message(png, "png"), cv2.IMREAD_UNCHANGED)
    assert_array_equal(pixels, image)


def test_a_png_with_palette_and_transparency_keeps_its_colours():
    stream = BytesIO()
    index = np.arange(35, dtype=np.uint8).reshape(7, 5) % 2
    image = PIL.Image.fromarray(index)
    image.putpalette([10, 20, 30, 200, 100, 50])
    image.save(stream, "png", transparency=0)
    colours = np.array([[10, 20, 30], [200, 100, 50]])
    assert_array_equal(decode_image(message(stream.getvalue(), "png")), colours[index])


ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2))


def test_an_interlaced_png_keeps_its_pixels():
    pixels = np.arange(35, dtype=np.uint8).reshape(7, 5)
    passes = [pixels[y::dy, x::dx] for x, y, dx, dy in (*ADAM7, (0, 1, 1, 2))]
    rows = b"".join(b"\0" + row.tobytes() for part in passes for row in part if row.size)
    header = png_chunk(b"IHDR", struct.pack(">IIBBBBB", 5, 7, 8, 0, 0, 0, 1))
    ends = png_chunk(b"IDAT", zlib.compress(rows)) + png_chunk(b"IEND", b"")
    decoded = decode_image(message(PNG_MAGIC + header + ends, "png"))
    assert_array_equal(decoded[..., 0], pixels)


@pytest.mark.parametrize("data", [png_claiming(0, 5), jpeg_claiming(32, 0)], ids=["png", "jpeg"])
def test_an_image_without_pixels_is_refused(data):
    with pytest.raises(MessageError) as error:
        decode_image(message(data))
    assert error.value.reason == "image_zero_size"


OTHER_MAGIC = {
    "bmp": b"BM",
    "tiff": b"II*\0",
    "jpeg 2000": b"\0\0\0\x0cjP  \r\n\x87\n",
    "webp": b"RIFF\0\1\0\0WEBPVP8 ",
    "ppm": b"P6\n32 24\n255\n",
    "hdr": b"#?RADIANCE\n",
    "exr": b"\x76\x2f\x31\x01",
    "gif": b"GIF89a",
    "sun raster": b"\x59\xa6\x6a\x95",
}


@pytest.mark.parametrize("magic", OTHER_MAGIC.values(), ids=OTHER_MAGIC.keys())
def test_no_other_format_reaches_the_decoder(magic, monkeypatch):
    monkeypatch.setattr(compressed.cv2, "imdecode", None)
    with pytest.raises(MessageError, match="does not begin as a JPEG or PNG") as error:
        decode_image(message(magic + bytes(5000)))
    assert error.value.reason == "image_undecodable"


@pytest.mark.parametrize("decode", [decode_image, decode_depth])
def test_a_raw_image_is_bounded_by_pixels_and_by_its_data(decode):
    claim = SimpleNamespace(
        height=4000, width=4000, encoding="mono16", is_bigendian=0, step=8000, data=bytes(100)
    )
    assert claim.height * claim.width == MAX_PIXELS
    with pytest.raises(MessageError, match="has 100 bytes; expected 32000000") as error:
        decode(claim)
    assert error.value.reason == "image_short_data"
    claim.height += 1
    with pytest.raises(MessageError) as error:
        decode(claim)
    assert error.value.reason == "image_too_large"


def test_what_nobody_foresaw_is_a_message_error_too():
    @total("odd", "a thing")
    def decode():
        raise MemoryError("no more")

    with pytest.raises(MessageError, match="a thing cannot be decoded: MemoryError: no more") as e:
        decode()
    assert e.value.reason == "odd"


def decode_or_refuse(decode, claim):
    """What is decoded, None where it is refused; every other exception fails the test."""
    try:
        return decode(claim)
    except MessageError:
        return None


@settings(max_examples=100, deadline=None)
@given(
    name=st.sampled_from(sorted(FORMATS)),
    edits=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=8),
    cut=st.integers(0, 5000),
)
def test_a_damaged_image_is_decoded_to_its_header_or_refused(name, edits, cut):
    data = bytearray(encoded(name))
    for position, value in edits:
        data[position % len(data)] = value
    data = bytes(data[: max(1, len(data) - cut % len(data))])
    pixels = decode_or_refuse(decode_image, message(data))
    assert pixels is None or pixels.shape[:2][::-1] == image_size(data)


@settings(max_examples=100, deadline=None)
@given(
    magic=st.sampled_from([b"", JPEG_MAGIC, PNG_MAGIC, PNG_MAGIC + b"\0\0\0\rIHDR"]),
    body=st.binary(max_size=300),
    text=st.sampled_from(["", "jpeg", "16UC1; compressedDepth png", "32FC1; compressedDepth"]),
)
def test_any_bytes_are_decoded_or_refused(magic, body, text):
    for decode in (decode_image, decode_depth):
        decode_or_refuse(decode, message(magic + body, text))
        decode_or_refuse(decode, message(bytes(12) + magic + body, text))


@settings(max_examples=100, deadline=None)
@given(
    sizes=st.fixed_dictionaries(
        {
            name: st.one_of(st.integers(0, 12), st.integers(0, 2**32 - 1))
            for name in ("height", "width", "step")
        }
    ),
    encoding=st.sampled_from(["16UC1", "32FC1", *COLOR_ENCODINGS]) | st.text(max_size=8),
    big_endian=st.integers(0, 255),
    data=st.binary(max_size=600),
    shape=st.tuples(st.integers(1, 20), st.integers(1, 20)),
)
def test_any_depth_image_is_ground_truth_or_refused(sizes, encoding, big_endian, data, shape):
    claim = SimpleNamespace(**sizes, encoding=encoding, is_bigendian=big_endian, data=data)
    depth_m = decode_or_refuse(lambda image: ground_truth_from_depth_image(image, shape), claim)
    assert depth_m is None or (depth_m.shape == shape and np.nanmin(depth_m) > 0)
    pixels = decode_or_refuse(decode_image, claim)
    assert pixels is None or pixels.shape == (claim.height, claim.width, 3)


TIFF_FIELDS = {256: 16, 257: 16, 258: 8, 259: 1, 262: 1, 273: 200, 277: 1, 278: 16, 279: 256}
"""Width, height and the others of a grey image whose pixels lie at byte 200."""


def tiff(fields: list[tuple[int, int]], kind: int = 4) -> bytes:
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, value in fields)
    head = b"II*\0" + struct.pack("<IH", 8, len(fields)) + entries + bytes(4)
    return head.ljust(200, b"\0") + bytes(range(256))


def file_with(data: bytes, folder: Path) -> Path:
    path = folder / "image"
    path.write_bytes(data)
    return path


def test_a_tiff_is_read_by_its_header(tmp_path):
    pixels = read_pixels(file_with(tiff(sorted(TIFF_FIELDS.items())), tmp_path), color=False)
    assert_array_equal(pixels, np.arange(256).reshape(16, 16))


@pytest.mark.parametrize(
    "fields",
    [
        [(256, 30_000), (257, 30_000)],
        [(256, 16), (256, 30_000), (257, 16), (257, 30_000)],  # readers differ on which counts
        [(256, 16), (257, 16), (322, 16_000), (323, 16_000)],  # a tile of 256 million pixels
        [(256, 16), (257, 16), (274, 6)],  # turned, depth too
        [(256, 16)],
    ],
    ids=["large", "twice", "tile", "turned", "no height"],
)
def test_a_tiff_of_another_size_than_it_seems_never_reaches_the_decoder(
    fields, tmp_path, monkeypatch
):
    others = [field for field in TIFF_FIELDS.items() if field[0] not in dict(fields)]
    others = [field for field in others if field[0] != 257]
    path = file_with(tiff(sorted(fields + others)), tmp_path)
    monkeypatch.setattr(compressed.cv2, "imdecode", None)
    with pytest.raises(MessageError, match=r"does not begin as an image|is 30000x30000 pixels"):
        read_pixels(path)


@pytest.mark.parametrize("place", [2**63 - 1, 2**63, 2**64 - 1])
def test_a_tiff_whose_directory_is_beyond_every_file_is_refused(place, tmp_path):
    path = file_with(struct.pack("<2sHHHQ", b"II", 43, 8, 0, place), tmp_path)
    with pytest.raises(MessageError, match="does not begin as an image"):
        read_pixels(path)


@pytest.mark.parametrize("name", ["bmp", "webp", "png", "jpeg", "tiff"])
def test_an_image_file_of_each_format_keeps_its_size(name, tmp_path):
    stream = BytesIO()
    PIL.Image.fromarray(IMAGE).save(stream, name)
    assert read_pixels(file_with(stream.getvalue(), tmp_path)).shape == IMAGE.shape


@pytest.mark.parametrize("name", ["ppm", "gif", "jpeg2000"])
def test_an_image_file_of_a_format_whose_header_is_not_read_is_refused(name, tmp_path):
    """P6 30000#30000 is 30000x30000 for OpenCV, and not for Pillow."""
    stream = BytesIO()
    PIL.Image.fromarray(IMAGE).save(stream, name)
    with pytest.raises(MessageError, match="expected JPEG, PNG, TIFF, BMP or WebP"):
        read_pixels(file_with(stream.getvalue(), tmp_path))


@settings(max_examples=200, deadline=None)
@given(edits=st.lists(st.tuples(st.integers(0, 130), st.integers(0, 255)), max_size=4))
def test_a_damaged_tiff_is_decoded_to_its_header_or_refused(edits, tmp_path_factory):
    data = bytearray(tiff(sorted(TIFF_FIELDS.items())))
    for position, value in edits:
        data[position] = value
    path = file_with(bytes(data), tmp_path_factory.getbasetemp())
    decode_or_refuse(lambda image: read_pixels(image, max_pixels=4096), path)
