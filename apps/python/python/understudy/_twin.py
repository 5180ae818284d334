"""Twins that are played, and the inverse rig."""

from __future__ import annotations

import json
import os

import numpy as np
from numpy import ndarray

from . import _native
from ._arrays import Values, out_of
from ._rig import open as open_rig


class Twin:
    """A twin: what `learn` wrote, loaded and checked. One object for each thread that poses it."""

    def __init__(self, native, threads: int = 1):
        self._native = native
        self._facts = json.loads(native.describe())
        self._player = native.player(threads)
        self._controls = Values(self.controls or [])
        self._extras = Values(self.extras)
        self._shape = (self.vertex_count, 3)
        self._solver = None

    @classmethod
    def load(cls, path, threads: int = 1) -> Twin:
        """Reads a twin's file."""
        return cls(_native.Twin.load(os.fspath(path)), threads)

    @classmethod
    def parse(cls, data: bytes, threads: int = 1) -> Twin:
        """Reads the bytes of a twin's file."""
        return cls(_native.Twin.parse(data), threads)

    @property
    def rig(self) -> str:
        """The rig that it was learned from."""
        return self._facts["header"]["rig"]

    @property
    def kind(self) -> str:
        """"body", "diff", "face" or "skin"."""
        return self._facts["kind"]

    @property
    def header(self) -> dict:
        """Everything that its file says about it."""
        return self._facts["header"]

    @property
    def controls(self) -> list[dict] | None:
        """The controls that pose it alone; None where it wants bones."""
        return self._facts["controls"]

    @property
    def extras(self) -> list[dict]:
        """The controls that matter beside its bones."""
        return self.header["inputs"]["controls"]

    @property
    def bones(self) -> list[dict]:
        """Name and parent of every bone that poses it."""
        return self.header["inputs"]["bones"]

    @property
    def points(self) -> list[str]:
        """Names of the points that can be dragged."""
        return self._facts["points"]

    @property
    def vertex_count(self) -> int:
        return self._facts["vertices"]

    @property
    def faces(self) -> np.ndarray:
        """Corners, [faces, 4]; the last of a triangle is -1."""
        return self._native.faces()

    @property
    def rest_bones(self) -> np.ndarray:
        """World transforms of the bones at rest, [bones, 3, 4] cm."""
        return self._native.rest_bones()

    def pose(self, controls=None, *, bones=None, extras=None, out: np.ndarray | None = None) -> np.ndarray:
        """Vertices of a pose, [vertices, 3] cm: by controls (an array, or a dict of some), or by the world transforms of its
        bones [bones, 3, 4] and the extra controls beside them. `out` is filled and given back: with an array of controls nothing is allocated."""
        # What a loop gives sixty times a second goes straight to the native half, which checks all of it. What that refuses may
        # be an array of doubles, or is told below in the words of this package.
        try:
            if bones is None and type(controls) is ndarray and out is not None:
                self._player.pose_controls(controls, out)
                return out
            if type(bones) is ndarray and type(extras) is ndarray and out is not None:
                self._player.pose_bones(bones, extras, out)
                return out
        except (TypeError, _native.BadInputError):
            pass
        out = out_of(out, self._shape)
        if bones is None:
            if self.controls is None:
                raise _native.BadInputError("this twin has no mechanism: it is posed by bones, not by controls alone")
            self._player.pose_controls(self._controls(controls), out)
        else:
            bones = np.ascontiguousarray(bones, np.float32)
            self._player.pose_bones(bones, self._extras(extras), out)
        return out

    def crowd(self, controls: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Vertices of many poses, [poses, controls] in and [poses, vertices, 3] out."""
        controls = np.ascontiguousarray(controls, np.float32)
        out = out_of(out, (len(controls), self.vertex_count, 3))
        self._player.crowd(controls, out)
        return out

    def normals(self, vertices: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Unit normals of the pose that was played last, whose vertices are given."""
        out = out_of(out, self._shape)
        self._player.normals(np.ascontiguousarray(vertices, np.float32), out)
        return out

    def gradient(self, controls, by_vertices: np.ndarray) -> np.ndarray:
        """The derivative of a loss by the controls, from its derivative by the vertices [vertices, 3]."""
        controls = self._controls(controls)
        out = np.empty(len(controls), np.float32)
        self._player.gradient(controls, np.ascontiguousarray(by_vertices, np.float32), out)
        return out

    def place_bones(self, controls=None) -> np.ndarray:
        """World transforms of the bones that controls give, [bones, 3, 4] cm."""
        return self._player.bones(self._controls(controls))

    def follow(self, targets, corrections: int = 2) -> np.ndarray:
        """Controls that bring points to their targets: an array [points, 3] in cm, or a dict of some (the others rest)."""
        if self._solver is None:
            self._solver = self._native.solver()
        places = self._solver.rest()
        if isinstance(targets, dict):
            for name, target in targets.items():
                if name not in self.points:
                    raise _native.BadInputError(f"there is no point '{name}'")
                places[self.points.index(name)] = target
        else:
            places = np.ascontiguousarray(targets, np.float32)
        return self._solver.solve(places, corrections)

    def __repr__(self) -> str:
        return f"<Twin of {self.rig}, {self.kind}: {self.vertex_count} vertices>"


class InverseRig:
    """Weights from meshes: tabulates a rig once, solves a frame in a millisecond."""

    def __init__(self, rig, **settings):
        native = _native.InverseRig(open_rig(rig)._native)
        #: Names of the weights, in their order.
        self.names: list[str] = native.names()
        self._solver = native.solver(json.dumps(settings))

    def solve(self, mesh) -> tuple[np.ndarray, dict]:
        """Weights of a mesh [vertices, 3] in cm, and how the solve went."""
        weights, report = self._solver.solve(np.ascontiguousarray(mesh, np.float32))
        return weights, json.loads(report)
