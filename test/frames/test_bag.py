# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Frames from bags in every format, compared with what was written."""

import shutil
from array import array
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from numpy.testing import assert_allclose, assert_array_equal
from rosbags.convert.converter import convert
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from test.frames.conftest import (
    CAMERA,
    LIDAR_TO_CAMERA,
    PERIOD_NS,
    START_NS,
    image_at,
    points_at,
    recording,
    write_frame,
)
from uncertainty_depth.cli.main import main
from uncertainty_depth.core.config.source import PredictionTopics, SourceConfig
from uncertainty_depth.core.errors import ConfigError, SourceError
from uncertainty_depth.core.geometry.camera import ground_truth_from_cloud
from uncertainty_depth.core.geometry.transforms import parameters_from
from uncertainty_depth.core.records import DepthPrediction, Frame, Skipped
from uncertainty_depth.frames.bag import BagSource
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.frames.messages.camera_info import camera_from_info
from uncertainty_depth.frames.messages.clouds import cloud_points
from uncertainty_depth.frames.messages.images import decode_image
from uncertainty_depth.frames.recording import Topic
from uncertainty_depth.frames.topics import NO_PREDICTIONS, TopicChooser, driver_predictions
from uncertainty_depth.stream.prediction_bag import prediction_sink
from uncertainty_depth.stream.stream import read_ahead

CONFIG = SourceConfig()


def without_metadata(bag):
    (bag / "metadata.yaml").unlink()
    return bag


def as_bare_db3(bag):
    return next(_converted(bag, "sqlite").glob("*.db3"))


def as_ros1(bag):
    store = get_typestore(Stores.ROS1_NOETIC)
    store.register(
        get_types_from_msg("geometry_msgs/TransformStamped[] transforms", "tf2_msgs/msg/TFMessage")
    )
    return _converted(bag, "ros1.bag", typestore=store)


def _converted(bag, name, storage="sqlite3", typestore=None, compress=None, mode="none"):
    filters = dict.fromkeys(
        ("exclude_topics", "include_topics", "exclude_msgtypes", "include_msgtypes"), ()
    )
    convert([bag], bag.parent / name, storage, 8, compress, mode, None, typestore, **filters)
    return bag.parent / name


FORMATS = {
    "mcap": lambda bag: bag,
    "bare mcap": lambda bag: next(bag.glob("*.mcap")),
    "folder without metadata": without_metadata,
    "sqlite3": lambda bag: _converted(bag, "sqlite"),
    "bare db3": as_bare_db3,
    **{
        f"zstd, each {mode}": lambda bag, mode=mode: _converted(
            bag, mode, "mcap", compress="zstd", mode=mode
        )
        for mode in ("message", "storage", "file")
    },
    "ros1": as_ros1,
}


def add_lost(bag, losses):
    """Add a file to a bag of which the recorder says that it lost (in transport, by itself)."""
    stat = "string topic_name\nuint64 messages_lost_in_transport\nuint64 messages_lost_in_recorder"
    event = "string node_name\nMessagesLostEventTopicStat[] messages_lost_statistics"
    store = get_typestore(Stores.LATEST)
    store.register(get_types_from_msg(stat, "rosbag2_interfaces/msg/MessagesLostEventTopicStat"))
    store.register(get_types_from_msg(event, "rosbag2_interfaces/msg/MessagesLostEvent"))
    event, stat = (
        store.types[f"rosbag2_interfaces/msg/MessagesLostEvent{end}"] for end in ("", "TopicStat")
    )
    extra = bag.parent / "extra"
    with Writer(extra, version=8, storage_plugin=StoragePlugin.MCAP) as writer:
        topic = "/events/rosbag2_messages_lost"
        connection = writer.add_connection(topic, event.__msgtype__, typestore=store)
        for place, numbers in enumerate(losses):
            message = event("/rosbag2_recorder", [stat(name, *n) for name, n in numbers.items()])
            data = store.serialize_cdr(message, event.__msgtype__)
            writer.write(connection, START_NS + place, data)
    (bag / "metadata.yaml").unlink()
    shutil.move(next(extra.glob("*.mcap")), bag / "bag_9.mcap")


def test_what_the_recorder_says_that_it_lost_is_noted_for_the_topics_that_are_read(write_bag):
    bag = write_bag()
    image, other = "/camera/image", "/imu"
    add_lost(bag, [{image: (2, 1), other: (9, 9)}, {image: (0, 4), "/lidar/points": (1, 0)}])
    source = BagSource(bag, CONFIG)
    check_frames(source, range(5))
    assert [note for note in source.notes if "lost" in note] == [
        f"{bag}: the recorder lost 7 messages on {image} (2 in transport, 5 by itself)",
        f"{bag}: the recorder lost 1 message on /lidar/points (1 in transport, 0 by itself)",
    ]


def test_info_lists_what_the_recorder_lost_beside_each_topic(write_bag, tmp_path, capsys):
    bag = write_bag()
    add_lost(bag, [{"/camera/image": (2, 1)}, {"/camera/image": (0, 4)}])
    assert main(["info", str(bag), "-o", str(tmp_path / "bag.png")]) == 0
    lines = capsys.readouterr().out.splitlines()
    (image,) = (line for line in lines if "  sensor_msgs/msg/Image" in line)
    assert image.split()[0] == "5"
    assert image.endswith("; 7 more are lost, 2 in transport, 5 by the recorder")
    (cloud,) = (line for line in lines if "  sensor_msgs/msg/PointCloud2" in line)
    assert "lost" not in cloud


def ground_truth_at(index):
    return ground_truth_from_cloud(points_at(index)[:, :3], LIDAR_TO_CAMERA, CAMERA)


def check_frames(source, expected_indices):
    frames = list(source)
    assert [type(frame) for frame in frames] == [Frame] * len(expected_indices)
    for frame, index in zip(frames, expected_indices, strict=True):
        assert_array_equal(frame.image, image_at(index))
        expected = ground_truth_at(index)
        known = np.isfinite(frame.ground_truth_m)
        assert (known == np.isfinite(expected)).mean() > 0.99  # the chain of transforms rounds
        both = np.isfinite(expected) & known
        assert np.median(np.abs(frame.ground_truth_m - expected)[both]) < 1e-5
        assert both.sum() > 50


@pytest.mark.parametrize("as_format", FORMATS.values(), ids=FORMATS.keys())
def test_every_format_gives_the_same_frames_each_time(as_format, write_bag):
    source = BagSource(as_format(write_bag()), CONFIG)
    assert len(source) == 5
    for frames in (source, read_ahead(source)):  # here, and on another thread
        check_frames(frames, range(5))
    assert source.notes == []
    with closing(read_ahead(source)) as begun:
        first = next(begun)
    assert (first.stamp_ns, first.name) == (START_NS, "1700000000.000000000")
    assert_array_equal(first.camera.intrinsics, CAMERA.intrinsics)


def test_ros_deserialises_the_messages_of_a_bag_that_are_decoded_as_rosbags_are(write_bag):
    why = "needs ROS 2: pip install uncertainty_depth[ros]"
    serialization = pytest.importorskip("rclpy.serialization", reason=why)
    sensor_msgs = pytest.importorskip("sensor_msgs.msg", reason=why)
    with Reader(write_bag(frames=1)) as reader:
        for connection, _, data in reader.messages():
            kind = connection.msgtype.rpartition("/")[2]
            if kind == "TFMessage":  # its Python class comes with a ROS distribution only
                continue
            message = serialization.deserialize_message(bytes(data), getattr(sensor_msgs, kind))
            if kind == "Image":
                assert isinstance(message.data, array)
                assert_array_equal(decode_image(message), image_at(0))
            elif kind == "PointCloud2":
                assert [field.name for field in message.fields] == ["x", "y", "z", "intensity"]
                assert_array_equal(cloud_points(message), points_at(0)[:, :3])
            else:
                assert kind == "CameraInfo"
                assert_array_equal(camera_from_info(message).intrinsics, CAMERA.intrinsics)


def write_parts(folder, parts):
    """One MCAP per part, side by side: what each of its frames lacks, and their numbers."""
    folder.mkdir()
    for name, (leave_out, indices) in parts.items():
        with BagWriter(folder.parent / name) as writer:
            if "cloud" not in leave_out:
                writer.static_transforms([("camera", "lidar", LIDAR_TO_CAMERA)])
            for index in indices:
                write_frame(writer, index, leave_out)
        (folder.parent / name / f"{name}.mcap").rename(folder / f"{name}.mcap")
    return folder


PARTS = {
    "by sensor": {"a_camera": ("cloud", range(80)), "b_lidar": ("image info", range(80))},
    "by size": {"part_9": ("", range(40)), "part_10": ("", range(40, 80))},
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS.keys())
def test_files_side_by_side_are_merged_by_time(parts, tmp_path):
    """More frames than the pairing's queue holds: read one file after the other, they are lost."""
    source = BagSource(write_parts(tmp_path / "log", parts), CONFIG)
    assert len(source) == 80
    check_frames(source, range(80))
    assert source.notes == []


def test_a_split_rosbag2_is_read_file_by_file_as_its_metadata_lists_them(tmp_path, write_bag):
    parts = {"b_first": ("", range(40)), "a_second": ("", range(40, 80))}
    folder = write_parts(tmp_path / "log", parts)
    whole = write_bag("whole", frames=80)
    metadata = yaml.safe_load((whole / "metadata.yaml").read_text())
    names = [f"{name}.mcap" for name in parts]
    metadata["rosbag2_bagfile_information"]["relative_file_paths"] = names
    (folder / "metadata.yaml").write_text(yaml.safe_dump(metadata))
    shutil.copy(folder / names[0], folder / "copy.mcap")
    source = BagSource(folder, CONFIG)
    check_frames(source, range(80))
    assert source.notes == []


def test_a_jump_back_in_time_is_noted(tmp_path):
    ascending_ns = iter(range(10**9, 2 * 10**9))

    class RecordedInOrder(BagWriter):
        def message(self, topic, stamp_ns, message, latched=False):
            super().message(topic, next(ascending_ns), message, latched)

    with recording(tmp_path / "bag", RecordedInOrder) as writer:
        for index in [*range(5), *range(5)]:
            write_frame(writer, index)
    source = BagSource(tmp_path / "bag", CONFIG)
    assert len(source) == 10
    check_frames(source, [*range(5), *range(5)])
    assert any("time jumped back" in note for note in source.notes)


def test_given_extrinsics_come_before_those_of_the_bag(write_bag):
    option = SourceConfig(lidar_to_camera=parameters_from(LIDAR_TO_CAMERA))
    for leave_out in ("", "transforms"):
        frame = next(iter(BagSource(write_bag(f"bag{leave_out}", leave_out=leave_out), option)))
        assert_array_equal(frame.ground_truth_m, ground_truth_at(0))
    with pytest.raises(ConfigError, match="has 2 numbers; expected 7"):
        BagSource(write_bag("again"), SourceConfig(lidar_to_camera=(1.0, 2.0)))


def test_an_image_smaller_than_its_camera_info_scales_the_camera(tmp_path):
    small = np.zeros((12, 16, 3), np.uint8)
    with recording(tmp_path / "bag") as writer:
        write_frame(writer, 0, leave_out="image")
        writer.image("/camera/image", START_NS, "camera", small)
    source = BagSource(tmp_path / "bag", CONFIG)
    frame = next(iter(source))
    assert frame.ground_truth_m.shape == (12, 16)
    assert_array_equal(frame.camera.intrinsics, [[10, 0, 7.5], [0, 10, 5.5], [0, 0, 1]])
    assert source.notes == [
        "/camera/image: images are 16x12, their camera info is 32x24: its intrinsics are scaled"
    ]


KINDS = {
    "image": "Image",
    "compressed": "CompressedImage",
    "camera_info": "CameraInfo",
    "points": "PointCloud2",
    "depth": "Image",
    "depth_sigma": "Image",
    "compressedDepth": "CompressedImage",
    "depth_registered": "Image",
    "confidence_map": "Image",
}
ZED = "/zed/zed_node/depth/depth_registered /zed/zed_node/confidence/confidence_map"
CAMERA_ALONE = "/camera/image /camera/camera_info"
STANDARD = f"{CAMERA_ALONE} /lidar/points"
TWO = f"{STANDARD} /rear/image /rear/camera_info /rear/points"
RECTIFIED = f"{STANDARD} /rectified/image"
BOTH_LIDARS = {"image_topic": "/rear/image", "lidar_topic": "/lidar/points, /rear/points"}


def chosen_of(names, options, predictions=NO_PREDICTIONS):
    """The topics chosen if every image is rgb8, but that of depth; one was never published."""
    recorded = {
        name: Topic(f"sensor_msgs/msg/{KINDS[name.rpartition('/')[2]]}", 3)
        for name in names.split()
    }
    recorded["/unused"] = Topic("sensor_msgs/msg/Image", 0)

    def first_message(topic):
        return SimpleNamespace(encoding="16UC1" if "depth" in topic else "rgb8", fields=[])

    config = SourceConfig(**options)
    return TopicChooser("bag", recorded, config, first_message, predictions).choose()


@pytest.mark.parametrize(
    ("names", "options", "sentence"),
    [
        # What is missing is named with what there is.
        ("/lidar/points", {}, r"no messages on any camera image topic; it has /lidar/points \(se"),
        (
            "/a/depth /lidar/points",
            {},
            "no camera image; expected one .*, or --depth-topic /a/depth ",
        ),
        (
            f"{ZED} /lidar/points",
            {},
            "--depth-topic /zed/zed_node/depth/depth_registered --confidence-topic "
            "/zed/zed_node/confidence/confidence_map --confidence-type uncertainty_rank to score",
        ),
        (CAMERA_ALONE, {}, "on any LiDAR point cloud or depth image topic; it has /camera/camera"),
        ("/a/image /b/points", {}, r"no messages on any camera info topic; it has /a/image \(sen"),
        # What is ambiguous is named with the option that chooses.
        (TWO, {}, "2 camera image topics, /camera/image, /rear/image; choose one with --image-"),
        (
            TWO,
            {"image_topic": "/rear/image"},
            "topics, /lidar/points, /rear/points; choose one with --lidar-topic, or several with ",
        ),
        (
            f"{RECTIFIED} /rear/camera_info",
            {"image_topic": "/rectified/image"},
            "topics, /camera/camera_info, /rear/camera_info; choose one with --camera-info-topic",
        ),
        # What is chosen has to be there, with the right type, and must not contradict itself.
        (STANDARD, {"image_topic": "/lidar/points"}, "/PointCloud2; expected sensor_msgs/msg/Im"),
        (STANDARD, {"lidar_topic": "/no"}, r"lidar_topic '/no'; it has /camera/camera_info \(sen"),
        (STANDARD, {"lidar_topic": "/lidar/points,/no"}, "no messages on lidar_topic '/no'"),
        (STANDARD, {"ground_truth_topic": "/no"}, "no messages on ground_truth_topic '/no'"),
        (STANDARD, {"ground_truth_topic": "/camera/camera_info"}, "msg/CameraInfo; expected sens"),
        (STANDARD, {"ground_truth_topic": "/d", "lidar_topic": "/e"}, "expected one of them"),
        (TWO, BOTH_LIDARS | {"lidar_to_camera": (0.0,) * 6 + (1.0,)}, "2 LiDARs and .* one pose"),
    ],
)
def test_topics_that_cannot_be_chosen_are_one_sentence(names, options, sentence):
    with pytest.raises(SourceError, match=sentence):
        chosen_of(names, options)


COMPRESSED = f"{STANDARD} /camera/image/compressed /other/camera_info"


@pytest.mark.parametrize(
    ("names", "options", "chosen"),
    [
        (COMPRESSED, {}, STANDARD),
        (
            COMPRESSED,
            {"image_topic": "/camera/image/compressed"},
            "/camera/image/compressed /camera/camera_info /lidar/points",
        ),
        (TWO, {"image_topic": "/camera/image", "lidar_topic": "/lidar/points"}, STANDARD),
        (
            RECTIFIED,  # the only camera info is taken wherever it is
            {"image_topic": "/rectified/image"},
            "/rectified/image /camera/camera_info /lidar/points",
        ),
    ],
)
def test_topics_that_belong_together_are_chosen(names, options, chosen):
    image, camera_info, lidar = chosen.split()
    assert chosen_of(names, options) == (image, camera_info, (lidar,), "", "", "")


@pytest.mark.parametrize("suffix", ["", "/compressedDepth"])
def test_what_is_scored_is_not_its_own_ground_truth_whatever_its_transport(suffix):
    scored = PredictionTopics(f"/net/depth{suffix}", f"/net/depth_sigma{suffix}")
    names = f"{scored.depth_topic} {scored.confidence_topic} /truth/depth"
    chosen = chosen_of(names, {}, scored)
    assert (chosen.image, chosen.depth_image) == (scored.depth_topic, "/truth/depth")


def test_the_frame_of_an_image_is_its_own_before_its_camera_infos(tmp_path):
    """A driver that gives infos the frame of its other camera; the LiDAR is placed in both."""
    other = LIDAR_TO_CAMERA.copy()
    other[0, 3] += 1
    for image_frame, pose in (("camera", LIDAR_TO_CAMERA), ("", other)):
        with BagWriter(tmp_path / (image_frame or "none")) as writer:
            writer.static_transforms([("camera", "lidar", LIDAR_TO_CAMERA)])
            writer.static_transforms([("camera", "right", LIDAR_TO_CAMERA @ np.linalg.inv(other))])
            for index in range(3):
                stamp_ns = START_NS + index * PERIOD_NS
                writer.camera_info("/camera/camera_info", stamp_ns, "right", CAMERA)
                writer.image("/camera/image", stamp_ns, image_frame, image_at(index))
                writer.cloud("/lidar/points", stamp_ns, "lidar", points_at(index))
        source = BagSource(writer.path, CONFIG)
        assert_allclose(source.lidar_to_camera, pose, atol=1e-9)
        for frame in source:
            assert_allclose(frame.scan.lidar_to_camera, pose, atol=1e-9)


def test_a_writer_that_fails_overwrites_nothing_and_leaves_what_is_not_its_own(
    write_bag, tmp_path
):
    def fail(path, *foreign):
        with BagWriter(path) as writer:
            for name in foreign:
                (path / name).write_text("mine")
            writer.image("/image", 0, "camera", np.zeros((2, 2, 7), np.uint8))

    with pytest.raises(SourceError, match="exists already"):
        BagWriter(write_bag())
    with pytest.raises(KeyError):
        fail(tmp_path / "half")
    assert not (tmp_path / "half").exists()
    with pytest.raises(KeyError):
        fail(tmp_path / "other", "notes")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["notes"]


def test_every_image_is_one_record_whatever_the_clouds_do(tmp_path):
    """Frames 0-9: no cloud for 3 and 4; for 7 one that lies behind the camera."""
    with recording(tmp_path / "bag") as writer:
        for index in range(10):
            write_frame(writer, index, leave_out="cloud" if index in (3, 4, 7) else "")
            if index == 7:
                behind = points_at(7)
                behind[:, 0] = -np.abs(behind[:, 0]) - 1
                writer.cloud("/lidar/points", START_NS + 710_000_000, "lidar", behind)
    records = list(BagSource(tmp_path / "bag", CONFIG))
    reasons = {
        index: record.reason for index, record in enumerate(records) if isinstance(record, Skipped)
    }
    lost = "no_lidar_within_max_time_difference"
    assert len(records) == 10
    assert reasons == {3: lost, 4: lost, 7: "no_lidar_point_in_view"}
    assert [record.stamp_ns for record in records] == [
        START_NS + index * PERIOD_NS for index in range(10)
    ]


@pytest.mark.parametrize("has_image", [True, False])
def test_a_bag_of_predictions_is_described(tmp_path, has_image, capsys):
    """A bag that `evaluate --write-bag` wrote: what the nodes published is no input."""
    depth = np.full((24, 32), 2, np.float32)
    frame = Frame(5, "5", CAMERA, image_at(0) if has_image else None, ground_truth_m=depth)
    with prediction_sink(tmp_path / "bag") as write:
        write(replace(frame, prediction=DepthPrediction(depth, depth / 10)))
    assert main(["info", str(tmp_path / "bag"), "--output", str(tmp_path / "plot.png")]) == 0
    printed = capsys.readouterr().out
    assert "1 images" in printed
    assert "--depth-topic /depth/image_rect --confidence-topic /uncertainty/image_rect" in printed
    assert (tmp_path / "plot.png").exists() == has_image
    if has_image:
        (read,) = BagSource(tmp_path / "bag", CONFIG)
        assert_array_equal(read.image, frame.image)
        assert_array_equal(read.ground_truth_m, depth)


def test_a_frame_of_stamp_0_is_in_the_bag_of_predictions(tmp_path):
    """NYU's first numbered file, say: a bag's reader takes 0 for no stamp."""
    depth = np.full((24, 32), 2, np.float32)
    with prediction_sink(tmp_path / "bag") as write:
        for stamp_ns in (0, PERIOD_NS):
            frame = Frame(stamp_ns, "", CAMERA, image_at(0), ground_truth_m=depth)
            write(replace(frame, prediction=DepthPrediction(depth, depth / 10)))
    records = list(BagSource(tmp_path / "bag", CONFIG))
    assert [type(record) for record in records] == [Frame, Frame]


@pytest.mark.parametrize("has_image", [True, False])
def test_recorded_depth_of_an_unknown_driver_is_told_with_what_its_confidence_can_be(
    tmp_path, has_image, capsys
):
    confidence = np.linspace(1, 100, 24 * 32, dtype=np.float32).reshape(24, 32)
    with recording(tmp_path / "bag") as writer:
        for index in range(3):
            write_frame(writer, index, leave_out="" if has_image else "image")
            stamp_ns = START_NS + index * PERIOD_NS
            writer.image("/a/confidence", stamp_ns, "camera", confidence)
            writer.image("/a/depth", stamp_ns, "camera", np.full((24, 32), 2, np.float32))
    assert main(["info", str(tmp_path / "bag"), "--output", str(tmp_path / "plot.png")]) == 0
    printed = capsys.readouterr().out
    assert (
        f"depth; to score it: uncertainty-depth evaluate {tmp_path / 'bag'} --depth-topic /a/depth"
        " --confidence-topic /a/confidence --confidence-type TYPE --output report\n" in printed
    )
    assert "/a/confidence holds 1 to 100: its manual says which TYPE it is, confide" in printed


def test_a_depth_image_that_is_the_ground_truth_is_not_told_as_recorded_depth(tmp_path, capsys):
    with recording(tmp_path / "bag") as writer:
        for index in range(3):
            write_frame(writer, index, leave_out="cloud")
            stamp_ns = START_NS + index * PERIOD_NS
            writer.image("/a/depth", stamp_ns, "camera", np.full((24, 32), 2, np.float32))
    assert main(["info", str(tmp_path / "bag"), "--output", str(tmp_path / "plot.png")]) == 0
    assert "to score it" not in capsys.readouterr().out


def test_the_sigma_of_a_sigma_node_is_of_the_depth_that_it_corrected():
    topics = ["/depth/image_rect", "/uncertainty/image_rect", "/depth/corrected/image_rect"]
    (one, *_), (other, *_) = map(driver_predictions, (topics[:2], topics))
    assert one.topics == PredictionTopics(topics[0], topics[1])
    assert other.topics == PredictionTopics(topics[2], topics[1])
