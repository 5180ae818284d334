"""The peers of `understudy bench`: onnxruntime and PyTorch on the same network, asked for over a pipe.

One JSON request a line on standard input, one JSON answer a line on standard output. Each peer runs in several ways, for
every number of threads and poses the first request finds the fastest, and that one races; which it is goes to standard
error.
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


class Padded(torch.nn.Module):
    """The groups side by side: one batched product per layer, each padded with zeros to the largest.

    Last layers differ most in size: they are padded as well where `whole`, and run one by one otherwise.
    """

    def __init__(self, groups, controls_end, whole):
        super().__init__()
        self.whole = whole
        linear = lambda group: [layer for layer in group.net if isinstance(layer, torch.nn.Linear)]
        layers = [linear(group) for group in groups]
        depth = max(len(own) for own in layers)
        # A group that sees nothing says its mean: the bias of its last layer.
        assert depth > 1 and all(len(own) in (0, 1, depth) for own in layers)
        count, most = len(groups), lambda sizes: max(sizes, default=0)
        inputs = most(len(group.inputs) for group in groups)
        index = torch.full((count, inputs), controls_end)
        mean, scale = torch.zeros(count, inputs), torch.zeros(count, inputs)
        for row, group in enumerate(groups):
            seen = len(group.inputs)
            index[row, :seen], mean[row, :seen], scale[row, :seen] = group.inputs, group.mean, group.scale
        self.index, self.mean, self.scale = index, mean, scale
        self.weights, self.biases = [], []
        for level in range(depth):
            own = [
                layer[level] if len(layer) == depth else (layer[0] if layer and level == depth - 1 else None)
                for layer in layers
            ]
            rows = most(layer.weight.shape[0] for layer in own if layer is not None)
            columns = most(layer.weight.shape[1] for layer in own if layer is not None)
            weights, biases = torch.zeros(count, columns, rows), torch.zeros(count, 1, rows)
            for row, layer in enumerate(own):
                if layer is not None:
                    high, wide = layer.weight.shape
                    weights[row, :wide, :high], biases[row, 0, :high] = layer.weight.data.t(), layer.bias.data
            self.weights.append(weights)
            self.biases.append(biases)
        self.bones = torch.tensor([int(group.bone) for group in groups])
        self.sizes = [len(group.local) for group in groups]
        largest = most(self.sizes)
        self.local = torch.zeros(count, 1, largest, 3)
        for row, group in enumerate(groups):
            self.local[row, 0, : len(group.local)] = group.local
        places = [row * largest + torch.arange(size) for row, size in enumerate(self.sizes)]
        self.keep = torch.cat(places)
        # Last layers by themselves, without padding.
        self.last = [
            (weights[: layer[-1].weight.shape[1], : 3 * size].contiguous(), bias[:, : 3 * size].contiguous())
            if layer
            else None
            for layer, weights, bias, size in zip(layers, self.weights[-1], self.biases[-1], self.sizes)
        ]

    def forward(self, inputs, frames, origin, skinned):
        inputs = torch.cat([inputs, inputs.new_zeros(len(inputs), 1)], 1)
        x = ((inputs[:, self.index] - self.mean) * self.scale).transpose(0, 1)
        for weights, bias in zip(self.weights[:-2], self.biases[:-2]):
            x = torch.baddbmm(bias, x, weights).tanh()
        x = torch.baddbmm(self.biases[-2], x, self.weights[-2])
        turns = frames[:, self.bones].permute(1, 0, 3, 2)
        shifts = origin[:, self.bones].transpose(0, 1).unsqueeze(2)
        if self.whole:
            place = self.local + torch.baddbmm(self.biases[-1], x, self.weights[-1]).unflatten(2, (-1, 3))
            moved = place @ turns if skinned else place @ turns + shifts
            return moved.transpose(0, 1).flatten(1, 2)[:, self.keep]
        out = []
        for row, (size, last) in enumerate(zip(self.sizes, self.last)):
            place = self.local[row, :, :size]
            if last is None:
                place = place.expand(len(inputs), -1, -1)
            else:
                weights, bias = last
                place = place + torch.addmm(bias, x[row, :, : len(weights)], weights).unflatten(1, (-1, 3))
            moved = place @ turns[row]
            out.append(moved if skinned else moved + shifts[row])
        return torch.cat(out, 1)


class Twin(torch.nn.Module):
    """The same networks and skinning in PyTorch, for any number of poses.

    It leaves out what closes the seams, so it has a little less to do than we have. `padded` is None for one group after
    the other, else what [`Padded`] calls `whole`.
    """

    def __init__(self, arrays, padded=None):
        super().__init__()
        self.padded = None
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
        if padded is not None:
            self.padded = Padded(self.groups, 12 * len(self.seen) + controls.shape[1], padded)
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
            self.register_buffer("base", matrix.coalesce().to_sparse_csr())

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
        if self.padded is not None:
            out = self.padded(inputs, frames, origin, self.skinned)
            return out[:, self.order] + self.skin(linear, origin) if self.skinned else out
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
arrays = np.load(f"{folder}/twin.npz")
forms = {"one group after the other": Twin(arrays)}
try:
    forms["hidden layers batched"] = Twin(arrays, padded=False)
    forms["all layers batched"] = Twin(arrays, padded=True)
except AssertionError:
    # Groups of different depth: there is no layer to batch.
    pass


def traced(form, tensors):
    """As TorchScript, constants folded but for the sparse matrix; None where the tracer cannot follow."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            script = torch.jit.trace(form.eval(), tensors[0], check_trace=False)
            if not form.skinned:
                # A sparse matrix is no constant that TorchScript could fold.
                script = torch.jit.freeze(script)
            # The first runs specialise it.
            for run in range(3):
                script(*tensors[run % len(tensors)])
        return script
    except Exception as problem:
        print(f"TorchScript left out: {str(problem).splitlines()[0]}", file=sys.stderr)
        return None


def batches(crowd):
    return [
        (torch.from_numpy(bones[p : p + crowd]), torch.from_numpy(controls[p : p + crowd]))
        for p in range(0, len(bones) - crowd + 1, max(1, crowd))
    ]


def clock(run, warm, repetitions):
    """Seconds of that many runs, after some to warm up, as everyone has them."""
    for index in range(warm):
        run(index)
    start = time.perf_counter()
    for index in range(repetitions):
        run(index)
    return time.perf_counter() - start


def ways(peer, threads, crowd):
    """How the peer can do it, by name: functions of the number of a run."""
    if peer == "onnxruntime":
        runner = lambda session: lambda run: session.run(None, feed(run % len(bones)))
        return {name: runner(session) for name, session in sessions(threads).items()}
    tensors, out = batches(crowd), {}
    for name, form in forms.items():
        out[name] = lambda run, form=form: form(*tensors[run % len(tensors)])
        script = traced(form, tensors)
        if script is not None:
            out[f"{name}, TorchScript"] = lambda run, script=script: script(*tensors[run % len(tensors)])
    return out


fastest = {}
# All forms say the same, or the race is none.
expected = forms["one group after the other"](*batches(1)[0])
for name, form in forms.items():
    apart = (form(*batches(1)[0]) - expected).abs().max().item()
    assert apart < 1e-2, f"{name} is {apart} cm from the plain form"
print(json.dumps({"onnxruntime": onnxruntime.__version__, "torch": torch.__version__}), flush=True)

for line in sys.stdin:
    request = json.loads(line)
    if request["peer"] == "check":
        (vertices,) = session(1).run(None, feed(0))
        np.savez(f"{folder}/vertices.npz", vertices=vertices)
        print(json.dumps({"ms": 0}), flush=True)
        continue
    peer, threads, crowd = request["peer"], request["threads"], request["crowd"]
    torch.set_num_threads(threads)
    warm, repetitions = (5, 20) if crowd == 1 else (1, 2)
    task = (peer, threads, crowd)
    if task not in fastest:
        found = ways(*task)
        seconds = {name: clock(run, warm, repetitions) for name, run in found.items()}
        name = min(seconds, key=seconds.get)
        fastest[task] = found[name]
        print(f"{peer}, {threads} thread(s), {crowd} pose(s): {name}", file=sys.stderr, flush=True)
    seconds = clock(fastest[task], warm, repetitions)
    print(json.dumps({"ms": seconds * 1e3 / repetitions / crowd}), flush=True)
