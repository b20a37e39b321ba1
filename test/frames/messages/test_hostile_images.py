# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Images of unknown origin: each is decoded as its header says, or refused with a reason.

A photograph is turned upright as its Exif data say. A camera's frame stays as it was taken: depth
and the camera matrix beside it know nothing of that.
"""

import struct
import zlib
from functools import partial
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import PIL.Image
import PIL.ImageOps
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from test.conftest import refused
from test.frames.messages.conftest import compressed_message, decoded_or_refused, encoded
from uncertainty_depth.core.config.source import MAX_PIXELS, SourceConfig
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.frames.image_files import as_rgb, read_pixels
from uncertainty_depth.frames.messages import compressed
from uncertainty_depth.frames.messages.compressed import JPEG_MAGIC, PNG_MAGIC, image_size
from uncertainty_depth.frames.messages.decoding import total
from uncertainty_depth.frames.messages.images import (
    COLOR_ENCODINGS,
    as_ground_truth,
    decode_depth,
    decode_image,
)
from uncertainty_depth.stream.opening import open_source

IMAGE = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
FORMATS = {
    "png": (".png", []),
    "jpeg": (".jpg", []),
    "progressive": (".jpg", [cv2.IMWRITE_JPEG_PROGRESSIVE, 1]),
    "restarts": (".jpg", [cv2.IMWRITE_JPEG_RST_INTERVAL, 2]),
}


def made(name: str, image: np.ndarray = IMAGE) -> bytes:
    suffix, options = FORMATS[name]
    return encoded(image, suffix, *options)


def png_chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


def png_claiming(width: int, height: int) -> bytes:
    """A PNG with a sound header, any size, and nothing behind it."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return PNG_MAGIC + png_chunk(b"IHDR", header)


def jpeg_claiming(width: int, height: int) -> bytes:
    data = bytearray(made("jpeg"))
    position = data.index(b"\xff\xc0")
    data[position + 5 : position + 9] = struct.pack(">HH", height, width)
    return bytes(data)


@pytest.mark.parametrize("name", FORMATS)
@given(width=st.integers(1, 70), height=st.integers(1, 70))
@settings(max_examples=20)
def test_the_size_in_the_header_is_the_size_that_is_decoded(name, width, height):
    data = made(name, np.zeros((height, width, 3), np.uint8))
    assert image_size(data) == (width, height)
    assert decode_image(compressed_message("jpeg", data)).shape == (height, width, 3)


def jpeg_of_endless_scans() -> bytes:
    """1000 scans with 16 million pixels each take 125 kB, and the decoder 15 s."""
    data = bytearray(made("progressive"))
    position = data.index(b"\xff\xc2")
    data[position + 5 : position + 9] = struct.pack(">HH", 4000, 4000)
    last = data.rindex(b"\xff\xda")
    return bytes(data[:last] + data[last:-2] * 20 + data[-2:])


def jpeg_hiding(marker: int, hidden: bytes, shown: bytes) -> bytes:
    """A JPEG hidden in a segment with this marker, and another behind it."""
    segment = bytes([0xFF, marker]) + struct.pack(">H", len(hidden)) + hidden[2:]
    return JPEG_MAGIC[:2] + segment + shown[2:]


NO_IMAGE = "does not begin as a JPEG or PNG"
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
NEVER_DECODED = {
    **{
        f"{make.__name__} {width}x{height}": (
            make(width, height), "image_too_large", f"{width}x{height} pixels; expected at most"
        )
        for make, width, height in (
            (png_claiming, 30_000, 30_000),
            (png_claiming, 1, 2**31 - 1),
            (png_claiming, 2**32 - 1, 2**32 - 1),
            (jpeg_claiming, 65_500, 65_500),
        )
    },
    "a PNG of no row": (png_claiming(0, 5), "image_zero_size", None),
    "a JPEG of no row": (jpeg_claiming(32, 0), "image_zero_size", None),
    "endless scans": (
        jpeg_of_endless_scans(), "image_undecodable", "scans; expected at most 16"
    ),
    # FF 00 is no marker: libjpeg goes on to the next one, of 400 million pixels.
    "a header in no segment": (
        jpeg_hiding(0x00, jpeg_claiming(20_000, 20_000), made("jpeg")),
        "image_undecodable",
        NO_IMAGE,
    ),
    **{
        name: (magic + bytes(5000), "image_undecodable", NO_IMAGE)
        for name, magic in OTHER_MAGIC.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("name", NEVER_DECODED)
def test_what_is_no_sound_image_by_its_header_never_reaches_the_decoder(name, monkeypatch):
    data, reason, sentence = NEVER_DECODED[name]
    monkeypatch.setattr(compressed.cv2, "imdecode", None)
    with refused(reason, sentence):
        decode_image(compressed_message("jpeg", data))


def test_no_jpeg_marker_hides_another_image():
    hidden = made("jpeg", np.zeros((8, 40, 3), np.uint8))
    decoded = 0
    for marker in range(256):
        data = jpeg_hiding(marker, hidden, made("jpeg"))
        for length in (b"\0\0", b"\0\1", data[4:6]):
            changed = data[:4] + length + data[6:]
            pixels = decoded_or_refused(decode_image, compressed_message("jpeg", changed))
            assert pixels is None or pixels.shape[:2][::-1] == image_size(changed)
            decoded += pixels is not None
    assert decoded >= 16  # APP0 to APP15, at least, hide nothing


def test_what_is_decoded_to_another_size_than_its_header_says_is_refused(monkeypatch):
    monkeypatch.setattr(compressed, "image_size", lambda data: (16, 16))
    with refused("image_undecodable", "has 32x24 pixels, its header says 16x16"):
        decode_image(compressed_message("jpeg", made("jpeg")))


@pytest.mark.parametrize("bomb", ["surplus pixels", "text"])
def test_a_png_is_inflated_no_further_than_its_header_says(bomb, monkeypatch):
    """Text chunks that take 1 MB inflate to 1 GB, and libpng takes 5 s; so do surplus pixels."""
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
    assert_array_equal(decode_image(compressed_message("png", data)), np.zeros((24, 32, 3)))
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
    message = compressed_message("png", encoded(image))
    pixels = compressed.decode_compressed(message, cv2.IMREAD_UNCHANGED)
    assert_array_equal(pixels, image)


def test_a_png_with_palette_and_transparency_keeps_its_colours():
    stream = BytesIO()
    index = np.arange(35, dtype=np.uint8).reshape(7, 5) % 2
    image = PIL.Image.fromarray(index)
    image.putpalette([10, 20, 30, 200, 100, 50])
    image.save(stream, "png", transparency=0)
    colours = np.array([[10, 20, 30], [200, 100, 50]])
    assert_array_equal(decode_image(compressed_message("png", stream.getvalue())), colours[index])


ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2))


def test_an_interlaced_png_keeps_its_pixels():
    pixels = np.arange(35, dtype=np.uint8).reshape(7, 5)
    passes = [pixels[y::dy, x::dx] for x, y, dx, dy in (*ADAM7, (0, 1, 1, 2))]
    rows = b"".join(b"\0" + row.tobytes() for part in passes for row in part if row.size)
    header = png_chunk(b"IHDR", struct.pack(">IIBBBBB", 5, 7, 8, 0, 0, 0, 1))
    ends = png_chunk(b"IDAT", zlib.compress(rows)) + png_chunk(b"IEND", b"")
    decoded = decode_image(compressed_message("png", PNG_MAGIC + header + ends))
    assert_array_equal(decoded[..., 0], pixels)


@pytest.mark.parametrize("decode", [decode_image, decode_depth])
def test_a_raw_image_is_bounded_by_pixels_and_by_its_data(decode):
    claim = SimpleNamespace(
        height=4000, width=4000, encoding="mono16", is_bigendian=0, step=8000, data=bytes(100)
    )
    assert claim.height * claim.width == MAX_PIXELS
    with refused("image_short_data", "has 100 bytes; expected 32000000"):
        decode(claim)
    claim.height += 1
    with refused("image_too_large"):
        decode(claim)


def test_what_nobody_foresaw_is_a_message_error_too():
    @total("odd", "a thing")
    def decode():
        raise MemoryError("no more")

    with refused("odd", "a thing cannot be decoded: MemoryError: no more"):
        decode()


@given(
    name=st.sampled_from(sorted(FORMATS)),
    edits=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=8),
    cut=st.integers(0, 5000),
)
def test_a_damaged_image_is_decoded_to_its_header_or_refused(name, edits, cut):
    data = bytearray(made(name))
    for position, value in edits:
        data[position % len(data)] = value
    data = bytes(data[: max(1, len(data) - cut % len(data))])
    pixels = decoded_or_refused(decode_image, compressed_message("jpeg", data))
    assert pixels is None or pixels.shape[:2][::-1] == image_size(data)


@given(
    sizes=st.fixed_dictionaries(
        {
            name: st.one_of(st.integers(0, 12), st.integers(0, 2**32 - 1))
            for name in ("height", "width", "step")
        }
    ),
    encoding=st.sampled_from(["16UC1", "32FC1", *COLOR_ENCODINGS, "", "x"]),
    big_endian=st.integers(0, 255),
    data=st.binary(max_size=600),
    shape=st.tuples(st.integers(1, 20), st.integers(1, 20)),
)
def test_any_depth_image_is_ground_truth_or_refused(sizes, encoding, big_endian, data, shape):
    claim = SimpleNamespace(**sizes, encoding=encoding, is_bigendian=big_endian, data=data)
    depth_m = decoded_or_refused(lambda image: as_ground_truth(decode_depth(image), shape), claim)
    assert depth_m is None or (depth_m.shape == shape and np.nanmin(depth_m) > 0)
    pixels = decoded_or_refused(decode_image, claim)
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
        [(256, 16), (257, 16), (322, 16_000), (323, 16_000)],  # a tile with 256 million pixels
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


@settings(max_examples=200)
@given(edits=st.lists(st.tuples(st.integers(0, 130), st.integers(0, 255)), max_size=4))
def test_a_damaged_tiff_is_decoded_to_its_header_or_refused(edits, tmp_path_factory):
    data = bytearray(tiff(sorted(TIFF_FIELDS.items())))
    for position, value in edits:
        data[position] = value
    path = file_with(bytes(data), tmp_path_factory.getbasetemp())
    decoded_or_refused(partial(read_pixels, max_pixels=4096), path)


STORED = np.zeros((16, 24, 3), np.uint8)
STORED[:8, :8] = [240, 20, 20]
STORED[8:, 16:] = [20, 20, 240]
ORIENTATION_TAG = 0x0112


def photograph(orientation: int, name: str = "jpeg") -> bytes:
    exif = PIL.Image.Exif()
    exif[ORIENTATION_TAG] = orientation
    stream = BytesIO()
    lossless = {"jpeg": {"quality": 98, "subsampling": 0}, "webp": {"lossless": True}}
    options = lossless.get(name, {})
    PIL.Image.fromarray(STORED).save(stream, name, exif=exif, **options)
    return stream.getvalue()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("name", ["jpeg", "png", "webp"])
def test_a_photograph_is_upright_whether_named_or_opened(name, orientation, tmp_path):
    path = tmp_path / f"photograph.{name}"
    path.write_bytes(photograph(orientation, name))
    with PIL.Image.open(path) as image:
        upright = np.asarray(PIL.ImageOps.exif_transpose(image))
        assert_allclose(as_rgb(image), upright)
    assert_allclose(as_rgb(path).astype(int), upright, atol=8)


@pytest.mark.parametrize("orientation", [3, 6])
def test_a_frame_beside_depth_stays_as_it_was_taken(orientation, tmp_path):
    data = photograph(orientation)
    depth = np.full(STORED.shape[:2], 2000, np.uint16)
    for name in ("rgb", "depth", "image", "ground_truth"):
        (tmp_path / name).mkdir()
    for name in ("rgb", "image"):
        (tmp_path / name / "0.jpg").write_bytes(data)
    for name in ("depth", "ground_truth"):
        cv2.imwrite(str(tmp_path / name / "0.png"), depth)
    for notation in (f"rgbd:{tmp_path}", f"predictions:{tmp_path}"):
        (frame,) = open_source(notation, SourceConfig())
        assert_allclose(frame.image.astype(int), STORED, atol=8)
        assert frame.is_registered
    message = compressed_message("jpeg", data)
    assert_allclose(decode_image(message).astype(int), STORED, atol=8)
