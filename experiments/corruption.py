# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Corruptions by name and severity, in the manner of Hendrycks and Dietterich 2019 (ImageNet-C).

Each takes (H, W, 3) float32 RGB in [0, 1], the severity 0 to 4 as an index, and a generator.
Lengths are fractions of the image's width, so a severity means the same at any size.

They are implemented here in OpenCV and NumPy, because no maintained library has them without
requiring a second OpenCV or torchvision.

From a clone, `experiments.corruption:night:2+noise:2:my_bag` is a source of every command.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.frames.protocol import MapSource, Source
from uncertainty_depth.stream.opening import open_source as open_clean

Floats = NDArray[np.float32]
CORRUPTIONS = (
    "night",
    "fog",
    "rain",
    "motion_blur",
    "defocus",
    "noise",
    "dirt",
    "jpeg",
    "overexposed",
    "underexposed",
    "white_balance",
    "low_resolution",
)
SEVERITIES = (1, 2, 3, 4, 5)
GAMMA = 2.2


def linear(image: Floats) -> Floats:
    """Return linear light of gamma-encoded values in [0, 1]."""
    return np.power(image, np.float32(GAMMA))


def encoded(light: Floats) -> Floats:
    """Return gamma-encoded values of linear light, clipped to [0, 1]."""
    return np.power(np.clip(light, 0, 1), np.float32(1 / GAMMA))


def night(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image at a fraction of the light, bluish, with high-gain noise."""
    brightness = (0.3, 0.15, 0.07, 0.035, 0.015)[index]
    read_noise = (0.001, 0.0015, 0.002, 0.003, 0.004)[index]
    tint = np.array([0.8, 0.9, 1.15], np.float32)
    light = linear(image) * tint * np.float32(brightness)
    deviation = np.sqrt(np.float32(0.0004) * light + np.float32(read_noise**2))
    return encoded(light + deviation * rng.standard_normal(light.shape, np.float32))


def overexposed(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image at 1.6 to 8 times the light, clipped."""
    return encoded(linear(image) * np.float32((1.6, 2.4, 3.5, 5.0, 8.0)[index]))


def underexposed(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image at a half to a twentieth of the light."""
    return encoded(linear(image) * np.float32((0.5, 0.3, 0.18, 0.1, 0.05)[index]))


def white_balance(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image with red and blue gained against each other, warm or cold by chance."""
    shift = (0.1, 0.2, 0.35, 0.5, 0.7)[index] * rng.choice([-1, 1])
    gains = np.exp(np.array([shift, 0, -shift])).astype(np.float32)
    return encoded(linear(image) * gains)


DIRT_SEED = 1  # a lens keeps its dirt: it is the same in all frames


def motion_blur(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image blurred along a line of 1 to 6 % of its width, nearly level."""
    length = (0.01, 0.02, 0.03, 0.045, 0.06)[index] * image.shape[1]
    angle = rng.uniform(-0.35, 0.35)
    half = 0.5 * length * np.array([np.cos(angle), np.sin(angle)])
    size = 2 * int(np.ceil(0.5 * length)) + 3
    kernel = np.zeros((size, size), np.float32)
    scale = 1 << 8  # subpixels of `cv2.line`
    ends = np.rint((size // 2 + np.stack([-half, half])) * scale).astype(int)
    cv2.line(kernel, ends[0].tolist(), ends[1].tolist(), 1.0, 1, cv2.LINE_AA, 8)
    return _filtered(image, kernel)


def defocus(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image blurred by a disc of radius 0.4 to 2.2 % of its width."""
    radius = (0.004, 0.007, 0.011, 0.016, 0.022)[index] * image.shape[1]
    reach = int(np.ceil(radius)) + 1
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    disc = np.clip(radius + 0.5 - np.hypot(x, y), 0, 1).astype(np.float32)
    return _filtered(image, disc)


def _filtered(image: Floats, kernel: Floats) -> Floats:
    blurred = cv2.filter2D(image, -1, kernel / kernel.sum(), borderType=cv2.BORDER_REFLECT)
    return blurred.astype(np.float32)


def noise(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image with Gaussian noise of standard deviation 0.04 to 0.26."""
    deviation = np.float32((0.04, 0.08, 0.12, 0.18, 0.26)[index])
    return image + deviation * rng.standard_normal(image.shape, np.float32)


def dirt(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image behind 3 to 45 blurred specks and smears, the same in all frames."""
    specks = (3, 8, 15, 27, 45)[index]
    lens = np.random.default_rng(DIRT_SEED)
    height, width = image.shape[:2]
    opacity: Floats = np.zeros((height, width), np.float32)
    for _ in range(specks):
        centre = (int(lens.uniform(0, width)), int(lens.uniform(0, height)))
        axes = (lens.uniform(0.008, 0.05, 2) * width).astype(int) + 1
        strength = lens.uniform(0.4, 1.0)
        speck = np.zeros_like(opacity)
        cv2.ellipse(speck, centre, axes.tolist(), lens.uniform(0, 180), 0, 360, strength, -1)
        opacity = np.maximum(opacity, speck)
    weight = cv2.GaussianBlur(opacity, (0, 0), 0.008 * width)[..., None].astype(np.float32)
    mud = np.array([0.16, 0.13, 0.1], np.float32)
    return image * (1 - weight) + mud * weight


def jpeg(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image after JPEG of quality 25 to 7, as Hendrycks and Dietterich take it."""
    quality = (25, 18, 15, 10, 7)[index]
    bgr = np.rint(255 * np.clip(image[..., ::-1], 0, 1)).astype(np.uint8)
    _, content = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, quality])
    decoded: Any = cv2.imdecode(content, cv2.IMREAD_COLOR)
    return decoded[..., ::-1].astype(np.float32) / np.float32(255)


def low_resolution(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image reduced to a half, a third, a quarter, a sixth or an eighth, and back."""
    factor = (2, 3, 4, 6, 8)[index]
    height, width = image.shape[:2]
    size = (max(width // factor, 1), max(height // factor, 1))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    enlarged = cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR)
    return enlarged.astype(np.float32)


FOG = np.array([0.78, 0.79, 0.8], np.float32)


def fog(image: Floats, index: int, depth_m: NDArray[np.floating] | None) -> Floats:
    """Return the image in fog that leaves 78 to 14 % of the light from the median depth.

    Koschmieder's law: light falls off exponentially with distance, and the air's own light
    replaces it. The fog's density follows the frame's median depth, so a severity means the same
    in a room and in a street.

    Args:
        image: without fog.
        index: the severity's index.
        depth_m: (H, W), metres, NaN for unknown; pixels without depth take the nearest known one.
            If it is None or nothing is known, a gradient is used, near below and far above.
    """
    optical_depth = (0.25, 0.5, 0.9, 1.4, 2.0)[index]
    relative = _relative_depth(image.shape[:2], depth_m)
    transmission = np.exp(np.float32(-optical_depth) * relative)[..., None]
    return image * transmission + FOG * (1 - transmission)


def _relative_depth(shape: tuple[int, ...], depth_m: NDArray[np.floating] | None) -> Floats:
    """Return depth over its median, (H, W)."""
    if depth_m is None or not np.isfinite(depth_m).any():
        rows = np.linspace(1.7, 0.3, shape[0], dtype=np.float32)
        return np.repeat(rows[:, None], shape[1], axis=1)
    dense = _dense(depth_m)
    return dense / np.median(dense)


def _dense(depth_m: NDArray[np.floating]) -> Floats:
    """Return the depth map with unknown pixels set to the nearest known value."""
    valid = np.isfinite(depth_m)
    depth = np.where(valid, depth_m, 0).astype(np.float32)
    if valid.all():
        return depth
    _, labels = cv2.distanceTransformWithLabels(
        (~valid).astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
    )
    values = np.zeros(labels.max() + 1, np.float32)
    values[labels[valid]] = depth[valid]
    filled: Floats = values[labels]
    return cv2.GaussianBlur(filled, (0, 0), 0.01 * depth.shape[1]).astype(np.float32)


def rain(image: Floats, index: int, rng: np.random.Generator) -> Floats:
    """Return the image behind bright, slanted streaks and the haze of drops too far to see."""
    drops = (120, 250, 450, 750, 1200)[index]
    haze = np.float32((0.08, 0.14, 0.2, 0.28, 0.36)[index])
    height, width = image.shape[:2]
    slant = rng.uniform(-0.3, 0.3)
    streaks = np.zeros((height, width), np.float32)
    for _ in range(drops):
        near = rng.uniform(0.3, 1.0)
        x = rng.uniform(0, width)
        y = rng.uniform(-0.1, 1.0) * height
        length = 0.12 * near * height
        end = (round(x + slant * length), round(y + length))
        thickness = max(1, round(0.004 * near * width))
        cv2.line(streaks, (round(x), round(y)), end, 0.6 * near, thickness, cv2.LINE_AA)
    streaks = cv2.GaussianBlur(streaks, (0, 0), max(0.0012 * width, 0.3))[..., None]
    air = np.float32(0.55)
    dim = image * (1 - haze) + air * haze
    return dim * (1 - streaks) + np.float32(0.9) * streaks


SEEDED: dict[str, Callable[[Floats, int, np.random.Generator], Floats]] = {
    "night": night,
    "rain": rain,
    "motion_blur": motion_blur,
    "defocus": defocus,
    "noise": noise,
    "dirt": dirt,
    "jpeg": jpeg,
    "overexposed": overexposed,
    "underexposed": underexposed,
    "white_balance": white_balance,
    "low_resolution": low_resolution,
}


@dataclass(frozen=True)
class Corruption:
    """One type of corruption at a severity of 1 to 5.

    Raises:
        ConfigError: the corruption or severity is unknown.
    """

    name: str
    severity: int

    def __post_init__(self) -> None:
        if self.name not in CORRUPTIONS:
            raise ConfigError(
                f"the corruption is {self.name!r}; expected one of "
                f"{', '.join(sorted(CORRUPTIONS))}"
            )
        if self.severity not in SEVERITIES:
            raise ConfigError(
                f"the severity of {self.name} is {self.severity}; expected 1, 2, 3, 4 or 5"
            )

    def __str__(self) -> str:
        return f"{self.name}:{self.severity}"

    def __call__(
        self,
        image: NDArray[np.uint8],
        stamp_ns: int,
        depth_m: NDArray[np.floating] | None = None,
    ) -> NDArray[np.uint8]:
        """Return the corrupted image, (H, W, 3) uint8 RGB; the same for the same stamp.

        Args:
            image: (H, W, 3) uint8 RGB.
            stamp_ns: time of the image, nanoseconds: the seed.
            depth_m: (H, W) metres, NaN for unknown, for fog; None if nothing is known.
        """
        values = image.astype(np.float32) / np.float32(255)
        index = self.severity - 1
        if self.name == "fog":
            corrupted = fog(values, index, depth_m)
        else:
            rng = np.random.default_rng([abs(stamp_ns), zlib.crc32(self.name.encode())])
            corrupted = SEEDED[self.name](values, index, rng)
        return np.rint(255 * np.clip(corrupted, 0, 1)).astype(np.uint8)


def parse(text: str) -> Corruption:
    """Return the corruption of a notation like `fog:3`.

    Raises:
        ConfigError: the text does not match the notation.
    """
    name, colon, severity = text.partition(":")
    if not colon or not severity.isdecimal():
        raise ConfigError(
            f"the corruption is {text!r}; expected NAME:SEVERITY, such as fog:3, with one of "
            f"{', '.join(sorted(CORRUPTIONS))} and 1 to 5"
        )
    return Corruption(name, int(severity))


def open_source(rest: str, config: SourceConfig) -> Source:
    """Return the source of `NAME:SEVERITY[+NAME:SEVERITY...]:SOURCE`, corrupted in this order.

    Raises:
        ConfigError: the corruptions do not match the notation, or one is unknown.
        SourceError: the source cannot be opened.
    """
    found = re.fullmatch(r"((?:\w+:\w+\+)*\w+:\w+):(.+)", rest)
    if found is None:
        raise ConfigError(
            f"the corrupted source is {rest!r}; expected NAME:SEVERITY, or several joined by +, "
            "and :SOURCE, such as fog:3:my_bag"
        )
    corruptions = [parse(text) for text in found[1].split("+")]
    return corrupted(open_clean(found[2], config), corruptions)


def notation(corruptions: Sequence[Corruption]) -> str:
    """Return the corruptions in their order, e.g. "night:2 + noise:3"."""
    return " + ".join(map(str, corruptions))


def corrupted(source: Source, corruptions: Sequence[Corruption]) -> Source:
    """Return the source with its images corrupted in this order, or itself without corruptions.

    Ground truth, camera, stamps and the source's name do not change; fog follows the ground truth.
    """
    if not corruptions:
        return source

    def step(record: Frame | Skipped) -> Frame | Skipped:
        if isinstance(record, Skipped):
            return record
        image = record.need_image()
        for corruption in corruptions:
            image = corruption(image, record.stamp_ns, record.need_ground_truth())
        return replace(record, image=image)

    how = f"the images are corrupted by {notation(corruptions)}"
    return MapSource(source, step, lambda: [how])
