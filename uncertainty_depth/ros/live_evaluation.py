"""Scores predictions as they arrive: pairs messages, projects, and fills the same `Evaluation` as the offline command."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.config import EvaluationConfig, EvaluatorNodeConfig
from uncertainty_depth.data.pairing import Outcome, Pairer
from uncertainty_depth.errors import MessageError
from uncertainty_depth.evaluation.evaluation import Evaluation
from uncertainty_depth.geometry.camera import Camera, ground_truth_from_cloud
from uncertainty_depth.messages.clouds import cloud_points
from uncertainty_depth.messages.depth_images import decode_depth, ground_truth_from_depth_image
from uncertainty_depth.messages.stamps import frame_name, stamp_ns
from uncertainty_depth.records import DepthPrediction, Skipped
from uncertainty_depth.ros.exact_pairs import ExactPairs, Unmatched
from uncertainty_depth.ros.extrinsics import Extrinsics
from uncertainty_depth.ros.map_camera import MapCamera

logger = logging.getLogger(__name__)
RUN_OPTIONS = [item.name for item in fields(EvaluationConfig) if item.name != "example_frames"] + [
    "max_time_difference",
    "use_ground_truth_image",
]
"""A score under another value of these is another score."""
UNMATCHED_REASONS = ("depth_without_uncertainty", "uncertainty_without_depth")


@dataclass(frozen=True, eq=False)
class Scored:
    """A frame that was scored: its own figures by dotted name, its maps, and the header of its depth image."""

    figures: dict[str, float]
    prediction: DepthPrediction
    ground_truth_m: NDArray[np.float32]
    header: Any


class LiveEvaluation:
    """Takes messages in the order they arrive, from one thread. Methods that decide frames return what became of each.

    Every prediction ends as `Scored` or as `Skipped` with its reason; nothing waits longer than `queue_size` messages of its kind.
    """

    def __init__(self, config: EvaluatorNodeConfig, extrinsics: Extrinsics) -> None:
        self.config, self.extrinsics = config, extrinsics
        self._camera = MapCamera()
        self.reset()

    def reset(self) -> None:
        """Start anew: scores, counts, and everything that waits."""
        self.evaluation = Evaluation(self.config)
        self._pairs = ExactPairs(self.config.queue_size)
        self._pairer = Pairer(self.config.max_time_difference, self.config.queue_size)
        self._without_camera: deque[Outcome] = deque()
        self._undecided = 0

    def starts_anew(self, config: EvaluatorNodeConfig) -> bool:
        """Whether scores under these options cannot be joined with those so far."""
        return any(getattr(config, name) != getattr(self.config, name) for name in RUN_OPTIONS)

    def reconfigure(self, config: EvaluatorNodeConfig, extrinsics: Extrinsics) -> None:
        """Take new options. Where `starts_anew`, scores and what waits are forgotten: `finish` first."""
        starts_anew = self.starts_anew(config)
        self.config = config
        self.extrinsics = extrinsics
        if starts_anew:
            self.reset()
            return
        self._pairs.queue_size = config.queue_size
        self._pairer.queue_size = config.queue_size
        self.evaluation.config = replace(
            self.evaluation.config, example_frames=config.example_frames
        )
        self.evaluation.examples.resize(config.example_frames)

    @property
    def waiting(self) -> int:
        """Predictions not decided yet: they wait for a later cloud, for the camera info, or for their other half."""
        return self._undecided + len(self._pairs)

    @property
    def pairing_counts(self) -> dict[str, int]:
        """What the pairing of predictions with ground truth counted."""
        return self._pairer.counts

    @property
    def camera_notes(self) -> list[str]:
        """What the camera infos said that whoever reads the scores should know."""
        return self._camera.notes

    def add_camera_info(self, message: Any) -> list[Scored | Skipped]:
        """The camera of the predictions; the latest one counts."""
        self._camera.info = message
        return list(self._results([]))

    def add_ground_truth_info(self, message: Any) -> None:
        """The camera of ground truth images; the latest one counts, and none need come."""
        self._camera.ground_truth_info = message

    def add_depth(self, message: Any) -> list[Scored | Skipped]:
        """A depth image."""
        return self._add_map(0, message)

    def add_sigma(self, message: Any) -> list[Scored | Skipped]:
        """An uncertainty image."""
        return self._add_map(1, message)

    def add_ground_truth(self, message: Any) -> list[Scored | Skipped]:
        """A LiDAR cloud, or a depth image of ground truth."""
        return list(self._results(self._pairer.add_cloud(stamp_ns(message.header), message)))

    def flush(self) -> list[Scored | Skipped]:
        """Decide the predictions that still wait for ground truth."""
        return list(self._results(self._pairer.flush(), keep=0))

    def finish(self) -> list[Scored | Skipped]:
        """As `flush`, and give up the maps that wait for their other half."""
        return [self._skip(_unmatched(each)) for each in self._pairs.flush()] + self.flush()

    def _add_map(self, side: int, message: Any) -> list[Scored | Skipped]:
        pair, lost = self._pairs.add(side, stamp_ns(message.header), message)
        results: list[Scored | Skipped] = [self._skip(_unmatched(each)) for each in lost]
        if pair is not None:
            self._undecided += 1
            results += self._results(self._pairer.add_reference(stamp_ns(message.header), pair))
        return results

    def _results(
        self, outcomes: Iterable[Outcome], keep: int | None = None
    ) -> Iterator[Scored | Skipped]:
        """Score what was decided; before the first camera info, at most `keep` frames (the queue's size) wait for it."""
        self._without_camera.extend(outcomes)
        if self._camera.info is None and not self.config.use_ground_truth_image:
            ready = max(
                0, len(self._without_camera) - (self.config.queue_size if keep is None else keep)
            )
        else:
            ready = len(self._without_camera)
        for _ in range(ready):
            yield self._result(self._without_camera.popleft())

    def _result(self, outcome: Outcome) -> Scored | Skipped:
        self._undecided -= 1
        try:
            return self._score(*outcome)
        except MessageError as error:
            return self._skip(Skipped(outcome.stamp_ns, error.reason, str(error)))
        except (
            Exception
        ) as error:  # whatever a hostile message raises costs one frame, not the run
            logger.exception("a frame failed")
            sentence = f"frame {frame_name(outcome.stamp_ns)}: {type(error).__name__}: {error}"
            return self._skip(Skipped(outcome.stamp_ns, "failed", sentence))

    def _score(self, stamp_ns: int, maps: tuple[Any, Any], truth: Any | None) -> Scored | Skipped:
        depth, sigma = maps
        prediction = DepthPrediction(decode_depth(depth), decode_depth(sigma))
        _same_size("uncertainty", prediction.sigma_m, prediction.depth_m)
        name = frame_name(stamp_ns)
        if truth is None:
            raise MessageError(*self._no_truth(name))
        ground_truth_m = self._ground_truth(truth, depth, prediction, name)
        camera = self._known_camera(prediction)
        figures = self.evaluation.add(name, stamp_ns, prediction, ground_truth_m, camera=camera)
        if figures is None:  # already counted by the evaluation
            return Skipped(
                stamp_ns, "no_valid_pixel", f"frame {name} has no pixel that can be scored"
            )
        return Scored(figures, prediction, ground_truth_m, depth.header)

    def _known_camera(self, prediction: DepthPrediction) -> Camera | None:
        """The camera of the maps; None where it is not known, which a depth image can do without."""
        if self._camera.info is None:
            return None
        height, width = prediction.depth_m.shape
        try:
            return self._camera.camera(width, height)
        except MessageError:
            return None

    def _no_truth(self, name: str) -> tuple[str, str]:
        kind = "ground_truth_image" if self.config.use_ground_truth_image else "lidar"
        return (
            f"no_{kind}_within_max_time_difference",
            f"no {kind} within {self.config.max_time_difference} s of frame {name}",
        )

    def _ground_truth(
        self, truth: Any, depth: Any, prediction: DepthPrediction, name: str
    ) -> NDArray[np.float32]:
        if self.config.use_ground_truth_image:
            return self._camera.as_maps(
                ground_truth_from_depth_image(truth, prediction.depth_m.shape)
            )
        if self._camera.info is None:
            raise MessageError(
                "no_camera_info", f"no camera info has come when frame {name} was scored"
            )
        points = cloud_points(truth)
        if not len(points):
            raise MessageError(
                "cloud_without_points", f"the cloud for frame {name} has no finite point"
            )
        height, width = prediction.depth_m.shape
        camera = self._camera.camera(width, height)
        lidar_to_camera = self.extrinsics.lookup(
            depth.header.frame_id, truth.header.frame_id, truth.header.stamp
        )
        ground_truth_m = ground_truth_from_cloud(points, lidar_to_camera, camera, self.config)
        if np.isnan(ground_truth_m).all():
            raise MessageError("no_lidar_point_in_view", f"no LiDAR point falls into frame {name}")
        return ground_truth_m

    def _skip(self, record: Skipped) -> Skipped:
        self.evaluation.skip(record)
        return record


def _unmatched(each: Unmatched) -> Skipped:
    reason = UNMATCHED_REASONS[each.side]
    return Skipped(
        each.stamp_ns, reason, f"frame {frame_name(each.stamp_ns)}: {reason.replace('_', ' ')}"
    )


def _same_size(name: str, values: NDArray, depth_m: NDArray) -> None:
    if values.shape != depth_m.shape:
        raise MessageError(
            f"{name}_wrong_size",
            f"the {name} image is {values.shape[::-1]} pixels; expected the depth's {depth_m.shape[::-1]}",
        )
