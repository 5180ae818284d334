"""Twins: poses, crowds, derivatives, and what is refused."""

import numpy as np
import pytest
import understudy as us


def test_poses_and_crowds(golden):
    twin = us.Twin.load(golden / "face-v3.twin")
    assert twin.kind == "face" and twin.controls and not twin.bones
    controls = np.array([0.7 * c["high"] + 0.3 * c["low"] for c in twin.controls], np.float32)
    vertices = twin.pose(controls)
    out = np.empty_like(vertices)
    assert twin.pose(controls, out=out) is out and np.array_equal(out, vertices)
    crowd = twin.crowd(np.stack([controls, 0 * controls, controls]))
    assert crowd.shape == (3, twin.vertex_count, 3)
    assert np.abs(crowd[[0, 2]] - vertices).max() < 1e-4
    normals = twin.normals(vertices)
    lengths = np.linalg.norm(normals, axis=1)
    assert np.all((np.abs(lengths - 1.0) < 1e-3) | (lengths == 0.0))


def test_the_gradient_is_that_of_differences(golden):
    twin = us.Twin.load(golden / "face-v3.twin")
    controls = np.array([0.4 * c["high"] + 0.6 * c["low"] for c in twin.controls], np.float32)
    toward = np.random.default_rng(1).normal(size=(twin.vertex_count, 3)).astype(np.float32)
    slopes = twin.gradient(controls, toward)
    loss = lambda c: float((twin.pose(c).astype(np.float64) * toward).sum())
    for place in range(min(4, len(controls))):
        step = np.zeros_like(controls)
        step[place] = 1e-2
        numeric = (loss(controls + step) - loss(controls - step)) / 2e-2
        assert abs(numeric - slopes[place]) < 0.05 * max(1.0, abs(numeric), np.abs(slopes).max())


def test_bones_pose_a_body(golden):
    twin = us.Twin.load(golden / "body-v3.twin")
    rest = twin.rest_bones
    assert rest.shape == (len(twin.bones), 3, 4)
    vertices = twin.pose(bones=rest)
    moved = rest.copy()
    moved[:, :, 3] += [5.0, 0.0, 0.0]
    assert np.allclose(twin.pose(bones=moved), vertices + np.float32([5.0, 0.0, 0.0]), atol=1e-3)
    with pytest.raises(us.BadInputError, match="posed by bones"):
        twin.pose()
    with pytest.raises(us.BadInputError, match=r"\[bones, 3, 4\]"):
        twin.pose(bones=rest[:, :2])
    with pytest.raises(us.BadInputError, match="expected"):
        twin.pose(bones=rest[1:])


def test_what_is_wrong_is_refused(golden, tmp_path):
    twin = us.Twin.load(golden / "face-v3.twin")
    count = len(twin.controls)
    with pytest.raises(us.BadInputError, match="expected"):
        twin.pose(np.zeros(count + 1, np.float32))
    with pytest.raises(us.BadInputError, match="entry 0 is not finite"):
        twin.pose(np.full(count, np.nan, np.float32))
    with pytest.raises(us.BadInputError, match="out: shape"):
        twin.pose(out=np.empty((3, 3), np.float32))
    with pytest.raises((us.BadInputError, TypeError, ValueError)):
        twin.pose(out=np.empty((3, twin.vertex_count), np.float32).T)
    with pytest.raises(us.BadInputError, match="no points"):
        twin.follow(np.zeros((1, 3)))
    whole = (golden / "face-v3.twin").read_bytes()
    for end in (0, 9, 1000, len(whole) - 1):
        path = tmp_path / "half.twin"
        path.write_bytes(whole[:end])
        with pytest.raises(us.BadInputError, match="half.twin"):
            us.Twin.load(path)
