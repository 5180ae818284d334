"""Rigs: by name, from a file, in another program, or written in Python."""

from __future__ import annotations

import json
import os
import weakref

import numpy as np

from . import _native
from ._arrays import Values


class Rig:
    """A rig as a black box: controls in, vertices (and bones, where it has them) out. `open` makes one."""

    def __init__(self, native, source: str):
        self._native = native
        self._facts = json.loads(native.describe())
        self._values = Values(self._facts["controls"])
        #: What jobs know it by.
        self.source = source

    @property
    def name(self) -> str:
        return self._facts["name"]

    @property
    def controls(self) -> list[dict]:
        """Name, kind, range (`low`, `high`) and `default` of every control."""
        return self._facts["controls"]

    @property
    def bones(self) -> list[dict]:
        """Name and parent of every bone."""
        return self._facts["bones"]

    @property
    def clips(self) -> list[dict]:
        """Name and length of every clip that comes with it."""
        return self._facts["clips"]

    @property
    def vertices(self) -> np.ndarray:
        """The mesh at rest, [vertices, 3] cm."""
        return self._native.rest()

    @property
    def faces(self) -> np.ndarray:
        """Corners, [faces, 4]; the last of a triangle is -1."""
        return self._native.faces()

    def evaluate(self, controls=None) -> np.ndarray:
        """Vertices of a pose, [vertices, 3] cm; of many, [poses, controls] in and [poses, vertices, 3] out."""
        array = self._values(controls)
        return self._native.evaluate_many(array) if array.ndim == 2 else self._native.evaluate(array)

    def evaluate_bones(self, controls=None) -> np.ndarray:
        """World transforms of the bones of a pose, [bones, 3, 4] cm."""
        return self._native.evaluate_bones(self._values(controls))

    def clip(self, name: str, rate: float | None = None) -> tuple[np.ndarray, float]:
        """A clip of the rig, or a file that it shall play: [frames, controls] and frames per second."""
        return self._native.clip(os.fspath(name), rate)

    def __repr__(self) -> str:
        facts = self._facts
        return f"<Rig {self.name}: {facts['vertices']} vertices, {len(self.bones)} bones, {len(self.controls)} controls>"


def open(rig) -> Rig:
    """Opens a rig: a name ("mira"), a file, an address ("cmd:python3 rig.py"), or an object of your own.

    An object has
      controls   a list of (name, low, high, default) or of dicts as the rig protocol has them
      vertices   the mesh at rest, [n, 3]
      faces      a list of lists of corners, or an array
      evaluate   a function of an array [controls] that gives vertices [n, 3], or (vertices, bones [J, 3, 4])
    and may have name, units ("cm", "m", …), up ("y", "z"), uvs, face_uvs, segments, bones, weights and clips, as
    docs/guides/rig-protocol.md describes them. The same controls must always give the same vertices.
    """
    if isinstance(rig, Rig):
        return rig
    if isinstance(rig, (str, os.PathLike)):
        source = os.fspath(rig)
        return Rig(_native.open(source), source)
    return _hosted(rig)


_OPTIONAL = ("units", "up", "uvs", "face_uvs", "segments", "weights", "clips", "warnings")


def _control(control) -> dict:
    if isinstance(control, dict):
        return control
    if isinstance(control, str):
        control = (control, 0.0, 1.0, 0.0)
    name, low, high, default = control
    return {"name": name, "low": float(low), "high": float(high), "default": float(default)}


def _plain(value):
    return value.tolist() if isinstance(value, np.ndarray) else value


def _hosted(rig) -> Rig:
    for part in ("controls", "vertices", "faces", "evaluate"):
        if not hasattr(rig, part):
            raise _native.BadInputError(f"{type(rig).__name__} is no rig: it has no '{part}'")
    name = getattr(rig, "name", type(rig).__name__)
    description = {
        "name": name,
        "controls": [_control(control) for control in rig.controls],
        "vertices": np.asarray(rig.vertices, np.float32).tolist(),
        "faces": [[corner for corner in map(int, face) if corner >= 0] for face in rig.faces],
    }
    for part in _OPTIONAL:
        value = getattr(rig, part, None)
        if value is not None:
            description[part] = _plain(value)
    bones = getattr(rig, "bones", None)
    if bones is not None:
        description["bones"] = [{**bone, "rest": np.asarray(bone["rest"], np.float32).ravel()[:12].tolist()} for bone in bones]

    def evaluate(controls):
        answer = rig.evaluate(controls)
        vertices, placed = answer if isinstance(answer, tuple) else (answer, None)
        vertices = np.ascontiguousarray(vertices, np.float32)
        return vertices, None if placed is None else np.ascontiguousarray(placed, np.float32)

    source = _native.host(name, json.dumps(description), evaluate)
    opened = Rig(_native.open(source), source)
    weakref.finalize(opened, _native.release, source)
    return opened
