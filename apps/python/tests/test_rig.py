"""Rigs: by name, and written in Python."""

import os
import subprocess

import numpy as np
import pytest
import understudy as us


def chunks(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.safetensors"))}


def test_a_rig_by_name():
    rig = us.open("mira")
    rest = rig.evaluate()
    assert rest.shape == (len(rig.vertices), 3) and rest.dtype == np.float32
    smile = rig.evaluate({"mouthSmile_L": 1.0})
    assert 0.1 < np.abs(smile - rest).max() < 10.0
    names = [control["name"] for control in rig.controls]
    pose = np.array([control["default"] for control in rig.controls], np.float32)
    pose[names.index("mouthSmile_L")] = 1.0
    assert np.array_equal(rig.evaluate(pose), smile)
    assert np.array_equal(rig.evaluate(np.stack([pose, pose]))[1], smile)
    frames, rate = rig.clip("talk")
    assert frames.shape[1] == len(names) and len(frames) > 20 and rate > 0
    assert rig.faces.max() < len(rest)


def test_what_is_wrong_is_an_exception_with_the_text_of_the_command_line():
    with pytest.raises(us.BadInputError, match="did you mean 'mouthSmile_L'"):
        us.open("mira").evaluate({"mouthSmil_L": 1.0})
    with pytest.raises(us.BadInputError, match="nowhere.glb"):
        us.open("nowhere.glb")
    with pytest.raises(us.BadInputError, match="but the rig has 267 controls"):
        us.open("mira").evaluate(np.zeros(3, np.float32))
    with pytest.raises(us.BadInputError, match="entry|finite|control"):
        us.open("mira").evaluate({"mouthSmile_L": float("nan")})
    with pytest.raises(us.BadInputError, match="posess"):
        us.sample("mira", "never", posess=3)


@pytest.mark.skipif("UNDERSTUDY" not in os.environ, reason="UNDERSTUDY names no program to compare with")
def test_datasets_are_those_of_the_command_line(tmp_path):
    us.sample("mira", tmp_path / "here", poses=20, method="sparse", seed=3)
    words = ["sample", "mira", "-o", str(tmp_path / "there"), "--poses", "20", "--method", "sparse", "--seed", "3"]
    subprocess.run([os.environ["UNDERSTUDY"], *words], check=True, capture_output=True)
    assert chunks(tmp_path / "here") == chunks(tmp_path / "there")


def test_a_rig_of_ones_own_is_sampled_learned_and_inverted(cloth, tmp_path):
    events = []
    data = tmp_path / "data"
    report = us.sample(cloth, data, poses=400, method="uniform", progress=events.append)
    assert report["poses"] == 400 and cloth.evaluated >= 400
    kinds = {event["event"] for event in events}
    assert {"started", "step", "finished"} <= kinds

    twin_file = tmp_path / "cloth.twin"
    with pytest.warns(UserWarning, match="is missing"):  # The dataset outlives the object that it was made of.
        us.learn(data, twin_file, kind="skin", bones=12, epochs=120, seed=2)
    twin = us.Twin.load(twin_file)
    pose = np.array([0.1, 0.9, 0.0, 0.4, 0.0, 0.7], np.float32)
    truth = us.open(cloth).evaluate(pose)
    rest = np.abs(truth - cloth.vertices).mean()
    assert np.abs(twin.pose(pose) - truth).mean() < 0.25 * rest

    with pytest.warns(UserWarning, match="taken for shapes"):
        us.invert(cloth, _frames(tmp_path, truth), tmp_path / "weights.csv")
    inverse = us.InverseRig(cloth)
    weights, how = inverse.solve(truth)
    assert inverse.names == [name for name, *_ in cloth.controls]
    assert np.abs(weights - pose).max() < 0.15 and how["passes"] > 0


def test_seeds_and_epochs_are_settings_of_every_kind(cloth, tmp_path):
    data = tmp_path / "data"
    us.sample(cloth, data, poses=100, method="uniform")
    opened = us.open(cloth)
    twins = [tmp_path / f"{seed}.twin" for seed in (1, 2, 3)]
    for twin, seed in zip(twins, (1, 2, 2)):
        us.learn(data, twin, kind="skin", rig=opened, bones=4, rounds=[1, 1], epochs=3, seed=seed)
    made = [us.Twin.load(twin).pose({"bump1": 0.7}) for twin in twins]
    assert np.array_equal(made[1], made[2]) and not np.array_equal(made[0], made[1])
    with pytest.raises(us.BadInputError, match="'epoch' is none of a skin twin"):
        us.learn(data, twins[0], kind="skin", epoch=3)
    us.sample(cloth, tmp_path / "test", poses=20, method="uniform", seed=9)
    figures = us.eval(twins[0], tmp_path / "test")
    assert figures["kind"] == "skin" and figures["methods"]


def _frames(folder, *frames):
    path = folder / "frames.npz"
    np.savez(path, vertices=np.stack(frames))
    return path


def test_a_rig_that_fails_is_named(cloth, tmp_path):
    def broken(controls):
        raise RuntimeError("the solver diverged")

    cloth.evaluate = broken
    with pytest.raises(us.UnderstudyError, match="cloth.*the solver diverged"):
        us.sample(cloth, tmp_path / "data", poses=4)
    cloth.evaluate = lambda controls: np.full_like(cloth.vertices, np.nan)
    with pytest.raises(us.UnderstudyError, match="vertex 0 is not finite"):
        us.sample(cloth, tmp_path / "data", poses=4)
    cloth.evaluate = lambda controls: cloth.vertices[1:]
    with pytest.raises(us.UnderstudyError, match=r"\[1600, 3\] expected"):
        us.sample(cloth, tmp_path / "data", poses=4)
    assert not (tmp_path / "data").exists()
    with pytest.raises(us.BadInputError, match="no 'evaluate'"):
        us.open(object.__new__(type("Half", (), {"controls": [], "vertices": [], "faces": []})))


def test_shards_make_the_bytes_of_one_run(tmp_path):
    us.sample("mira", tmp_path / "whole", poses=40, chunk=8, method="sparse")
    shards = [tmp_path / f"shard{number}" for number in (1, 2)]
    for number, folder in enumerate(shards, 1):
        us.sample("mira", folder, poses=40, chunk=8, method="sparse", shard=(number, 2))
    us.merge(shards, tmp_path / "joined")
    assert chunks(tmp_path / "joined") == chunks(tmp_path / "whole")
