"""Algorithm 1 of the inverse-rig paper in NumPy, f64, with whole mesh vectors phi and psi in every step.

Reads rig.npz (terms [k, 3n], factors [k, 4] padded with -1, shapes m, targets [frames, 3n]), then answers each line
"direct FRAME" or "residual FRAME" on standard input with one JSON line: seconds and weights. "direct" is the paper's form;
"residual" keeps f(w) - b up to date instead of building psi anew, which the paper does not do.
"""
import json
import sys
import time

import numpy as np

data = np.load(sys.argv[1])
terms = data["terms"].astype(np.float64)
factors = data["factors"]
targets = data["targets"].astype(np.float64)
shapes = int(data["shapes"])
alpha, passes = float(data["alpha"]), int(data["passes"])
sets = [tuple(int(i) for i in row if i >= 0) for row in factors]
uses = [[k for k, s in enumerate(sets) if i in s] for i in range(shapes)]
order = np.argsort(-(terms[:shapes] ** 2).sum(axis=1), kind="stable")


def products(w):
    return np.array([np.prod(w[list(s)]) for s in sets])


def direct(target):
    w = np.zeros(shapes)
    for _ in range(passes):
        for i in order:
            p = products(w)
            p[uses[i]] = 0.0
            psi = p @ terms - target
            q = np.array([np.prod(w[[j for j in sets[k] if j != i]]) for k in uses[i]])
            phi = q @ terms[uses[i]]
            w[i] = min(max((-phi @ psi - alpha) / (phi @ phi), 0.0), 1.0)
    return w


def residual(target):
    w = np.zeros(shapes)
    r = -target
    for _ in range(passes):
        for i in order:
            q = np.array([np.prod(w[[j for j in sets[k] if j != i]]) for k in uses[i]])
            on = np.flatnonzero(q)
            phi = q[on] @ terms[[uses[i][k] for k in on]]
            square = phi @ phi
            new = min(max(w[i] - (phi @ r + alpha) / square, 0.0), 1.0)
            if new != w[i]:
                r += (new - w[i]) * phi
                w[i] = new
    return w


print("ready", flush=True)
for line in sys.stdin:
    form, frame = line.split()
    solve = direct if form == "direct" else residual
    start = time.perf_counter()
    w = solve(targets[int(frame)])
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "weights": w.tolist()}), flush=True)
