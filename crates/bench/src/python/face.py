"""The peers of `understudy bench` for faces: onnxruntime and PyTorch on the same networks, over a pipe.

One JSON request a line on standard input, one JSON answer a line on standard output. PyTorch's twin leaves
rigid segments and the head's motion out, so it has a little less to do than we have.
"""
import json
import sys
import time

import numpy as np
import onnxruntime
import torch
import torch.nn.functional as F

folder = sys.argv[1]
graph = f"{folder}/face.onnx"
arrays = np.load(f"{folder}/face.npz")
poses = torch.from_numpy(arrays["poses"])
LEAK = float(arrays["leak"])


def session(threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


sessions = {threads: session(threads) for threads in (1, 2)}


class Net(torch.nn.Module):
    """One network: dense layers, a map, its samples."""

    def __init__(self, index):
        super().__init__()
        get = lambda name: torch.from_numpy(arrays[f"{index}.{name}"])
        for name in ("inputs", "vertices", "pixels"):
            self.register_buffer(name, get(name).long())
        for name in ("mean", "scale", "weights"):
            self.register_buffer(name, get(name))
        self.side, self.channels = (int(v) for v in arrays[f"{index}.image"])
        self.doublings = int(arrays[f"{index}.doublings"])
        self.dense = torch.nn.ModuleList()
        while f"{index}.{len(self.dense)}.dense" in arrays:
            weights, bias = get(f"{len(self.dense)}.dense"), get(f"{len(self.dense)}.bias")
            layer = torch.nn.Linear(weights.shape[1], weights.shape[0])
            layer.weight.data, layer.bias.data = weights, bias
            self.dense.append(layer)
        self.convolutions = torch.nn.ModuleList()
        while f"{index}.{len(self.convolutions)}.kernel" in arrays:
            place = len(self.convolutions)
            kernel, bias = get(f"{place}.kernel"), get(f"{place}.kernel_bias")
            layer = torch.nn.Conv2d(kernel.shape[1], kernel.shape[0], 3, padding=1)
            layer.weight.data, layer.bias.data = kernel, bias
            self.convolutions.append(layer)
        # One set of weights for all pixels, or one per pixel; the last dimension runs over pixels.
        self.point = torch.nn.Parameter(get("point"))
        self.common = torch.nn.Parameter(get("common"))
        self.point_bias = torch.nn.Parameter(get("point_bias").t().contiguous())

    def forward(self, controls):
        x = (controls[:, self.inputs] - self.mean) * self.scale
        for layer in self.dense[:-1]:
            x = F.leaky_relu(layer(x), LEAK)
        x = self.dense[-1](x)
        first = self.side * self.side * self.channels
        x, common = F.leaky_relu(x[:, :first], LEAK), x[:, first:]
        x = x.view(-1, self.side, self.side, self.channels).permute(0, 3, 1, 2)
        for index, layer in enumerate(self.convolutions):
            if index < self.doublings:
                x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = F.leaky_relu(layer(x), LEAK)
        x = x.flatten(2)
        if self.point.shape[-1] == 1:
            x = self.point[:, :, 0] @ x + self.point_bias
        else:
            x = (self.point * x.unsqueeze(1)).sum(2) + self.point_bias
            if len(self.common):
                x = x + (common @ self.common).view(x.shape)
        return (x[:, :, self.pixels] * self.weights).sum(-1).transpose(1, 2)


class Twin(torch.nn.Module):
    """All networks of some stages."""

    def __init__(self, indices):
        super().__init__()
        self.register_buffer("rest", torch.from_numpy(arrays["rest"]))
        self.nets = torch.nn.ModuleList(Net(index) for index in indices)

    def forward(self, controls):
        out = self.rest.expand(len(controls), -1, -1).clone()
        for net in self.nets:
            out = out.index_add(1, net.vertices, net(controls))
        return out


stages = arrays["stages"]
everything = Twin(range(len(stages)))


class Race:
    """Training of the coarse networks: the paper's loss and Adam."""

    def __init__(self):
        self.twin = Twin([i for i, stage in enumerate(stages) if stage == 0])
        self.optimiser = torch.optim.Adam(self.twin.parameters(), lr=1e-4)
        self.truth = torch.from_numpy(arrays["truth"])
        self.faces = torch.from_numpy(arrays["faces"]).long()
        self.moved = torch.cat([net.vertices for net in self.twin.nets])
        self.step_number = 0

    def normals(self, vertices):
        a, b, c, d = (vertices[:, self.faces[:, i]] for i in range(4))
        return F.normalize(torch.linalg.cross(b - a, d - c), dim=-1, eps=1e-10)

    def step(self, batch):
        start = self.step_number * batch % (len(self.truth) - batch + 1)
        self.step_number += 1
        truth, now = self.truth[start : start + batch], self.twin(poses[start : start + batch])
        position = (truth - now)[:, self.moved].abs().sum(-1).mean()
        normal = (self.normals(truth) - self.normals(now)).abs().sum(-1).mean()
        loss = position + 5.0 * normal
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()


def train(race, request):
    race.step(request["batch"])
    start = time.perf_counter()
    for _ in range(request["steps"]):
        race.step(request["batch"])
    seconds = time.perf_counter() - start
    return {"steps_s": request["steps"] / seconds, "networks": len(race.twin.nets)}


def pose(peer, threads):
    repetitions = 8
    # Warm-up first, as for everyone.
    for number in (3, repetitions):
        start = time.perf_counter()
        for index in range(number):
            if peer == "onnxruntime":
                sessions[threads].run(None, {"controls": arrays["poses"][index % len(poses)]})
            else:
                with torch.no_grad():
                    everything(poses[index % len(poses)][None])
    return {"ms": (time.perf_counter() - start) * 1e3 / repetitions}


def answer(request, state):
    if request["peer"] == "check":
        (vertices,) = sessions[1].run(None, {"controls": arrays["poses"][0]})
        np.savez(f"{folder}/vertices.npz", vertices=vertices)
        return {"ms": 0}
    torch.set_num_threads(request["threads"])
    if request["peer"] == "training":
        if "race" not in state:
            state["race"] = Race()
        return train(state["race"], request)
    return pose(request["peer"], request["threads"])


def serve():
    versions = {"onnxruntime": onnxruntime.__version__, "torch": torch.__version__}
    print(json.dumps(versions), flush=True)
    state = {}
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), state)), flush=True)


serve()
