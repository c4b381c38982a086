"""A sweep on a local cluster: throughput and response time of closed systems with a lock."""

from pathlib import Path

import numpy as np
from distributed import Client

from nummodel.sweeps import sweep


def closed(N, D_cpu, D_lock, Z):
    """Processor and lock, a queue with one server each, by Reiser and Lavenberg's recursion."""
    Q_cpu = Q_lock = X = R = np.zeros(len(N))
    for n in range(1, N.max() + 1):
        R_cpu, R_lock = D_cpu * (1 + Q_cpu), D_lock * (1 + Q_lock)
        now = n <= N  # systems that have fewer customers keep their solution
        R = np.where(now, R_cpu + R_lock, R)
        X = np.where(now, n / (Z + R), X)
        Q_cpu, Q_lock = X * R_cpu, X * R_lock
    return {"X": X, "R": R}


if __name__ == "__main__":
    grid = {
        "N": np.arange(1, 51),
        "D_cpu": np.linspace(0.01, 0.1, 20),
        "D_lock": np.linspace(0.001, 0.02, 20),
        "Z": [0.5, 1.0, 2.0, 5.0, 10.0],
    }
    here = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:8787"}  # nobody else gets in
    with Client(n_workers=2, threads_per_worker=1, **here) as client:
        print(f"dashboard: {client.dashboard_link}")
        found = sweep(closed, grid, Path("swept"), client=client)
    print(f"{found.count_rows()} points are in the folder swept")
