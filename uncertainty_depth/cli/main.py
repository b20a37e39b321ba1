# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Run the `uncertainty-depth` command; the only code that prints and exits."""

from __future__ import annotations

import argparse
import faulthandler
import json
import logging
import shlex
import sys
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from tqdm.contrib.logging import logging_redirect_tqdm

from uncertainty_depth.cli.arguments import build_parser
from uncertainty_depth.cli.calibrate import calibrate
from uncertainty_depth.cli.compare import compare, merge
from uncertainty_depth.cli.evaluate import evaluate
from uncertainty_depth.cli.familiarity import familiarity
from uncertainty_depth.cli.train import train, wrap
from uncertainty_depth.cli.view import view
from uncertainty_depth.config import (
    ColorConfig,
    PlayerConfig,
    PredictorConfig,
    SourceConfig,
    SynthesisConfig,
)
from uncertainty_depth.errors import SourceError, UncertaintyDepthError
from uncertainty_depth.experiments.registry import EXPERIMENTS
from uncertainty_depth.model_location import check_location
from uncertainty_depth.options import from_arguments
from uncertainty_depth.records import Skipped
from uncertainty_depth.shipped_model import model_path

if TYPE_CHECKING:
    from uncertainty_depth.data.source import Source
    from uncertainty_depth.ros.player.bag_publisher import Played

TEARDOWN_S = 10.0
Command = Callable[[argparse.Namespace], None]
logger = logging.getLogger(__name__)
INFO_FRAMES = 50  # first frames of a bag that `info` looks at


def predict(arguments: argparse.Namespace) -> None:
    """Predict depth and sigma of image files: TIFF maps in metres, and a plot of each."""
    check_location(model_path(arguments.model))
    from uncertainty_depth.inference.predict_files import predict_files
    from uncertainty_depth.inference.predictor import Predictor

    predictor = Predictor(arguments.model, from_arguments(PredictorConfig, arguments))
    if predictor.sparse_input is not None:
        logger.warning(
            "%s takes sparse depth beside the image, and image files bring none: depth is from "
            "the image alone",
            predictor.model.name,
        )
    colors = from_arguments(ColorConfig, arguments)
    unreadable = []
    for result in predict_files(predictor, arguments.images, arguments.output, colors):
        if isinstance(result, Skipped):
            unreadable.append(result.message)
        else:
            print(result)
    if unreadable:
        count = f"{len(unreadable)} of {len(arguments.images)} images"
        raise SourceError(f"{count} could not be read: {'; '.join(unreadable)}")


def export(arguments: argparse.Namespace) -> None:
    """Write a model as ONNX graphs: what samples share, and what each has of its own."""
    check_location(model_path(arguments.model))
    from uncertainty_depth.engines.export import export as export_graphs

    for path in export_graphs(arguments.model, arguments.output, arguments.method):
        print(path)


def convert_kitti(arguments: argparse.Namespace) -> None:
    """Convert a KITTI raw drive to a rosbag2 (MCAP) with image, points and /tf_static."""
    from uncertainty_depth.writers.convert_kitti import convert

    convert(arguments.drive, arguments.bag)
    print(f"bag written to {arguments.bag}")


def synthesize(arguments: argparse.Namespace) -> None:
    """Render synthetic worlds into a rosbag2 (MCAP) with camera and LiDAR."""
    from uncertainty_depth.synthetic.source import synthesize as render

    render(arguments.bag, from_arguments(SynthesisConfig, arguments))
    print(f"bag written to {arguments.bag}")


def info(arguments: argparse.Namespace) -> None:
    """Describe a bag and plot its LiDAR on its image, or describe a model folder."""
    from uncertainty_depth.data.bag import BagSource
    from uncertainty_depth.data.recording import Recording

    if (model_path(arguments.bag) / "model.json").is_file():
        print(_described(arguments.bag))
        return
    with Recording(arguments.bag).open() as recording:
        for name, topic in sorted(recording.topics.items()):
            print(f"{topic.count:8} {name}  {topic.kind}")
    source = BagSource(arguments.bag, from_arguments(SourceConfig, arguments))
    camera = f"camera {source.topics.image} with {source.topics.camera_info or 'no camera info'}"
    depth = "LiDAR" if source.topics.lidar else "depth image"
    print(f"{camera}, {depth} {', '.join(source.topics.ground_truths)}")
    if source.lidar_to_camera is not None:
        _print_transform(source.lidar_to_camera)
    _check_geometry(source, arguments.output or Path(f"{arguments.bag.resolve().name}.png"))


def _print_transform(lidar_to_camera: NDArray[np.float64]) -> None:
    from uncertainty_depth.geometry.transforms import option_from

    numbers = option_from(lidar_to_camera)
    print(f"for a command: --lidar-to-camera {numbers}")
    print(f"for a node:    lidar_to_camera:=[{numbers.replace(' ', ', ')}]")


def _check_geometry(source: Source, plot: Path) -> None:
    """Plot the depth on the image, and print what the first frames say of the geometry."""
    from uncertainty_depth.data.checked_source import CheckedSource
    from uncertainty_depth.evaluation.overlay import write_overlay
    from uncertainty_depth.records import Frame

    checked = CheckedSource(source)
    frame = None
    for record in islice(checked, INFO_FRAMES):
        if frame is None and isinstance(record, Frame):
            frame = record
    print(f"geometry of the first frames: {checked.check.description()}")
    if frame is None:
        print("no plot of depth on the image: none of the first frames has depth in view")
    else:
        write_overlay(plot, frame.image, frame.ground_truth_m)
        print(f"depth on the image: {plot}")
    for note in checked.source.notes:
        print(note)
    for warning in checked.check.warnings():
        print(f"WARNING: {warning}")


def _described(model: Path) -> str:
    from uncertainty_depth.model_folder.folder import read

    return "\n".join(f"{name:14} {value}" for name, value in read(model).describe().items())


def play(arguments: argparse.Namespace) -> None:
    """Publish a bag into ROS 2, where there is no `ros2 bag play`."""
    from uncertainty_depth.ros.player.player import play as play_bag

    def tell(played: Played) -> None:
        sent = ", ".join(f"{count} {topic}" for topic, count in sorted(played.sent.items()))
        print(f"sent {sent or 'nothing'}", flush=True)
        for topic, count in sorted(played.unsendable.items()):
            logger.warning("%d messages on %s cannot be published", count, topic)
        if arguments.json:
            account = {
                "sent": dict(played.sent),
                "skipped": played.skipped,
                "unsendable": dict(played.unsendable),
                "unanswered": played.unanswered,
            }
            arguments.json.write_text(json.dumps(account, indent=2))
        # The middleware can hang while it is left, and then holds the interpreter's lock.
        faulthandler.dump_traceback_later(TEARDOWN_S, exit=True)

    try:
        play_bag(arguments.bag, from_arguments(PlayerConfig, arguments), at_end=tell)
    finally:
        faulthandler.cancel_dump_traceback_later()


def bench(arguments: argparse.Namespace) -> None:
    """Measure speed: network and node, or what an option names; and reading of sources."""
    from uncertainty_depth.bench import (
        run_budget,
        run_delivery,
        run_engines,
        run_metrics,
        run_network,
        run_reading,
        run_startup,
        run_training,
    )
    from uncertainty_depth.data.source import open_source

    sources = [open_source(source, SourceConfig()) for source in arguments.source]
    if arguments.metrics:
        print(run_metrics(arguments.busy))
    if arguments.training:
        print(run_training())
    if arguments.delivery:
        print(run_delivery())
    if arguments.budget:
        print(run_budget())
    if arguments.engines:
        print(run_engines())
    if arguments.startup:
        print(run_startup())
    measured = ("metrics", "training", "delivery", "budget", "engines", "startup")
    if not any(getattr(arguments, name) for name in measured):
        print(run_network())
    for source in sources:
        print("\n" + run_reading(source))


def experiment(arguments: argparse.Namespace) -> None:
    """Repeat an experiment of the papers; a run that was killed resumes where it stopped."""
    EXPERIMENTS[arguments.name].run(
        arguments.output, arguments.seeds, arguments.quick, arguments.data
    )
    print(f"results in {arguments.output}")


def demo(arguments: argparse.Namespace) -> None:
    """Play a synthetic bag through depth node and evaluator node, and print the scores."""
    from uncertainty_depth.cli.demo import run

    for line in run(arguments.output):
        print(line)


def soak(arguments: argparse.Namespace) -> None:
    """Run the whole graph for some minutes; fail where memory, threads or descriptors grow."""
    from uncertainty_depth.ros.requirements import require_ros

    require_ros()
    from uncertainty_depth.ros.soak.run import run

    for line in run(arguments.minutes, model_path(arguments.model), arguments.output):
        print(line)


COMMANDS: dict[str, Command] = {
    "train": train,
    "wrap": wrap,
    "evaluate": evaluate,
    "compare": compare,
    "merge": merge,
    "predict": predict,
    "calibrate": calibrate,
    "export": export,
    "familiarity": familiarity,
    "convert-kitti": convert_kitti,
    "synthesize": synthesize,
    "info": info,
    "play": play,
    "view": view,
    "bench": bench,
    "experiment": experiment,
    "demo": demo,
    "soak": soak,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; user errors become one sentence and exit code 1, failed requirements 3."""
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = build_parser(COMMANDS).parse_args(words)
    arguments.command_line = shlex.join(["uncertainty-depth", *words])
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        with logging_redirect_tqdm():  # or a message would stand on the line of a bar
            arguments.command(arguments)
    except UncertaintyDepthError as error:
        print(f"uncertainty-depth: {error}", file=sys.stderr)
        return error.exit_code
    except (
        OSError
    ) as error:  # a folder that is a file, a disk that is full, a path without permission
        print(
            f"uncertainty-depth: {error.filename or 'reading or writing'}: "
            f"{error.strerror or error}",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        hint = (
            "; --resume goes on after the last finished epoch"
            if hasattr(arguments, "resume")
            else ""
        )
        print(f"uncertainty-depth: interrupted{hint}", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
