# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""HTML pages that hold all they show: templates of this package, images as base64."""

from __future__ import annotations

import base64
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render_template(name: str, **values: Any) -> str:
    """Return a template of this package, filled with values, which are escaped."""
    environment = Environment(
        loader=PackageLoader("uncertainty_depth.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name).render(**values)


def base64_text(data: bytes) -> str:
    """Return the data of an image as base64, for the page to embed."""
    return base64.b64encode(data).decode("ascii")
