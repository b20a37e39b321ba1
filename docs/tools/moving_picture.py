"""Write the README's moving picture: image, depth, sigma and error on worlds never seen.

    python docs/tools/moving_picture.py docs/images/demo.gif

The frames are those of `make demo`'s worlds at five frames a second, the model is the shipped one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from synthetic.config import SynthesisConfig
from synthetic.source import SyntheticSource
from uncertainty_depth.core.config import PredictorConfig
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.report.images import DEPTH_COLORS, SIGMA_COLORS, colorize

MODEL = Path(__file__).parents[2] / "uncertainty_depth" / "models" / "demo"
WORLDS = SynthesisConfig(worlds=2, frames=14, seed=20_000, rate=5.0, test_objects=True, dense=True)
FRAME_MS = 250
PANEL = (280, 210)
TITLE_HEIGHT = 22
MAX_DEPTH_M = 8.0
MAX_SIGMA_M = 1.0
TITLES = (
    "image",
    f"depth, 0 to {MAX_DEPTH_M:.0f} m",
    f"standard deviation, 0 to {MAX_SIGMA_M:.0f} m",
    f"true error, 0 to {MAX_SIGMA_M:.0f} m",
)


def main() -> None:
    """Predict every frame and write the animation."""
    output = Path(sys.argv[1])
    predictor = Predictor(MODEL, PredictorConfig(samples=8))
    panels = []
    for frame in SyntheticSource(WORLDS):
        prediction = predictor.predict(frame.image, frame.stamp_ns)
        panels.append(row(frame, prediction))
    images = [Image.fromarray(panel).quantize(96, dither=Image.Dither.NONE) for panel in panels]
    images[0].save(
        output, save_all=True, append_images=images[1:], duration=FRAME_MS, loop=0, optimize=True
    )
    print(f"{output}: {len(images)} frames, {output.stat().st_size / 1e6:.1f} MB")


def row(frame: Frame, prediction: DepthPrediction) -> NDArray[np.uint8]:
    """Return image, depth, sigma and error of one frame side by side, (H, W, 3) uint8 RGB."""
    error_m = np.abs(prediction.depth_m - frame.ground_truth_m)
    pictures = (
        frame.image,
        colorize(prediction.depth_m, MAX_DEPTH_M, DEPTH_COLORS),
        colorize(prediction.sigma_m, MAX_SIGMA_M, SIGMA_COLORS),
        colorize(error_m, MAX_SIGMA_M, SIGMA_COLORS),
    )
    panels = [
        titled(cv2.resize(picture, PANEL, interpolation=cv2.INTER_AREA), title)
        for picture, title in zip(pictures, TITLES, strict=True)
    ]
    return np.concatenate(panels, axis=1)


def titled(picture: NDArray[np.uint8], title: str) -> NDArray[np.uint8]:
    """Return the picture with its title on a white strip above it."""
    strip = Image.new("RGB", (picture.shape[1], TITLE_HEIGHT), "white")
    ImageDraw.Draw(strip).text((6, 4), title, fill="black")
    return np.concatenate([np.asarray(strip), picture])


if __name__ == "__main__":
    main()
