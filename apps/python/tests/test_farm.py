"""The farm: two Ray nodes on this machine, one of which dies in mid-run. Needs `ray`."""

import json
import sys
import threading
import time

import numpy as np
import pytest
import understudy as us

ray = pytest.importorskip("ray")

from ray.cluster_utils import Cluster  # noqa: E402
from understudy import farm  # noqa: E402

# Workers have no copy of this file.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture
def cluster():
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster, node
    ray.shutdown()
    cluster.shutdown()


def test_a_node_dies_and_the_bytes_are_those_of_one_machine(cluster, tmp_path):
    cluster, node = cluster
    settings = {"poses": 1200, "chunk": 30, "method": "sparse", "seed": 11}
    us.sample("rook", tmp_path / "whole", **settings)
    done = threading.Event()

    def heard(event):
        if event["event"] == "step" and event["done"] >= 2 and not done.is_set():
            done.set()
            cluster.remove_node(node, allow_graceful=False)

    begun = time.monotonic()
    report = farm.sample("rook", tmp_path / "farmed", shards=10, progress=heard, **settings)
    print(f"1,200 poses of Rook, a node killed after two of ten shards: {time.monotonic() - begun:.1f} s")
    assert done.is_set() and report["poses"] == 1200
    assert files(tmp_path / "farmed") == files(tmp_path / "whole")


#: How long the rig below takes for a pose, seconds. It waits, as for a solver on another machine: so the times are the farm's,
#: however busy this one is.
WAIT = 0.05


def slow_strip():
    """A rig of one's own, made where a task runs: a strip that bends, and takes its time."""

    class Strip:
        name = "strip"
        controls = [("bend", 0.0, 1.0, 0.0), ("lift", 0.0, 1.0, 0.0)]
        line = np.arange(40, dtype=np.float32)
        vertices = np.stack([np.repeat(line, 2), np.tile([0.0, 1.0], 40), np.zeros(80)], 1).astype(np.float32)
        faces = [[2 * at, 2 * at + 2, 2 * at + 3, 2 * at + 1] for at in range(39)]

        def evaluate(self, controls):
            time.sleep(WAIT)
            bend, lift = controls
            moved = self.vertices.copy()
            moved[:, 2] += lift + bend * np.sin(0.1 * moved[:, 0])
            return moved

    return Strip()


def test_scaling_of_a_rig_of_ones_own(cluster, tmp_path):
    cluster, node = cluster
    settings = {"poses": 240, "chunk": 10, "method": "uniform"}
    us.sample(slow_strip(), tmp_path / "alone", threads=1, **settings)
    # Both workers start before the clock does.
    farm.sample(slow_strip, tmp_path / "warm", poses=60, chunk=5, shards=12, method="uniform")
    seconds = {}
    for workers in (2, 1):
        if workers == 1:
            cluster.remove_node(node)
        begun = time.monotonic()
        farm.sample(slow_strip, tmp_path / f"{workers}", shards=12, **settings)
        seconds[workers] = time.monotonic() - begun
        assert files(tmp_path / f"{workers}") == files(tmp_path / "alone")
    print(f"\n240 poses of {1000 * WAIT:.0f} ms: one Ray worker {seconds[1]:.1f} s, two {seconds[2]:.1f} s")


def test_clips_are_recorded_frame_by_frame(cluster, tmp_path):
    us.sample("mira", tmp_path / "whole", clips=["talk"])
    report = farm.sample("mira", tmp_path / "farmed", clips=["talk"])
    assert report["poses"] == len(us.open("mira").clip("talk")[0])
    assert files(tmp_path / "farmed") == files(tmp_path / "whole")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sweeps(cluster, tmp_path, cloth):
    us.sample(cloth, tmp_path / "data", poses=200, method="uniform")
    variants = [{"kind": "skin", "bones": bones, "epochs": 30} for bones in (4, 16)]
    variants.append({"kind": "auto", "seed": 2, "minutes": 0.05, "trial_minutes": 0.05})
    results = farm.sweep(tmp_path / "data", tmp_path / "twins", variants)
    assert [result["mean_mm"] for result in results] == sorted(result["mean_mm"] for result in results)
    for result in results:
        us.Twin.load(result["twin"])
    with pytest.raises(us.BadInputError, match="address"):
        farm.sweep(tmp_path / "data", tmp_path / "twins", variants, address="10.0.0.1:6379")

    # The command of the guide, with the settings of a kind.
    words = ["sweep", str(tmp_path / "data"), "-o", str(tmp_path / "more"), "--kind", "skin", "--seeds", "1,2"]
    words += ["--set", "epochs=5", "--set", "bones=4", "--set", "rounds=[1, 1]"]
    assert farm.main(words) == 0
    assert {result["variant"]["seed"] for result in json.loads((tmp_path / "more/sweep.json").read_text())} == {1, 2}


def test_what_is_wrong_comes_back(cluster, tmp_path):
    with pytest.raises(us.BadInputError, match="nobody"):
        farm.sample("nobody", tmp_path / "data", poses=64)
