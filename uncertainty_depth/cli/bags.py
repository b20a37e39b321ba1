# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Commands that write and describe bags."""

from __future__ import annotations

import logging
import re
import shlex
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncertainty_depth.cli.arguments import SOURCE, Command, positional, written
from uncertainty_depth.core.config.source import PredictionTopics, SourceConfig
from uncertainty_depth.core.errors import ConfigError, MessageError, SourceError
from uncertainty_depth.core.model_location import is_hugging_face, model_path
from uncertainty_depth.core.output import NewFolder, OutputFile
from uncertainty_depth.frames.protocol import Source
from uncertainty_depth.stream.opening import module_and_rest, place_of

if TYPE_CHECKING:
    from uncertainty_depth.stream.stream import Stream

INFO_FRAMES = 50
"""First frames of a bag that `info` looks at."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Convert(Command):
    """Write a KITTI raw drive, an RGB-D folder or rendered worlds as a rosbag2 (MCAP)."""

    example = "kitti:2011_09_26/2011_09_26_drive_0001_sync drive_bag"
    source: str = positional(
        metavar="SOURCE",
        help="kitti:DRIVE_DIR, beside its date's calibration files; rgbd:DIR; or in a clone "
        "synthetic:[worlds=4,frames=20,seed=1]",
    )
    bag: Path = positional(type=Path, metavar="OUT_BAG", help="bag folder to write")

    def _run(self) -> None:
        NewFolder(self.bag).check([place_of(self.source)])
        module, rest = module_and_rest(self.source)
        write_bag = getattr(module, "write_bag", None)
        if write_bag is None:
            raise SourceError(
                f"source is {self.source!r}; expected kitti:DRIVE_DIR, rgbd:DIR, or MODULE:... of "
                "a Python module with write_bag (in a clone: synthetic:)"
            )
        write_bag(rest, self.bag)
        print(f"bag written to {self.bag}")


@dataclass(frozen=True, kw_only=True)
class Info(Command):
    """Show what a source holds and whether its depth fits its image; or describe a model."""

    example = "my_bag"
    source: str = positional(help=f"{SOURCE}; or a model folder")
    output: Path | None = written(
        "PNG",
        "plot of the depth on the image (default: the source's name with .png, here)",
        required=False,
    )
    reading: SourceConfig

    def _run(self) -> None:
        model = model_path(self.source)
        if (model / "model.json").is_file() or is_hugging_face(model):
            from uncertainty_depth.depth.model_folder.folder import read_model

            for name, value in read_model(model, relative=True).describe().items():
                print(f"{name:14} {value}")
            return
        plot, no_plot = self._plot()
        recorded = _list_topics(Path(self.source))  # first: the choice of topics may fail
        stream = self._open(recorded)
        _describe_source(stream.sources[0])
        _check_geometry(stream, plot, no_plot)

    def _plot(self) -> tuple[OutputFile, str]:
        """Return the plot's file, and why it cannot be written; empty if it can."""
        if self.output and self.output.suffix.lower() != ".png":
            raise ConfigError(f"output is {self.output}; expected a file that ends in .png")
        path = Path(self.source)
        name = path.resolve().name if path.exists() else re.sub(r"[^\w.-]+", "_", path.name)
        plot = OutputFile(self.output or Path(f"{name}.png"))
        try:
            plot.check([place_of(self.source)])
        except SourceError as error:
            if self.output:
                raise
            return plot, str(error)  # nobody asked for this file
        return plot, ""

    def _open(self, recorded: PredictionTopics) -> Stream:
        """Open the source; one without ground truth of images, with its recorded depth."""
        from uncertainty_depth.stream.stream import Stream

        job = self.job(self.source)
        try:
            return Stream.open(job)
        except SourceError:
            if not recorded.depth_topic:
                raise
        return Stream.open(replace(job, topics=recorded))


def _list_topics(bag: Path) -> PredictionTopics:
    """Print the topics of a source that is a path; tell and return the depth it has recorded."""
    from uncertainty_depth.frames.recording import Recording
    from uncertainty_depth.frames.topics import recorded_predictions

    if not bag.exists():
        return PredictionTopics()
    with Recording(bag).open() as recording:
        losses = recording.lost()
        for name, topic in sorted(recording.topics.items()):
            transport, recorder = losses.get(name, (0, 0))
            lost = (
                f"; {transport + recorder} more are lost, {transport} in transport, {recorder} by "
                "the recorder"
            )
            print(f"{topic.count:8} {name}  {topic.message_type}{lost if name in losses else ''}")
        driver = recorded_predictions(recording.topics, recording.first)
        if driver is None:
            return PredictionTopics()
        maker = f"depth by {driver.camera}, known by its topics" if driver.camera else "depth"
        command = f"uncertainty-depth evaluate {shlex.quote(str(bag))} {driver.options()}"
        print(f"{maker}; to score it: {command} --output report")
        confidence = driver.topics.confidence_topic
        if confidence and not driver.confidence_type:
            print(_possible_types(confidence, recording.first(confidence)))
    return driver.topics


def _possible_types(topic: str, message: Any) -> str:
    """Return what the values of a first image say of its TYPE."""
    import numpy as np

    from uncertainty_depth.frames.messages.images import decode_values
    from uncertainty_depth.sigma.recorded.confidence import suggested_types

    try:
        values = decode_values(message)
    except MessageError as error:
        return f"{topic} cannot be read: {error}"
    finite = values[np.isfinite(values)]
    if not finite.size:
        return f"{topic} has no finite value in its first image"
    low, high = float(finite.min()), float(finite.max())
    types = suggested_types(low, high).removeprefix("confidence_type ")
    return (
        f"{topic} holds {low:.4g} to {high:.4g}: its manual says which TYPE it is, {types}, or "
        "sigma in metres"
    )


def _describe_source(source: Source) -> None:
    """Print how many images a source has; of a bag also its topics, and the LiDAR's pose."""
    from uncertainty_depth.core.geometry.transforms import option_from
    from uncertainty_depth.frames.bag import BagSource

    print(f"{source.name}: {len(source)} images")
    if not isinstance(source, BagSource):
        return
    topics = source.topics
    camera = f"camera {topics.image} with {topics.camera_info or 'no camera info'}"
    depth = "LiDAR" if topics.lidars else "depth image"
    print(f"{camera}, {depth} {', '.join(topics.ground_truths)}")
    if source.lidar_to_camera is not None:
        numbers = option_from(source.lidar_to_camera)
        print(f"for a command: --lidar-to-camera {numbers}")
        print(f"for a node:    lidar_to_camera:=[{numbers.replace(' ', ', ')}]")


def _check_geometry(stream: Stream, plot: OutputFile, no_plot: str) -> None:
    """Plot depth on the image, or say why not, and print the first frames' check."""
    from uncertainty_depth.core.records import Frame
    from uncertainty_depth.report.frame_plots import lidar_overlay
    from uncertainty_depth.report.images import encoded_pixels

    (source,) = stream.sources
    (check,) = stream.checks
    frame = None
    for record in islice(stream, INFO_FRAMES):
        if frame is None and isinstance(record, Frame):
            frame = record
    print(f"geometry of the first frames: {check.description()}")
    if frame is not None and frame.camera is not None:
        f = frame.camera.intrinsics
        size = f"{frame.camera.width}x{frame.camera.height}"
        print(f"camera {size}, fx {f[0, 0]:g}, fy {f[1, 1]:g}, cx {f[0, 2]:g}, cy {f[1, 2]:g}")
    if frame is None:
        print("no plot of depth on the image: none of the first frames has depth in view")
    elif frame.image is None:
        print("no plot of depth on the image: the bag has no camera image")
    elif no_plot:
        print(f"no plot of depth on the image: {no_plot}; --output names another")
    else:
        plot.write(encoded_pixels(lidar_overlay(frame.image, frame.need_ground_truth())))
        print(f"depth on the image: {plot.path}")
    for note in source.notes:
        print(note)
    for warning in check.warnings():
        print(f"WARNING: {warning}")
