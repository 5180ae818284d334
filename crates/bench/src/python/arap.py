"""libigl's as-rigid-as-possible deformation (spokes) of the mesh of problem.npz, one line per question.

"solve ITERATIONS" starts from rest and answers with one JSON line: seconds of the iterations, seconds of the
precomputation; the vertices go to libigl-arap.npz.
"""
import json
import sys
import time
from pathlib import Path

import igl
import numpy as np

path = Path(sys.argv[1])
problem = np.load(path)
points = problem["points"].astype(np.float64)
faces = problem["faces"].astype(np.int64)
held = problem["held"].astype(np.int32)
targets = problem["targets"].astype(np.float64)
print("ready", flush=True)
for line in sys.stdin:
    _, iterations = line.split()
    data = igl.ARAPData()
    data.energy = igl.ARAP_ENERGY_TYPE_SPOKES
    data.max_iter = int(iterations)
    start = time.perf_counter()
    igl.arap_precomputation(points, faces, 3, held, data)
    prepared = time.perf_counter() - start
    start = time.perf_counter()
    vertices = igl.arap_solve(targets, data, points.copy())
    seconds = time.perf_counter() - start
    np.savez(path.with_name("libigl-arap.npz"), vertices=vertices.astype(np.float32))
    print(json.dumps({"seconds": seconds, "prepared": prepared}), flush=True)
