"""The peers of `understudy bench`: onnxruntime and PyTorch on the same network, asked for over a pipe.

One JSON request a line on standard input, one JSON answer a line on standard output.
"""
import json
import sys
import time
import warnings

import numpy as np
import onnxruntime
import torch

folder = sys.argv[1]
graph = f"{folder}/twin.onnx"
poses = np.load(f"{folder}/poses.npz")
bones, controls = poses["bones"], poses["controls"]


def session(threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


sessions = {threads: session(threads) for threads in (1, 2)}


def feed(pose):
    inputs = {"bones": bones[pose]}
    if controls.shape[1]:
        inputs["controls"] = controls[pose]
    return inputs


def rigid_frames(linear):
    """Axes of bones without scale and shear, column by column."""
    done = []
    for column in linear.unbind(-1):
        for other in done:
            column = column - other * (column * other).sum(-1, keepdim=True)
        done.append(column / column.norm(dim=-1, keepdim=True).clamp(min=1e-12))
    return torch.stack(done, -1)


class Twin(torch.nn.Module):
    """The same networks and skinning in PyTorch, for any number of poses.

    It leaves out what closes the seams, so it has a little less to do than we have.
    """

    def __init__(self, arrays):
        super().__init__()
        self.groups = torch.nn.ModuleList()
        self.references = torch.from_numpy(arrays["references"]).long()
        self.seen = torch.from_numpy(arrays["seen"]).long()
        for index in range(int(arrays["groups"])):
            group = torch.nn.Module()
            for name in ("inputs", "mean", "scale", "local", "bone"):
                array = torch.from_numpy(arrays[f"{index}.{name}"])
                group.register_buffer(name, array.long() if array.dtype == torch.int32 else array)
            layers = []
            for layer in range(int(arrays[f"{index}.layers"])):
                weights, bias = arrays[f"{index}.{layer}.weights"], arrays[f"{index}.{layer}.bias"]
                linear = torch.nn.Linear(weights.shape[1], weights.shape[0])
                linear.weight.data = torch.from_numpy(weights)
                linear.bias.data = torch.from_numpy(bias)
                layers.append(linear)
                if arrays[f"{index}.{layer}.tanh"]:
                    layers.append(torch.nn.Tanh())
            group.net = torch.nn.Sequential(*layers)
            self.groups.append(group)
        self.skinned, self.rigid = "rest" in arrays, bool(arrays["rigid"])
        if self.skinned:
            get = lambda name: torch.from_numpy(arrays[name])
            self.inverse_rest, self.order = get("inverse_rest"), get("order").long()
            rest, offsets, bones = get("rest"), get("base.offsets").long(), get("base.bones").long()
            rows = torch.repeat_interleave(torch.arange(len(rest)), offsets[1:] - offsets[:-1])
            places = torch.cat([rest, torch.ones(len(rest), 1)], 1)[rows] * get("base.weights")[:, None]
            columns = bones[:, None] * 4 + torch.arange(4)
            entries = torch.stack([rows.repeat_interleave(4), columns.flatten()])
            shape = (len(rest), 4 * len(self.inverse_rest))
            # Skinning as one product with a sparse matrix: of five ways the fastest that PyTorch has.
            matrix = torch.sparse_coo_tensor(entries, places.flatten(), shape, check_invariants=True)
            self.base = matrix.coalesce().to_sparse_csr()

    def skin(self, linear, origin):
        """Linear blend skinning of all poses."""
        turn = linear @ self.inverse_rest[..., :3]
        shift = linear @ self.inverse_rest[..., 3:] + origin.unsqueeze(-1)
        carriers = torch.cat([turn, shift], 3).permute(1, 3, 0, 2)
        return (self.base @ carriers.flatten(2).flatten(0, 1)).unflatten(1, (-1, 3)).transpose(0, 1)

    def forward(self, bones, controls):
        linear, origin = bones[..., :3], bones[..., 3]
        frames = rigid_frames(linear) if self.rigid else linear
        identity = torch.eye(3).expand(len(bones), 1, 3, 3)
        all_frames = torch.cat([frames, identity], 1)
        all_origin = torch.cat([origin, torch.zeros(len(bones), 1, 3)], 1)
        inverse = all_frames.transpose(2, 3) if self.rigid else torch.linalg.inv(all_frames)
        inverse = inverse[:, self.references]
        relative = (inverse @ linear[:, self.seen]).transpose(2, 3).flatten(2)
        apart = origin[:, self.seen] - all_origin[:, self.references]
        offset = (inverse @ apart.unsqueeze(-1)).squeeze(-1)
        inputs = torch.cat([torch.cat([relative, offset], 2).flatten(1), controls], 1)
        out = []
        for group in self.groups:
            x = (inputs[:, group.inputs] - group.mean) * group.scale
            place = group.local
            if len(group.net):
                place = place + group.net(x).unflatten(1, (-1, 3))
            bone = int(group.bone)
            moved = place @ frames[:, bone].transpose(1, 2)
            out.append(moved if self.skinned else moved + origin[:, bone : bone + 1])
        out = torch.cat(out, 1)
        return out[:, self.order] + self.skin(linear, origin) if self.skinned else out


torch.set_grad_enabled(False)
# Layers without columns, and sparse matrices in rows, which PyTorch calls a beta.
for message in ("Initializing zero-element", "Sparse CSR"):
    warnings.filterwarnings("ignore", message=message)
module = Twin(np.load(f"{folder}/twin.npz"))
print(json.dumps({"onnxruntime": onnxruntime.__version__, "torch": torch.__version__}), flush=True)

for line in sys.stdin:
    request = json.loads(line)
    if request["peer"] == "check":
        (vertices,) = sessions[1].run(None, feed(0))
        np.savez(f"{folder}/vertices.npz", vertices=vertices)
        print(json.dumps({"ms": 0}), flush=True)
        continue
    threads, crowd = request["threads"], request["crowd"]
    repetitions = 20 if crowd == 1 else 2
    if request["peer"] == "onnxruntime":
        runner = sessions[threads]
        # Runs in first, as everyone does.
        for pose in range(5):
            runner.run(None, feed(pose))
        start = time.perf_counter()
        for pose in range(repetitions):
            runner.run(None, feed(pose % len(bones)))
    else:
        torch.set_num_threads(threads)
        tensors = [
            (torch.from_numpy(bones[p : p + crowd]), torch.from_numpy(controls[p : p + crowd]))
            for p in range(0, len(bones) - crowd + 1, max(1, crowd))
        ]
        for run in range(5 if crowd == 1 else 1):
            module(*tensors[run % len(tensors)])
        start = time.perf_counter()
        for run in range(repetitions):
            module(*tensors[run % len(tensors)])
    seconds = time.perf_counter() - start
    print(json.dumps({"ms": seconds * 1e3 / repetitions / crowd}), flush=True)
