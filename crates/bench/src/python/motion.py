# GPy's latent variable model on the same poses, from the same start: one line of JSON per request.
# Answers "ready", then for "learn N" optimises N iterations of scaled conjugate gradient.
import json
import sys
import time

import GPy
import numpy as np

data = np.load(sys.argv[1])
y, x = data["y"].astype(float), data["x"].astype(float)
print("ready", flush=True)
for request in sys.stdin:
    iterations = int(request.split()[1])
    kernel = GPy.kern.RBF(x.shape[1], variance=1.0, lengthscale=1.0)
    model = GPy.models.GPLVM(y, x.shape[1], X=x.copy(), kernel=kernel)
    model.likelihood.variance[:] = 0.01
    before = float(model.log_likelihood())
    start = time.perf_counter()
    model.optimize("scg", max_iters=iterations, messages=False)
    seconds = time.perf_counter() - start
    print(json.dumps({"before": before, "after": float(model.log_likelihood()), "seconds": seconds}), flush=True)
