"""PyTorch's side of the race of training: prints steps a second of the faster of two ways.

One way is a process of one thread for each core, which suits small networks; the other is one process
that uses all cores inside its operations.
"""
import json
import multiprocessing
import sys
import time

import torch

with open(f"{sys.argv[1]}/race.json") as file:
    config = json.load(file)


def train(sizes, threads, ready, go, done):
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    jobs = []
    for inputs, first, second, outputs in sizes:
        net = torch.nn.Sequential(
            torch.nn.Linear(inputs, first),
            torch.nn.Tanh(),
            torch.nn.Linear(first, second),
            torch.nn.Tanh(),
            torch.nn.Linear(second, outputs),
        )
        # The fused optimiser is the fastest that PyTorch has on a processor.
        adam = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.1, fused=True)
        jobs.append((net, adam, torch.randn(config["rows"], inputs), torch.randn(config["rows"], outputs)))

    def step(net, adam, x, y):
        adam.zero_grad(set_to_none=True)
        loss = 0.5 * (net(x) - y).square().sum(1).mean()
        loss.backward()
        adam.step()

    for net, adam, x, y in jobs:
        step(net, adam, x[: config["batch"]], y[: config["batch"]])
    ready.wait()
    go.wait()
    for net, adam, x, y in jobs:
        for _ in range(config["epochs"]):
            order = torch.randperm(config["rows"])
            for start in range(0, config["rows"] - config["batch"] + 1, config["batch"]):
                rows = order[start : start + config["batch"]]
                step(net, adam, x[rows], y[rows])
    done.wait()


def way(processes, threads):
    """Steps a second with the networks dealt out to that many processes."""
    context = multiprocessing.get_context("spawn")
    ready, go, done = (context.Barrier(processes + 1) for _ in range(3))
    # Dealt out by size, so that no process waits for another for long.
    order = sorted(config["sizes"], key=lambda size: -size[0])
    workers = [
        context.Process(target=train, args=(order[index::processes], threads, ready, go, done))
        for index in range(processes)
    ]
    for worker in workers:
        worker.start()
    ready.wait()
    start = time.perf_counter()
    go.wait()
    done.wait()
    seconds = time.perf_counter() - start
    for worker in workers:
        worker.join()
    steps = len(config["sizes"]) * config["epochs"] * (config["rows"] // config["batch"])
    return steps / seconds


if __name__ == "__main__":
    print(max(way(config["threads"], 1), way(1, config["threads"])))
