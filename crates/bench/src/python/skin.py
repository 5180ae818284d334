"""The peers of the race of skin twins: onnxruntime and PyTorch on the same network and skin, over a pipe.

One JSON request a line on standard input, one JSON answer a line on standard output. PyTorch leaves the motion of the
whole out, so it has a little less to do than we have.
"""
import json
import sys
import time

import numpy as np
import onnxruntime
import torch

folder = sys.argv[1]
arrays = np.load(f"{folder}/skin.npz")
poses = torch.from_numpy(arrays["poses"])


def session(graph, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(f"{folder}/{graph}", options, providers=["CPUExecutionProvider"])


sessions = {threads: session("skin.onnx", threads) for threads in (1, 2)}
bones = session("bones.onnx", 1)


class Twin(torch.nn.Module):
    """The network, then every vertex's blended matrix as a product with all weights."""

    def __init__(self):
        super().__init__()
        get = lambda name: torch.from_numpy(arrays[name])
        self.inputs = get("inputs").long()
        self.mean, self.scale = get("mean"), get("scale")
        self.layers = torch.nn.ModuleList()
        while f"{len(self.layers)}.weights" in arrays:
            weights, bias = get(f"{len(self.layers)}.weights"), get(f"{len(self.layers)}.bias")
            layer = torch.nn.Linear(weights.shape[1], weights.shape[0])
            layer.weight.data, layer.bias.data = weights, bias
            self.layers.append(layer)
        self.weights = get("skin").to_sparse_csr()
        self.rest, self.centres = get("rest"), get("centres")

    def forward(self, controls):
        inputs = (controls[self.inputs] - self.mean) * self.scale
        x = inputs
        for layer in self.layers[:-1]:
            x = torch.tanh(layer(x))
        x = torch.cat([inputs, x]) if len(self.layers) > 1 else inputs
        numbers = self.layers[-1](x)[: 12 * len(self.centres)].view(-1, 3, 4)
        linear = numbers[:, :, :3]
        shift = numbers[:, :, 3] - (linear @ self.centres[:, :, None])[:, :, 0]
        blend = (self.weights @ torch.cat([linear, shift[:, :, None]], 2).view(-1, 12)).view(-1, 3, 4)
        return self.rest + (blend[:, :, :3] @ self.rest[:, :, None])[:, :, 0] + blend[:, :, 3]


twin = Twin()


def timed(run):
    # Warm-up first, as for everyone.
    for number in (10, 30):
        start = time.perf_counter()
        for index in range(number):
            run(index % len(poses))
    return {"ms": (time.perf_counter() - start) * 1e3 / 30}


def answer(request):
    peer = request["peer"]
    if peer == "check":
        (vertices,) = sessions[1].run(None, {"controls": arrays["poses"][0]})
        np.savez(f"{folder}/vertices.npz", vertices=vertices)
        return {"ms": 0}
    if peer == "bones":
        rows = [bones.run(None, {"controls": pose})[0] for pose in arrays["poses"]]
        np.savez(f"{folder}/bones.npz", bones=np.stack(rows))
        return timed(lambda index: bones.run(None, {"controls": arrays["poses"][index]}))
    threads = request["threads"]
    if peer == "onnxruntime":
        return timed(lambda index: sessions[threads].run(None, {"controls": arrays["poses"][index]}))
    torch.set_num_threads(threads)
    with torch.no_grad():
        return timed(lambda index: twin(poses[index]))


def serve():
    versions = {"onnxruntime": onnxruntime.__version__, "torch": torch.__version__}
    print(json.dumps(versions), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


serve()
