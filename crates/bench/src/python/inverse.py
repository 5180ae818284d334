"""Algorithm 1 of the inverse-rig paper in NumPy, f64, vectorised over terms and coordinates.

Reads rig.npz (terms [k, 3n], factors [k, 4] padded with -1, shapes m, targets [frames, 3n]), then answers each line
"FORM FRAME" on standard input with one JSON line: seconds and weights. Forms:
  direct    the paper's: whole mesh vectors phi and psi in every step;
  residual  f(w) - b kept up to date instead of building psi anew;
  gram      inner products of all terms tabulated once, as in understudy: no mesh vector after one projection per frame.
The order of visits and the iterates are the same in all of them.
"""
import json
import sys
import time

import numpy as np

data = np.load(sys.argv[1])
terms = data["terms"].astype(np.float64)
targets = data["targets"].astype(np.float64)
shapes = int(data["shapes"])
alpha, passes = float(data["alpha"]), int(data["passes"])
# Missing factors point at one more weight, which is one.
factors = np.where(data["factors"] < 0, shapes, data["factors"]).astype(np.intp)
uses = [np.flatnonzero((factors == i).any(axis=1)) for i in range(shapes)]
# The factors of the terms that a shape is in, without itself.
others = [np.where(factors[u] == i, shapes, factors[u]) for i, u in enumerate(uses)]
order = np.argsort(-(terms[:shapes] ** 2).sum(axis=1), kind="stable")
gram = terms @ terms.T
columns = [np.ascontiguousarray(gram[:, u]) for u in uses]
blocks = [np.ascontiguousarray(gram[np.ix_(u, u)]) for u in uses]


def direct(target):
    w = np.zeros(shapes + 1)
    w[shapes] = 1.0
    for _ in range(passes):
        for i in order:
            p = w[factors].prod(axis=1)
            p[uses[i]] = 0.0
            psi = p @ terms - target
            q = w[others[i]].prod(axis=1)
            phi = q @ terms[uses[i]]
            w[i] = min(max((-phi @ psi - alpha) / (phi @ phi), 0.0), 1.0)
    return w[:shapes]


def residual(target):
    w = np.zeros(shapes + 1)
    w[shapes] = 1.0
    r = -target
    for _ in range(passes):
        for i in order:
            q = w[others[i]].prod(axis=1)
            on = np.flatnonzero(q)
            phi = q[on] @ terms[uses[i][on]]
            new = min(max(w[i] - (phi @ r + alpha) / (phi @ phi), 0.0), 1.0)
            if new != w[i]:
                r += (new - w[i]) * phi
                w[i] = new
    return w[:shapes]


def by_gram(target):
    w = np.zeros(shapes + 1)
    w[shapes] = 1.0
    # Every term's product with what is left of the target.
    g = -(terms @ target)
    for _ in range(passes):
        for i in order:
            q = w[others[i]].prod(axis=1)
            new = min(max(w[i] - (q @ g[uses[i]] + alpha) / (q @ blocks[i] @ q), 0.0), 1.0)
            if new != w[i]:
                g += columns[i] @ (q * (new - w[i]))
                w[i] = new
    return w[:shapes]


forms = {"direct": direct, "residual": residual, "gram": by_gram}
# The first run of anything is slower; "direct" takes seconds and does not notice.
residual(targets[0])
by_gram(targets[0])
print("ready", flush=True)
for line in sys.stdin:
    form, frame = line.split()
    start = time.perf_counter()
    w = forms[form](targets[int(frame)])
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "weights": w.tolist()}), flush=True)
