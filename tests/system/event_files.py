# SPDX-License-Identifier: Apache-2.0
"""A reader of TensorBoard event files that shares nothing with what writes them.

Protobuf's own library reads the messages, by a description that is made here of the published numbers of their fields.
Checksums are computed bit by bit, as RFC 3720 describes them.
Where TensorBoard itself is installed (Debian has none), it reads every file, too, and must find the same."""
import math
import struct
from typing import NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    EventAccumulator = None

ONE_OF = {"Value": ("simple_value", "histo")}  # message -> the fields of which it has one, also where that is 0
KINDS = {"double": 1, "float": 2, "int64": 3, "string": 9, "message": 11}
# message -> (field, number, kind, repeated, message of the field)
SCHEMA = {
    "HistogramProto": [("min", 1, "double"), ("max", 2, "double"), ("num", 3, "double"), ("sum", 4, "double"), ("sum_squares", 5, "double"),
                       ("bucket_limit", 6, "double", True), ("bucket", 7, "double", True)],
    "Value": [("tag", 1, "string"), ("simple_value", 2, "float"), ("histo", 5, "message", False, "HistogramProto")],
    "Summary": [("value", 1, "message", True, "Value")],
    "Event": [("wall_time", 1, "double"), ("step", 2, "int64"), ("file_version", 3, "string"), ("summary", 5, "message", False, "Summary")],
}


def messages():
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="published", syntax="proto3")
    for name, fields in SCHEMA.items():
        made = file.message_type.add(name=name)
        chosen = ONE_OF.get(name, ())
        if chosen:
            made.oneof_decl.add(name="value")
        for field, number, kind, *more in fields:
            item = made.field.add(name=field, number=number, type=KINDS[kind], label=3 if more and more[0] else 1)
            if field in chosen:
                item.oneof_index = 0
            if len(more) > 1:
                item.type_name = ".published." + more[1]
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName("published.Event")
    newer = getattr(message_factory, "GetMessageClass", None)  # of protobuf 4.22
    return newer(found) if newer else message_factory.MessageFactory(pool).GetPrototype(found)


Event = messages()


def crc32c(data):
    """The remainder of a division by the polynomial, bit after bit."""
    register = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            odd = (register ^ byte >> bit) & 1
            register = register >> 1 ^ (0x82F63B78 if odd else 0)
    return register ^ 0xFFFFFFFF


def masked(data):
    value = crc32c(data)
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) % (1 << 32))


class Scalar(NamedTuple):
    step: int
    tag: str
    value: float
    wall_time: float


def read(path):
    """The events of a file, none before its first record is whole, and how many bytes at its end are no whole record. Asserts
    what must hold of every file."""
    with open(path, "rb") as file:
        data = file.read()
    events, at = [], 0
    while at + 12 <= len(data):
        length = struct.unpack_from("<Q", data, at)[0]
        assert data[at + 8:at + 12] == masked(data[at:at + 8]), ("checksum of a length", path, at)
        if at + 16 + length > len(data):
            break
        body = data[at + 12:at + 12 + length]
        assert data[at + 12 + length:at + 16 + length] == masked(body), ("checksum of a message", path, at)
        event = Event()
        event.ParseFromString(body)
        assert all(value.WhichOneof("value") for value in event.summary.value), ("a value is missing", path, at)
        events.append(event)
        at += 16 + length
    assert not events or events[0].file_version == "brain.Event:2", path
    if events and EventAccumulator:
        compare(path, events[1:])
    return events, len(data) - at


def scalars(path):
    return [Scalar(event.step, value.tag, value.simple_value, event.wall_time)
            for event in read(path)[0][1:] for value in event.summary.value]


def same(one, other):
    return one == other or math.isnan(one) and math.isnan(other)


def compare(path, events):
    """With what TensorBoard reads of a file; it may have grown since."""
    theirs = EventAccumulator(path, size_guidance={"scalars": 0, "histograms": 0}, purge_orphaned_data=False).Reload()
    ours = {}
    for event in events:
        for value in event.summary.value:
            ours.setdefault((value.HasField("histo"), value.tag), []).append((event.step, event.wall_time, value))
    for (histogram, tag), values in ours.items():
        found = (theirs.Histograms if histogram else theirs.Scalars)(tag)
        assert len(found) >= len(values), (path, tag)
        for (step, time, value), there in zip(values, found):
            assert (there.step, there.wall_time) == (step, time), (path, tag, step)
            if histogram:
                for name, *_ in SCHEMA["HistogramProto"]:
                    one, other = getattr(value.histo, name), getattr(there.histogram_value, name)
                    assert (list(one) == list(other)) if "bucket" in name else one == other, (path, tag, step, name)
            else:
                assert same(value.simple_value, there.value), (path, tag, step)
