# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What is installed on request, as extras of the package, and what to say if it is missing."""

from __future__ import annotations

EXTRAS = {
    "cv2": "bags",
    "rosbags": "bags",
    "torch": "network",
    "transformers": "pretrained",
    "onnx": "onnxruntime",
    "onnxruntime": "onnxruntime",
    "openvino": "openvino",
    "ray": "ray",
    "rclpy": "ros",
    "rerun": "view",
}
"""The extra that brings each library."""


def missing(library: str) -> str:
    """Return the sentence that a library is not installed, and what installs it."""
    extra = EXTRAS[library]
    return (
        f"{library} is not installed; expected the extra {extra!r} of uncertainty_depth: "
        f"pip install '.[{extra}]' in a clone"
    )


def missing_in(error: ModuleNotFoundError) -> str | None:
    """Return the sentence on the library that an import lacks; None if no extra brings it."""
    library = (error.name or "").partition(".")[0]
    return missing(library) if library in EXTRAS else None
