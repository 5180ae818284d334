"""Answers requests for poses until they end: docs/guides/rig-protocol.md."""

import json
import struct

import numpy as np

from controls import Controls
from inputs import Inputs
from stage import Stage


def run(survey, source, sink):
    """`survey` is what a survey wrote: which objects, controls and inputs, and the description to answer with."""
    rig = None

    def answer(tag, payload):
        sink.write(struct.pack("<4s4sI", b"rig1", tag, len(payload)) + payload)
        sink.flush()

    while len(head := source.read(12)) == 12:
        _, tag, length = struct.unpack("<4s4sI", head)
        payload = source.read(length)
        if tag == b"desc":
            # The file is opened here and not before: whoever asks waits for it and shows that.
            rig = rig or Rig(survey)
            answer(b"rig ", json.dumps(survey["description"]).encode())
            continue
        rig = rig or Rig(survey)
        poses, controls = struct.unpack_from("<II", payload)
        values = np.frombuffer(payload, "<f4", poses * controls, 8).reshape(poses, controls)
        out, pose = [], 0
        try:
            for pose in range(poses):
                vertices, bones = rig.evaluate(values[pose])
                out.append(vertices.astype("<f4").tobytes() + bones.astype("<f4").tobytes())
        except Exception as problem:
            answer(b"fail", struct.pack("<I", pose) + str(problem).encode())
            continue
        answer(b"pose", struct.pack("<III", poses, rig.vertex_count, len(rig.inputs)) + b"".join(out))


class Rig:
    """A surveyed file, ready to be posed."""

    def __init__(self, survey):
        self.stage = Stage(survey["request"])
        self.stage.use(survey["objects"])
        self.controls = Controls(self.stage, survey["channels"])
        self.inputs = Inputs(self.stage, survey["inputs"])
        self.vertex_count = len(survey["description"]["vertices"])

    def evaluate(self, values):
        """World vertices [V, 3] and inputs [B, 3, 4], in metres."""
        self.controls.apply(values)
        self.stage.update()
        vertices = self.stage.vertices()
        if len(vertices) != self.vertex_count:
            raise RuntimeError(f"the mesh has {len(vertices)} vertices in this pose and {self.vertex_count} at rest")
        return vertices, self.inputs.read()
