"""A bag as ROS 2 messages: topic, time and CDR bytes, whichever format it was recorded in."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from rosbags.convert.converter import migrate_bytes
from rosbags.highlevel import AnyReader, AnyReaderError
from rosbags.interfaces import Connection, ConnectionExtRosbag1, QosDurability
from rosbags.typesys import Stores, get_typestore

from uncertainty_depth.errors import SourceError


@dataclass(frozen=True)
class RecordedTopic:
    """A topic of a bag. `latched`: late subscribers were given the last message."""

    name: str
    type: str
    latched: bool
    count: int


class BagMessages:
    """A bag open for reading; a context manager. ROS 1 messages are converted to their ROS 2 namesakes on the way."""

    def __init__(self, bag: Path) -> None:
        """Open `bag`.

        Raises:
            SourceError: when it does not exist or cannot be read.
        """
        if not bag.exists():
            raise SourceError(f"no such bag: {bag}")
        self._bag, self._store = bag, get_typestore(Stores.ROS2_HUMBLE)
        try:
            self._reader = AnyReader([bag], default_typestore=self._store)
            self._reader.open()
        except (AnyReaderError, OSError) as error:
            raise SourceError(f"cannot read bag {bag}: {error}") from error
        self._plans: dict[str, object] = {}

    def __enter__(self) -> BagMessages:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._reader.close()

    def topics(self) -> dict[str, RecordedTopic]:
        """Every topic of the bag by name. A ROS 1 type without a ROS 2 namesake is listed all the same."""
        counts = {connection.topic: 0 for connection in self._reader.connections}
        for connection in self._reader.connections:
            counts[connection.topic] += connection.msgcount
        return {each.topic: RecordedTopic(each.topic, each.msgtype, _latched(each), counts[each.topic]) for each in self._reader.connections}

    def messages(self, topics: Collection[str]) -> Iterator[tuple[str, int, bytes]]:
        """(topic, time of recording in nanoseconds, CDR bytes) of the named topics, in order of time.

        Raises:
            SourceError: where the bag breaks off; what came before has been given.
        """
        wanted = [connection for connection in self._reader.connections if connection.topic in topics]
        try:
            for connection, log_ns, data in self._reader.messages(wanted) if wanted else ():
                yield connection.topic, log_ns, self._cdr(connection, data)
        except (AnyReaderError, OSError, ValueError) as error:
            raise SourceError(f"bag {self._bag} breaks off: {error}") from error

    def _cdr(self, connection: Connection, data: bytes) -> bytes:
        if self._reader.is2:
            return bytes(data)
        kind = connection.msgtype
        return bytes(migrate_bytes(self._reader.typestore, self._store, kind, kind, self._plans, data, src_is2=False, dst_is2=True))


def _latched(connection: Connection) -> bool:
    if isinstance(connection.ext, ConnectionExtRosbag1):
        return bool(connection.ext.latching)
    return any(qos.durability == QosDurability.TRANSIENT_LOCAL for qos in connection.ext.offered_qos_profiles)
