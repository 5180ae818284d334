"""Keeps what a rig answers, and answers it again without the rig: tests of Blender files run without Blender.

    replayed_rig.py record FILE PROGRAM ARGUMENTS...      asks a worker for its description and some poses, and writes FILE
    replayed_rig.py replay FILE                           answers from FILE; other poses than those fail

The poses are every frame of every clip, and 20 that a formula spreads over the ranges (`spread` here and in blender.rs).
"""

import json
import os
import struct
import subprocess
import sys

# Controls that differ by less than this share of their range are the same: other processors round otherwise.
ROUNDING = 1e-5


def frame(source):
    head = source.read(12)
    if len(head) < 12:
        return None
    _, tag, length = struct.unpack("<4s4sI", head)
    return tag, source.read(length)


def send(sink, tag, payload):
    sink.write(struct.pack("<4s4sI", b"rig1", tag, len(payload)) + payload)
    sink.flush()


def spread(controls, pose):
    """Pose number `pose`: every control somewhere in its range, no two poses alike."""
    shares = [(7 * pose + 3 * place + pose * place) % 11 / 10 for place in range(len(controls))]
    return [c["low"] + share * (c["high"] - c["low"]) for c, share in zip(controls, shares)]


def record(path, words):
    worker = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    send(worker.stdin, b"desc", b"")
    text = frame(worker.stdout)[1]
    description = json.loads(text)
    controls = description["controls"]
    poses = [spread(controls, pose) for pose in range(20)]
    poses += [pose for clip in description["clips"] for pose in clip["frames"]]
    with open(path, "wb") as file:
        file.write(struct.pack("<I", len(text)) + text + struct.pack("<I", len(poses)))
        for pose in poses:
            values = struct.pack(f"<{len(pose)}f", *pose)
            send(worker.stdin, b"eval", struct.pack("<II", 1, len(pose)) + values)
            tag, answer = frame(worker.stdout)
            assert tag == b"pose", answer
            file.write(values + struct.pack("<I", len(answer)) + answer)
    worker.stdin.close()
    worker.wait()


def replay(path, source, sink):
    with open(path, "rb") as file:
        text = file.read(struct.unpack("<I", file.read(4))[0])
        controls = json.loads(text)["controls"]
        poses = []
        for _ in range(struct.unpack("<I", file.read(4))[0]):
            values = struct.unpack(f"<{len(controls)}f", file.read(4 * len(controls)))
            poses.append((values, file.read(struct.unpack("<I", file.read(4))[0])))
    room = [ROUNDING * (control["high"] - control["low"]) for control in controls]
    while request := frame(source):
        if request[0] == b"desc":
            send(sink, b"rig ", text)
            continue
        count, width = struct.unpack_from("<II", request[1])
        answers = []
        for pose in range(count):
            asked = struct.unpack_from(f"<{width}f", request[1], 8 + 4 * width * pose)
            same = (answer for values, answer in poses if all(abs(a - b) <= r for a, b, r in zip(asked, values, room)))
            answers.append(next(same, None))
        if None in answers:
            send(sink, b"fail", struct.pack("<I", answers.index(None)) + b"this pose was not recorded")
        else:
            send(sink, b"pose", struct.pack("<I", count) + answers[0][4:12] + b"".join(a[12:] for a in answers))


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(sys.argv[2], sys.argv[3:])
    else:
        output = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        replay(sys.argv[2], sys.stdin.buffer, output)
