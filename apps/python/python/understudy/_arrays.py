"""Numbers of people as the arrays that the native half takes."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

import numpy as np

from ._native import BadInputError


class Values:
    """Values of some controls: called with an array of all of them, a mapping of some (the others rest), or nothing. What needs
    a look at every control is done once: a pose takes microseconds."""

    def __init__(self, specs: list[dict]):
        self._rest = np.array([spec["default"] for spec in specs], np.float32)
        self._rest.flags.writeable = False
        self._places = {spec["name"]: place for place, spec in enumerate(specs)}

    def __call__(self, controls) -> np.ndarray:
        if controls is None:
            return self._rest
        if not isinstance(controls, Mapping):
            return np.ascontiguousarray(controls, np.float32)
        values = self._rest.copy()
        for name, value in controls.items():
            place = self._places.get(name)
            if place is None:
                near = difflib.get_close_matches(name, self._places, 1)
                hint = f"; did you mean '{near[0]}'?" if near else ""
                raise BadInputError(f"there is no control '{name}'{hint}")
            values[place] = value
        return values


def out_of(out, shape: tuple[int, ...]) -> np.ndarray:
    """The array that is written: the caller's, or a new one."""
    if out is None:
        return np.empty(shape, np.float32)
    if out.shape != shape or out.dtype != np.float32:
        raise BadInputError(f"out: shape {list(out.shape)} of {out.dtype}, {list(shape)} of float32 expected")
    if not out.flags.c_contiguous:
        raise BadInputError("out: the array is not contiguous: numpy.ascontiguousarray makes it so")
    return out
