"""The peers of differential twins: onnxruntime on the folded graph, and onnxruntime with SuperLU, over a pipe.

One JSON request a line on standard input, one JSON answer a line on standard output. With SuperLU the features, the
anchors and the skinning come for free, so it has less to do than we have.
"""
import json
import sys
import time

import numpy as np
import onnxruntime
import scipy
import scipy.sparse
import scipy.sparse.linalg

folder = sys.argv[1]
arrays = dict(np.load(f"{folder}/diff.npz"))
POSES = len(arrays["features"])


def session(graph, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(f"{folder}/{graph}", options, providers=["CPUExecutionProvider"])


folded = {threads: session("diff.onnx", threads) for threads in (1, 2)}
differential = session("delta.onnx", 1)
wanted = {node.name for node in folded[1].get_inputs()}


class Solve:
    """The factor of LᵀL + Ω², and the right-hand side of it."""

    def __init__(self):
        count, edges = int(arrays["vertices"]), arrays["edges"]
        ends = np.concatenate([edges, edges[:, ::-1]])
        adjacency = scipy.sparse.csc_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), (count, count))
        degree = np.asarray(adjacency.sum(axis=1)).ravel()
        self.laplacian = (scipy.sparse.diags(degree) - adjacency).tocsr()
        self.anchors = arrays["anchors"]
        held = np.full(count, 1e-6)
        held[self.anchors] += 1.0
        matrix = (self.laplacian.T @ self.laplacian + scipy.sparse.diags(held)).tocsc()
        symmetric = {"SymmetricMode": True}
        self.factor = scipy.sparse.linalg.splu(matrix, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric)

    def __call__(self, delta):
        right = self.laplacian @ delta.astype(np.float64)
        right[self.anchors] += 0.1
        return self.factor.solve(right)


solve = Solve()


def feed(pose):
    return {name: arrays[name][pose] for name in wanted}


def once(peer, threads, pose):
    if peer == "onnxruntime":
        return folded[threads].run(None, feed(pose))[0]
    (delta,) = differential.run(None, {"features": arrays["features"][pose]})
    return solve(delta)


def timed(peer, threads):
    repetitions = 10
    # Warm-up first, as for everyone.
    for number in (3, repetitions):
        start = time.perf_counter()
        for index in range(number):
            once(peer, threads, index % POSES)
    return {"ms": (time.perf_counter() - start) * 1e3 / repetitions}


def answer(request):
    if request["peer"] == "check":
        np.savez(f"{folder}/vertices.npz", vertices=once("onnxruntime", 1, 0))
        return {"ms": 0}
    return timed(request["peer"], request["threads"])


def serve():
    print(json.dumps({"onnxruntime": onnxruntime.__version__, "scipy": scipy.__version__}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


serve()
