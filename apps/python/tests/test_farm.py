"""The farm: two Ray nodes on this machine, one of which dies in mid-run. Needs `ray`."""

import threading
import time

import pytest
import understudy as us

ray = pytest.importorskip("ray")

from ray.cluster_utils import Cluster  # noqa: E402
from understudy import farm  # noqa: E402


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


def test_scaling_and_sweeps(cluster, tmp_path):
    settings = {"poses": 400, "chunk": 20, "method": "sparse"}
    begun = time.monotonic()
    us.sample("mira", tmp_path / "alone", threads=1, **settings)
    alone = time.monotonic() - begun
    begun = time.monotonic()
    farm.sample("mira", tmp_path / "two", shards=8, **settings)
    two = time.monotonic() - begun
    print(f"400 poses of Mira: one thread {alone:.1f} s, two Ray workers {two:.1f} s ({alone / two:.2f} times as fast)")
    assert files(tmp_path / "two") == files(tmp_path / "alone")

    variants = [{"kind": "skin", "bones": bones, "train": {"epochs": 30}} for bones in (8, 16)]
    results = farm.sweep(tmp_path / "two", tmp_path / "twins", variants)
    assert [result["mean_mm"] for result in results] == sorted(result["mean_mm"] for result in results)
    for result in results:
        us.Twin.load(result["twin"]).pose()


def test_what_is_wrong_comes_back(cluster, tmp_path):
    with pytest.raises(us.BadInputError, match="nobody"):
        farm.sample("nobody", tmp_path / "data", poses=64)
