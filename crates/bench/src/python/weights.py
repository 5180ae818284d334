"""libigl's bounded biharmonic weights on the tetrahedra and handles of problem.npz, one line per question.

"solve ITERATIONS" answers with one JSON line: seconds; the weights go to libigl.npz as [nodes, handles], not normalised.
"""
import json
import sys
import time
from pathlib import Path

import igl
import numpy as np

path = Path(sys.argv[1])
data = np.load(path)
points = data["points"].astype(np.float64)
tetrahedra = data["tetrahedra"].astype(np.int64)
nodes = data["nodes"].astype(np.int64)
rows = data["rows"].astype(np.float64)
print("ready", flush=True)
for line in sys.stdin:
    _, iterations = line.split()
    start = time.perf_counter()
    weights = igl.bbw(points, tetrahedra, nodes, rows, max_iter=int(iterations))
    seconds = time.perf_counter() - start
    np.savez(path.with_name("libigl.npz"), values=weights.astype(np.float32))
    print(json.dumps({"seconds": seconds}), flush=True)
