"""Learns fast twins of slow character rigs; plays, inverts and poses them.

    import understudy as us
    rig = us.open("mira")
    us.sample(rig, "data/mira", poses=4000, method="noise", progress=True)
    us.learn("data/mira", "mira.twin", kind="skin", progress=True)
    twin = us.Twin.load("mira.twin")
    vertices = twin.pose({"mouthSmile_L": 1.0})      # [vertices, 3], cm

Arrays are float32 and C-contiguous; lengths are centimetres, Y is up. A rig may be a name, a file, an address of the rig
protocol, what `open` gives, or an object of your own with `controls`, `vertices`, `faces` and `evaluate`.
"""

from ._jobs import (
    bench,
    convert,
    deform,
    eval,
    export,
    info,
    invert,
    learn,
    learn_ik,
    learn_motion,
    merge,
    play_motion,
    pose,
    render,
    sample,
    settings,
    transfer_weights,
    weights,
)
from ._native import BadInputError, UnderstudyError, __version__
from ._rig import Rig, open
from ._twin import InverseRig, Twin

__all__ = [
    "BadInputError",
    "InverseRig",
    "Rig",
    "Twin",
    "UnderstudyError",
    "__version__",
    "bench",
    "convert",
    "deform",
    "eval",
    "export",
    "info",
    "invert",
    "learn",
    "learn_ik",
    "learn_motion",
    "merge",
    "open",
    "play_motion",
    "pose",
    "render",
    "sample",
    "settings",
    "transfer_weights",
    "weights",
]
