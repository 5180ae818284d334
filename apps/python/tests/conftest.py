"""What several tests use: a rig written in Python, twins that the run time keeps for its own tests."""

import signal
from pathlib import Path

import numpy as np
import pytest

# A shell that starts programs in the background lets them ignore Ctrl-C, which the tests press.
signal.signal(signal.SIGINT, signal.default_int_handler)

GOLDEN = Path(__file__).parents[3] / "crates/runtime/tests/golden"


class Cloth:
    """A square of cloth with bumps that controls raise: what a rig of one's own looks like."""

    name = "cloth"
    SIDE = 40

    def __init__(self, bumps: int = 6):
        line = np.linspace(0.0, 10.0, self.SIDE, dtype=np.float32)
        x, y = np.meshgrid(line, line)
        self.vertices = np.stack([x.ravel(), y.ravel(), 0.0 * x.ravel()], 1)
        corner = (np.arange(self.SIDE - 1)[:, None] * self.SIDE + np.arange(self.SIDE - 1)).ravel()
        self.faces = np.stack([corner, corner + 1, corner + self.SIDE + 1, corner + self.SIDE], 1)
        self.controls = [(f"bump{index}", 0.0, 1.0, 0.0) for index in range(bumps)]
        centres = np.random.default_rng(7).uniform(2.0, 8.0, (bumps, 2))
        away = ((self.vertices[None, :, :2] - centres[:, None]) ** 2).sum(-1)
        self.shapes = np.exp(-away / 4.0).astype(np.float32)
        self.evaluated = 0

    def evaluate(self, controls):
        self.evaluated += 1
        moved = self.vertices.copy()
        moved[:, 2] = controls @ self.shapes
        moved[:, 0] += 0.3 * np.sin(moved[:, 2])
        return moved


@pytest.fixture
def cloth():
    return Cloth()


@pytest.fixture
def golden():
    return GOLDEN
