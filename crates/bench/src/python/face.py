"""The peers of `understudy bench` for faces: onnxruntime and PyTorch on the same networks, over a pipe.

One JSON request a line on standard input, one JSON answer a line on standard output. PyTorch's twin leaves
rigid segments and the head's motion out, so it has a little less to do than we have. Each peer runs in several ways, for
every number of threads the first request finds the fastest, and that one races; which it is goes to standard error.
"""
import json
import sys
import time
import warnings

import numpy as np
import onnxruntime
import torch
import torch.nn.functional as F

folder = sys.argv[1]
graph = f"{folder}/face.onnx"
arrays = np.load(f"{folder}/face.npz")
poses = torch.from_numpy(arrays["poses"])
LEAK = float(arrays["leak"])


def session(intra, inter=1):
    """Threads inside operations, and operations side by side."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = intra
    options.inter_op_num_threads = inter
    if inter > 1:
        options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def sessions(threads):
    """Ways of as many threads, by name."""
    ways = {"in sequence": session(threads)}
    if threads > 1:
        ways["in parallel"] = session(1, threads)
        ways["in parallel, threads inside"] = session(threads, threads)
    return ways


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
        # The fused optimiser is the fastest that PyTorch has on a processor.
        self.optimiser = torch.optim.Adam(self.twin.parameters(), lr=1e-4, fused=True)
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


def scripted():
    """All networks as TorchScript, constants folded; None where the tracer cannot follow."""
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            script = torch.jit.freeze(torch.jit.trace(everything.eval(), poses[:1], check_trace=False))
            # The first runs specialise it.
            for index in range(3):
                script(poses[index : index + 1])
        return script
    except Exception as problem:
        print(f"TorchScript left out: {str(problem).splitlines()[0]}", file=sys.stderr)
        return None


def ways(peer, threads):
    """How the peer can do it, by name: functions of the number of a pose."""
    if peer == "onnxruntime":
        feed = lambda index: {"controls": arrays["poses"][index]}
        runner = lambda session: lambda index: session.run(None, feed(index))
        return {name: runner(session) for name, session in sessions(threads).items()}
    out = {"plain": lambda index: everything(poses[index][None])}
    script = scripted()
    if script is not None:
        out["TorchScript"] = lambda index: script(poses[index][None])
    return out


fastest = {}


def clock(run):
    """Milliseconds of a pose."""
    repetitions = 8
    with torch.no_grad():
        # Warm-up first, as for everyone.
        for number in (3, repetitions):
            start = time.perf_counter()
            for index in range(number):
                run(index % len(poses))
    return (time.perf_counter() - start) * 1e3 / repetitions


def pose(peer, threads):
    if (peer, threads) not in fastest:
        found = ways(peer, threads)
        times = {name: clock(run) for name, run in found.items()}
        name = min(times, key=times.get)
        fastest[peer, threads] = found[name]
        print(f"{peer}, {threads} thread(s): {name}", file=sys.stderr, flush=True)
    return {"ms": clock(fastest[peer, threads])}


def answer(request, state):
    if request["peer"] == "check":
        (vertices,) = session(1).run(None, {"controls": arrays["poses"][0]})
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
