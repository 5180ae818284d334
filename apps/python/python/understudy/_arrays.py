"""Numbers of people as the arrays that the native half takes."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

import numpy as np

from ._native import BadInputError


def values(specs: list[dict], controls, what: str = "control") -> np.ndarray:
    """Values of controls: an array of all of them, a mapping of some (the others rest), or nothing."""
    rest = np.array([spec["default"] for spec in specs], np.float32)
    if controls is None:
        return rest
    if not isinstance(controls, Mapping):
        return np.ascontiguousarray(controls, np.float32)
    places = {spec["name"]: place for place, spec in enumerate(specs)}
    for name, value in controls.items():
        if name not in places:
            near = difflib.get_close_matches(name, places, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise BadInputError(f"there is no {what} '{name}'{hint}")
        rest[places[name]] = value
    return rest


def out_of(out, shape: tuple[int, ...]) -> np.ndarray:
    """The array that is written: the caller's, or a new one."""
    if out is None:
        return np.empty(shape, np.float32)
    if out.shape != shape or out.dtype != np.float32:
        raise BadInputError(f"out: shape {list(out.shape)} of {out.dtype}, {list(shape)} of float32 expected")
    return out
