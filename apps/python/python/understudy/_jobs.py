"""The commands as functions: settings in, a report (a dict) out. Each takes `progress`: True shows a line on the terminal, a
function is called with every event (a dict). Ctrl-C ends a job at the next good place; sampling and learning go on from there
when they are called again with the same settings."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path

from . import _native
from ._rig import Rig
from ._rig import open as open_rig


class _Line:
    """Progress as a line that is written over."""

    def __init__(self):
        self.what, self.total, self.unit, self.begun = "", 0, "", 0.0

    def __call__(self, event: dict) -> None:
        kind = event["event"]
        if kind == "started":
            self.what, self.total, self.unit = event["what"], event["total"], event["unit"]
            self.begun = time.monotonic()
        elif kind == "step" and self.total:
            done, seconds = event["done"], time.monotonic() - self.begun
            left = f", {seconds / done * (self.total - done):.0f} s left" if done else ""
            self._write(f"{self.what}: {done} of {self.total} {self.unit}{left}")
        elif kind == "status":
            self._write(f"{self.what}: {event['message']}")
        elif kind == "finished":
            self._write(f"{self.what}: done")
            print(file=sys.stderr)

    @staticmethod
    def _write(text: str) -> None:
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def _run(job: str, settings: dict, progress) -> dict:
    listener = _Line() if progress is True else progress or None

    def hear(text: str) -> None:
        event = json.loads(text)
        if event["event"] == "warning":
            warnings.warn(event["message"], stacklevel=4)
        if listener:
            listener(event)

    given = {key: _plain(value) for key, value in settings.items() if value is not None}
    return json.loads(_native.run(job, json.dumps(given), hear))


def _plain(value):
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return value.item() if hasattr(value, "item") else value


def _source(rig) -> str:
    """What jobs know a rig by. A rig of one's own lives as long as the job: `opened` holds it."""
    return rig.source if isinstance(rig, Rig) else os.fspath(rig)


def _opened(rig):
    return rig if isinstance(rig, (str, os.PathLike, Rig)) else open_rig(rig)


def settings(job: str) -> dict:
    """What the settings of a job ("sample", "invert", …) or of a kind of twin ("face", …) are where none are given."""
    return json.loads(_native.defaults(job))


def sample(rig, output, *, progress=None, **settings) -> dict:
    """Poses a rig at random or along clips and records a dataset: `poses=2000, method="sparse", seed=1, clips=["walk"]` and
    what else `settings("sample")` shows. `shard=(1, 8)` records one part of eight."""
    rig = _opened(rig)
    shard = settings.pop("shard", None)
    if isinstance(shard, (tuple, list)):
        shard = {"number": shard[0], "of": shard[1]}
    return _run("sample", {**settings, "shard": shard, "rig": _source(rig), "output": output}, progress)


def merge(shards, output, *, progress=None) -> dict:
    """Joins the shards of a recording."""
    return _run("merge", {"shards": list(shards), "output": output}, progress)


def learn(data, output, kind: str = "auto", *, rig=None, progress=None, full_precision=False, threads=None, **settings) -> dict:
    """Learns a twin from a dataset: `kind` is "body", "diff", "face", "skin", or "auto", which tries all that the data allow.
    Settings of a kind: `settings("face")`; those of its training are named without `train`, too: `epochs=200, seed=2`."""
    rig = None if rig is None else _opened(rig)
    common = {"data": data, "output": output, "rig": rig and _source(rig), "threads": threads}
    if kind == "auto":
        return _run("learn_auto", {**common, "half": not full_precision, **settings}, progress)
    return _run("learn", {**common, "half": not full_precision, "learning": {kind: _nested(kind, settings)}}, progress)


def _nested(kind: str, settings: dict) -> dict:
    """Settings of a kind where its configuration has them: a few beside its `settings`, the others within, those of training (seed,
    epochs, batch, rate) in `train` there where a kind has that."""
    usual = next(iter(json.loads(_native.defaults(kind)).values()))
    inner = usual.get("settings") or {}
    train = inner.get("train") or {}
    out: dict = {}
    for name, value in settings.items():
        if name in usual:
            out[name] = value
        elif name == "train" and train:
            out.setdefault("settings", {}).setdefault("train", {}).update(value)
        elif name in inner:
            out.setdefault("settings", {})[name] = value
        elif name in train:
            out.setdefault("settings", {}).setdefault("train", {})[name] = value
        else:
            known = ", ".join(sorted({*usual, *inner, *train} - {"settings", "train"}))
            raise _native.BadInputError(f"settings: '{name}' is none of a {kind} twin; there are {known}")
    return out


def learn_ik(twin, data, output, *, progress=None, **settings) -> dict:
    """Teaches a twin to follow points that are dragged."""
    return _run("learn_ik", {**settings, "twin": twin, "data": data, "output": output}, progress)


def eval(twin, data=(), *, progress=None, **settings) -> dict:
    """Compares a twin with the original and with baselines on datasets that it was not trained on."""
    data = [data] if isinstance(data, (str, os.PathLike)) else list(data)
    return _run("eval", {**settings, "twin": twin, "test": data}, progress)


def bench(twin, *, progress=None, **settings) -> dict:
    """Times a twin, beside the rig that it was learned from."""
    return _run("bench", {**settings, "twin": twin}, progress)


def export(twin, *, progress=None, **settings) -> dict:
    """Writes a twin for other programs: `onnx="hero.onnx", glb="hero.glb"`."""
    return _run("export", {**settings, "twin": twin}, progress)


def invert(rig, targets, output, *, progress=None, **settings) -> dict:
    """Weights of a rig from files of meshes. For arrays: `InverseRig`."""
    rig = _opened(rig)
    targets = [targets] if isinstance(targets, (str, os.PathLike)) else list(targets)
    return _run("invert", {**settings, "rig": _source(rig), "targets": targets, "output": output}, progress)


def pose(rig, *, progress=None, **settings) -> dict:
    """Poses a body by its hands, feet and torso, or a face by its points: `reach=[("hand_L", [60, 150, 40])]`."""
    rig = _opened(rig)
    return _run("pose", {**settings, "rig": _source(rig)}, progress)


def weights(mesh, handles, output, *, examples=(), progress=None, **settings) -> dict:
    """Skinning weights for handles, from the mesh and from examples."""
    given = {"mesh": mesh, "handles": handles, "output": output, "examples": list(examples)}
    return _run("weights", {**settings, **given}, progress)


def transfer_weights(source, target, output, *, progress=None, **settings) -> dict:
    """Skinning weights of one mesh for another: clothes, levels of detail."""
    return _run("transfer_weights", {**settings, "source": source, "target": target, "output": output}, progress)


def deform(model, output, *, progress=None, **settings) -> dict:
    """Drags and turns handles of a skinned mesh: `drags=[("tail", [0, 60, -40])]`, `turns=[("tail", [0, 0, 1, 30])]`."""
    return _run("deform", {**settings, "input": model, "output": output}, progress)


def learn_motion(rig, output, *, progress=None, **settings) -> dict:
    """Latent spaces of an artist's clips."""
    rig = _opened(rig)
    return _run("learn_motion", {**settings, "rig": _source(rig), "output": output}, progress)


def play_motion(file, script, output, *, progress=None, **settings) -> dict:
    """Plays a script (its text's file) through latent spaces."""
    return _run("play_motion", {**settings, "motion": file, "script": script, "output": output}, progress)


def render(rig, output, *, progress=None, **settings) -> dict:
    """Draws a rig, a clip, a dataset or a mesh into a PNG file."""
    rig = _opened(rig)
    return _run("render", {**settings, "rig": _source(rig), "output": output}, progress)


def convert(input, output, *, progress=None, **settings) -> dict:
    """Converts between formats, by file extension."""
    return _run("convert", {**settings, "input": input, "output": output}, progress)


def info(input, *, progress=None, **settings) -> dict:
    """What is inside a file, a dataset, a twin or a rig."""
    return _run("info", {**settings, "input": str(Path(input)) if isinstance(input, os.PathLike) else input}, progress)
