"""Monocular depth with an error bar, and the scores that tell whether the error bar can be trusted."""

__version__ = "0.1.0"
