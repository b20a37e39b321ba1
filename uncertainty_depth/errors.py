# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The exceptions this package raises on purpose: one clear sentence each, turned into an exit code by `cli.py` alone."""


class UncertaintyDepthError(Exception):
    """Base of every error a user can cause and mend."""


class ConfigError(UncertaintyDepthError):
    """An option, parameter or YAML key is unknown, of the wrong type or out of range."""


class SourceError(UncertaintyDepthError):
    """A bag, drive or folder is missing, unreadable, ambiguous or lacks what is asked of it."""


class ModelError(UncertaintyDepthError):
    """A model folder is missing, damaged, of another architecture or of a newer format."""


class CalibrationError(UncertaintyDepthError):
    """A fitted map of sigma is worse than raw sigma on frames that it was not fitted to."""


class TrainingError(UncertaintyDepthError):
    """A network was not trained to its end by the process that trained it; the training can be resumed."""


class MessageError(UncertaintyDepthError):
    """One image, camera info or point cloud cannot be used; the frame is counted and skipped, the run goes on."""

    def __init__(self, reason: str, message: str) -> None:
        """`reason` is the short key the frame is counted under, e.g. "image_wrong_step"; `message` the sentence."""
        super().__init__(message)
        self.reason = reason
