"""Keeps what a rig answers, and answers it again without the rig: tests of Blender files run without Blender.

    replayed_rig.py record FILE PROGRAM ARGUMENTS...      stands between Understudy and a worker, and adds to FILE
    replayed_rig.py replay FILE                           answers from FILE; other poses than those fail
"""

import os
import struct
import subprocess
import sys


def frame(source):
    head = source.read(12)
    if len(head) < 12:
        return None
    _, tag, length = struct.unpack("<4s4sI", head)
    return tag, source.read(length)


def send(sink, tag, payload):
    sink.write(struct.pack("<4s4sI", b"rig1", tag, len(payload)) + payload)
    sink.flush()


def read(path):
    """The description, counts of vertices and bones, and answers by the controls' bytes."""
    with open(path, "rb") as file:
        description = file.read(struct.unpack("<I", file.read(4))[0])
        count, shape = struct.unpack("<I", file.read(4))[0], file.read(8)
        poses = {}
        for _ in range(count):
            key, answer = struct.unpack("<II", file.read(8))
            key = file.read(key)
            poses[key] = file.read(answer)
    return description, shape, poses


def record(path, words, source, sink):
    worker = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    description, shape, poses = read(path) if os.path.exists(path) else (b"", b"", {})
    while request := frame(source):
        send(worker.stdin, *request)
        answer = frame(worker.stdout)
        send(sink, *answer)
        if request[0] == b"desc":
            description = answer[1]
            continue
        count, controls = struct.unpack_from("<II", request[1])
        each = (len(answer[1]) - 12) // count
        for pose in range(count):
            key = request[1][8 + 4 * controls * pose:8 + 4 * controls * (pose + 1)]
            poses[key] = answer[1][12 + each * pose:12 + each * (pose + 1)]
        shape = answer[1][4:12]
    with open(path, "wb") as file:
        file.write(struct.pack("<I", len(description)) + description + struct.pack("<I", len(poses)) + shape)
        for key, answer in poses.items():
            file.write(struct.pack("<II", len(key), len(answer)) + key + answer)
    worker.stdin.close()
    worker.wait()


def replay(path, source, sink):
    description, shape, poses = read(path)
    while request := frame(source):
        if request[0] == b"desc":
            send(sink, b"rig ", description)
            continue
        count, controls = struct.unpack_from("<II", request[1])
        keys = [request[1][8 + 4 * controls * pose:8 + 4 * controls * (pose + 1)] for pose in range(count)]
        missing = [place for place, key in enumerate(keys) if key not in poses]
        if missing:
            send(sink, b"fail", struct.pack("<I", missing[0]) + b"this pose was not recorded")
        else:
            send(sink, b"pose", struct.pack("<I", count) + shape + b"".join(poses[key] for key in keys))


if __name__ == "__main__":
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    if sys.argv[1] == "record":
        record(sys.argv[2], sys.argv[3:], sys.stdin.buffer, output)
    else:
        replay(sys.argv[2], sys.stdin.buffer, output)
