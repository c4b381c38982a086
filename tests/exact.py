"""Closed networks of one class in arithmetic of 60 digits, straight from the definition."""

import mpmath
import numpy as np

from nummodel.models import networks


def solve(stations, N, Z=0.0):
    """Throughput at 1 .. N, and mean numbers (stations first), as floats."""
    with mpmath.workdps(60):
        series = [_series(station.D, station.capacity, N) for station in stations]
        thinking = _series(Z, None, N)
        before, after = [thinking], [[mpmath.mpf(1)] + [mpmath.mpf(0)] * N]
        for f in series:
            before.append(_convolved(before[-1], f))
        for f in series[::-1]:
            after.append(_convolved(after[-1], f))
        G = before[-1]
        Q = []
        for k, f in enumerate(series):
            without = _convolved(before[k], after[len(series) - k - 1])
            numbers = _convolved(without, [n * term for n, term in enumerate(f)])
            Q.append([float(q / g) for q, g in zip(numbers, G, strict=True)][1:])
        return np.array([float(G[n - 1] / G[n]) for n in range(1, N + 1)]), np.array(Q)


def _series(D, capacity, N):
    terms = [mpmath.mpf(1)]
    for n in range(1, N + 1):
        speed = n if capacity is None else float(capacity[min(n, len(capacity)) - 1])
        terms.append(terms[-1] * mpmath.mpf(D) / speed)
    return terms


def _convolved(a, b):
    return [mpmath.fdot(a[: n + 1], b[n::-1]) for n in range(len(a))]


def random_network(rng, largest):
    """Up to six stations of all kinds, think time and population: some demands equal, some of
    quite another size, some capacities rising, falling, or neither.
    """
    stations, D = [], []
    for _ in range(rng.integers(1, 7)):
        wide = rng.random() < 0.15
        D.append(10 ** (rng.uniform(-9, 9) if wide else rng.uniform(-3, 1)))
        if rng.random() < 0.3:
            D[-1] = D[0]
        kind = rng.choice(["one", "several", "varying", "delay"], p=[0.4, 0.3, 0.25, 0.05])
        if kind == "varying":
            stations.append(networks.load_dependent(D[-1], _capacity(rng)))
        elif kind == "delay":
            stations.append(networks.delay(D[-1]))
        else:
            stations.append(networks.queue(D[-1], 1 if kind == "one" else rng.integers(2, 65)))
    some = rng.choice([1e-9 * max(D), 10 ** rng.uniform(-3, 3), 1e6 * max(D)], p=[0.1, 0.8, 0.1])
    Z = float(rng.choice([0.0, some], p=[0.3, 0.7]))
    return stations, int(rng.integers(1, largest + 1)), Z


def _capacity(rng):
    n = np.arange(rng.integers(1, rng.choice([5, 64, 400])))
    return [
        1 / (1 + rng.uniform(0, 0.3) * n),
        10 ** rng.uniform(-1, 1, len(n)),
        np.sort(10 ** rng.uniform(-1, 1, len(n))),
        (1 + n) / (1 + rng.uniform(0, 0.05) * n**2),
        (1.0 + n) ** rng.uniform(-1.5, 1.5),
    ][rng.integers(5)]


def worst_error(stations, N, Z):
    """Largest relative error of X, Q and R of every station, at 1 .. N at once and at N alone."""
    X, Q = solve(stations, N, Z)
    curve = networks.solve(stations, np.arange(1, N + 1), Z)
    point = networks.solve(stations, N, Z)
    return max(
        np.abs(curve.X / X - 1).max(),
        np.abs(curve.Q / Q - 1).max(),
        np.abs(curve.R_k / (Q / X) - 1).max(),
        np.abs(point.X / X[-1] - 1),
        np.abs(point.Q / Q[:, -1] - 1).max(),
    )
