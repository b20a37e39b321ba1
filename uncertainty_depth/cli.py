"""The `uncertainty-depth` command: reads arguments, calls the core, and is the only place that prints and exits."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from uncertainty_depth import __version__
from uncertainty_depth.config import (
    CalibrationConfig,
    EvaluationConfig,
    NetworkConfig,
    PlayerConfig,
    PredictorConfig,
    SourceConfig,
    SynthesisConfig,
    TrainingConfig,
)
from uncertainty_depth.errors import UncertaintyDepthError
from uncertainty_depth.experiments.registry import EXPERIMENTS
from uncertainty_depth.options import add_arguments, from_arguments, to_mapping

SOURCE_HELP = """a bag (rosbag2 folder, .mcap, .db3, or a ROS 1 .bag), nyu:DIR (nyu:DIR:train, nyu:DIR:test),
kitti:DRIVE_DIR, or synthetic: (synthetic:worlds=4,frames=20,seed=1)"""
Command = Callable[[argparse.Namespace], None]


def train(arguments: argparse.Namespace) -> None:
    """Train a network on a source and write a model folder; killed at any moment, --resume goes on."""
    from uncertainty_depth.data.source import open_source
    from uncertainty_depth.training import train as train_model

    source = open_source(arguments.source, from_arguments(SourceConfig, arguments))
    network, training = from_arguments(NetworkConfig, arguments), from_arguments(TrainingConfig, arguments)
    print(f"model written to {train_model(source, arguments.output, network, training, resume=arguments.resume)}")


def evaluate(arguments: argparse.Namespace) -> None:
    """Score a model on every frame of a source, without ROS, and write a report."""
    from uncertainty_depth import report, summary
    from uncertainty_depth.data.prediction_bag import prediction_sink
    from uncertainty_depth.data.source import open_source
    from uncertainty_depth.evaluate import run
    from uncertainty_depth.predictor import Predictor

    report.check_folder(arguments.output)
    options = from_arguments(SourceConfig, arguments)
    source = open_source(arguments.source, options)
    predictor = Predictor(arguments.model, from_arguments(PredictorConfig, arguments))
    with ExitStack() as stack:
        sinks = [stack.enter_context(prediction_sink(arguments.write_bag))] if arguments.write_bag else []
        evaluation = run(source, predictor, from_arguments(EvaluationConfig, arguments), sinks)
    context = report.Context(arguments.source, predictor.describe(), tuple(source.notes), to_mapping(options))
    page = report.write(evaluation, arguments.output, context)
    print(summary.table(evaluation.summary()))
    print(f"report: {page}")


def predict(arguments: argparse.Namespace) -> None:
    """Predict depth and sigma of image files: 32-bit TIFF maps in metres, and a picture of each to look at."""
    from uncertainty_depth.predict_files import predict_files
    from uncertainty_depth.predictor import Predictor

    predictor = Predictor(arguments.model, from_arguments(PredictorConfig, arguments))
    for path in predict_files(predictor, arguments.images, arguments.output):
        print(path)


def calibrate(arguments: argparse.Namespace) -> None:
    """Fit a monotone map from raw to calibrated sigma to ground truth, write it into the model folder, and report on frames not used."""
    from uncertainty_depth.calibration import report
    from uncertainty_depth.calibration.run import calibrate as calibrate_sigma
    from uncertainty_depth.data.source import open_source
    from uncertainty_depth.network.folder import set_calibration
    from uncertainty_depth.predictor import Predictor
    from uncertainty_depth.report import check_folder

    if arguments.output:
        check_folder(arguments.output)
    sources = [open_source(source, from_arguments(SourceConfig, arguments)) for source in arguments.source]
    predictor = Predictor(arguments.model, replace(from_arguments(PredictorConfig, arguments), calibrated=False))
    config = from_arguments(CalibrationConfig, arguments)
    calibration = calibrate_sigma(sources, predictor, config)
    context = report.Context(tuple(arguments.source), predictor.describe(), config)
    print(report.table(calibration))
    if arguments.output or not arguments.dry_run:
        report.write(calibration, arguments.output or arguments.model, context)
    if not arguments.dry_run:
        set_calibration(arguments.model, predictor.calibration_key, calibration.choice.sigma_map, report.record(calibration, context))
        print(f"calibration of {predictor.method} written to {arguments.model}")


def convert_kitti(arguments: argparse.Namespace) -> None:
    """Convert a KITTI raw drive to a rosbag2 (MCAP) with image, camera_info, points and /tf_static."""
    from uncertainty_depth.data.convert_kitti import convert

    convert(arguments.drive, arguments.bag)
    print(f"bag written to {arguments.bag}")


def synthesize(arguments: argparse.Namespace) -> None:
    """Render the synthetic world into a rosbag2 (MCAP): camera and LiDAR on a robot that drives through it."""
    from uncertainty_depth.data.synthetic import synthesize as render

    render(arguments.bag, from_arguments(SynthesisConfig, arguments))
    print(f"bag written to {arguments.bag}")


def play(arguments: argparse.Namespace) -> None:
    """Publish a bag into ROS 2, where there is no `ros2 bag play`."""
    from uncertainty_depth.ros.player import play as play_bag

    played = play_bag(arguments.bag, from_arguments(PlayerConfig, arguments))
    print("sent " + ", ".join(f"{count} {topic}" for topic, count in sorted(played.sent.items())))
    if arguments.json:
        account = {"sent": dict(played.sent), "skipped": played.skipped, "unanswered": played.unanswered}
        arguments.json.write_text(json.dumps(account, indent=2))


def bench(arguments: argparse.Namespace) -> None:
    """Print ratios measured in one run: sampling against the naive way and the floor, the node, the reading of bags."""
    from uncertainty_depth.bench import run_metrics, run_network, run_reading

    if arguments.metrics:
        print(run_metrics())
        return
    print(run_network())
    for source in arguments.source:
        print("\n" + run_reading(source))


def experiment(arguments: argparse.Namespace) -> None:
    """Repeat an experiment of the papers: a table, JSON and the figure; killed, it goes on where it was."""
    EXPERIMENTS[arguments.name].run(arguments.output, arguments.seeds, arguments.quick)
    print(f"results in {arguments.output}")


def demo(arguments: argparse.Namespace) -> None:
    """Make a world and a bag, run player, depth node and evaluator node on real ROS 2, and print the scores."""
    from uncertainty_depth.demo import run

    for line in run(arguments.output):
        print(line)


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser("uncertainty-depth", description="Monocular depth with an error bar, and the scores of the error bar.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(name: str, command: Command, *configs: type, example: str) -> argparse.ArgumentParser:
        text = (command.__doc__ or "").strip()
        epilog = f"example: uncertainty-depth {name} {example}"
        made = commands.add_parser(name, help=text, description=text, epilog=epilog)
        for config in configs:
            add_arguments(made, config)
        made.set_defaults(command=command)
        return made

    one = add("train", train, NetworkConfig, TrainingConfig, SourceConfig, example="my_bag --output my_model --head laplace")
    one.add_argument("source", help=SOURCE_HELP)
    one.add_argument("--output", type=Path, required=True, metavar="MODEL", help="model folder to write")
    one.add_argument("--resume", action="store_true", help="go on with an interrupted training in the same folder")

    one = add("evaluate", evaluate, PredictorConfig, EvaluationConfig, SourceConfig, example="my_bag --model my_model --output my_report")
    one.add_argument("source", help=SOURCE_HELP)
    one.add_argument("--model", type=Path, required=True, help="model folder")
    one.add_argument("--output", type=Path, required=True, metavar="REPORT", help="folder for summary.json, frames.csv, plots and report.html")
    one.add_argument("--write-bag", type=Path, metavar="OUT", help="also write a bag with the predictions, to look at in RViz")

    one = add("predict", predict, PredictorConfig, example="photo.jpg --model my_model --output maps")
    one.add_argument("images", type=Path, nargs="+", help="image files")
    one.add_argument("--model", type=Path, required=True, help="model folder")
    one.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for the maps")

    one = add("calibrate", calibrate, PredictorConfig, CalibrationConfig, SourceConfig, example="my_model my_bag another_bag --output my_calibration")
    one.add_argument("model", type=Path, metavar="MODEL", help="model folder")
    one.add_argument("source", nargs="+", metavar="SOURCE", help=f"one or more sequences, each {SOURCE_HELP}")
    one.add_argument("--output", type=Path, metavar="DIR", help="folder for calibration.json and calibration.png (default: the model folder)")
    one.add_argument("--dry-run", action="store_true", help="only report: leave the model folder as it is")

    one = add("convert-kitti", convert_kitti, example="2011_09_26/2011_09_26_drive_0001_sync kitti_bag")
    one.add_argument("drive", type=Path, metavar="DRIVE_DIR", help="drive folder, beside its date's calibration files, e.g. 2011_09_26/..._sync")
    one.add_argument("bag", type=Path, metavar="OUT_BAG", help="bag folder to write")

    one = add("synthesize", synthesize, SynthesisConfig, example="world_bag --worlds 4 --frames 20 --test-objects")
    one.add_argument("bag", type=Path, metavar="OUT_BAG", help="bag folder to write")

    one = add("play", play, PlayerConfig, example="my_bag --clock --rate 0.5")
    one.add_argument("bag", type=Path, help="bag to publish")
    one.add_argument("--json", type=Path, metavar="FILE", help="write how many messages of each topic were sent, and what was left out")

    one = add("bench", bench, example="--source kitti:2011_09_26/2011_09_26_drive_0001_sync")
    one.add_argument("--metrics", action="store_true", help="the metrics against their peers instead of the network")
    one.add_argument("--source", nargs="*", default=[], help="sources with LiDAR for the reading, projection and scoring rate, e.g. kitti:DRIVE_DIR")

    one = add("experiment", experiment, example="toy-cubic --output cubic --quick")
    one.add_argument("name", choices=EXPERIMENTS, help="; ".join(f"{name}: {one.description}" for name, one in EXPERIMENTS.items()))
    one.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for table, JSON and figure")
    one.add_argument("--seeds", type=int, help="repetitions (default: the experiment's own)")
    one.add_argument("--quick", action="store_true", help="a small version, under two minutes on two cores")

    one = add("demo", demo, example="--output demo_output")
    one.add_argument("--output", type=Path, default=Path("demo_output"), metavar="DIR", help="folder for bag, report and pictures")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; errors a user can mend become one sentence and exit code 1."""
    arguments = build_parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        arguments.command(arguments)
    except UncertaintyDepthError as error:
        print(f"uncertainty-depth: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("uncertainty-depth: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
