"""Closed networks of several classes, by mean value analysis: exactly, and by Schweitzer.

A customer who arrives at a queue finds the queue of the network without this customer (Reiser and
Lavenberg 1980): R = D (1 + Q with one fewer of the class), and X = N/(Z + R) by Little's law.
Arrays have stations first, then classes; `queues` says which stations are no delays.
"""

from math import prod

import numpy as np

#: Most numbers that Schweitzer's approximation computes: some seconds of work.
NUMBERS = 100_000_000
#: A number present that is as good as 0.
NOBODY = 1e-290


def exact(D: np.ndarray, queues: np.ndarray, N: list[int], Z: np.ndarray):
    """Throughput and residence times, from those of all smaller populations.

    A step has all populations of the same total, as an array over all classes but the largest; one
    customer fewer is a shift of the step before. Entries with a negative population, or next to the
    edge of a shift, have throughput 0 and are not used.

    Raises ArithmeticError if throughputs contradict those with one customer fewer: X_c(N) is
    G(N - 1_c)/G(N), so that X_c(N) X_d(N - 1_c) does not depend on the order of c and d.
    """
    order = np.argsort(N, kind="stable")
    n = np.array(N)[order]
    wait = (Z + D[~queues].sum(0))[order][:, None]
    demand = D[queues].T[order][:, :, None]
    shape = tuple(n[:-1] + 1)
    strides = [prod(shape[c + 1 :]) for c in range(len(shape))]
    counts = np.zeros((len(n), prod(shape)))
    counts[:-1] = np.indices(shape).reshape(len(shape), prod(shape))
    placed = counts.sum(0)
    R = np.ones((len(n), demand.shape[1], prod(shape)))
    numbers, ahead = np.zeros_like(R), np.ones_like(R)
    last = X = np.zeros_like(counts)
    for total in range(1, n.sum() + 1):
        np.add(numbers.sum(0), 1.0, out=ahead[-1])
        for c, stride in enumerate(strides):
            ahead[c, :, stride:] = ahead[-1, :, :-stride]
        np.multiply(demand, ahead, out=R)
        np.maximum(total - placed, 0.0, out=counts[-1])
        last, X = X, counts / (wait + R.sum(1))
        np.multiply(X[:, None], R, out=numbers)
    end = prod(shape) - 1  # all customers but those of the largest class; a class may have none
    fewer = last[:, [max(end - stride, 0) for stride in [*strides, 0]]].T  # a row a class
    orders = (X[:, -1:] * fewer)[np.ix_(n > 0, n > 0)]
    if (abs(orders - orders.T) > 1e-9 * orders).any():
        raise ArithmeticError("the solution fails its check: throughputs contradict each other")
    back = np.argsort(order)
    R_k = D.copy()
    R_k[queues] = R[back, :, -1].T
    return X[back, -1], R_k


def terms(N: list[int], stations: int) -> int:
    """Numbers that `exact` has to compute; a step counts as 3,000 at least, by its time."""
    step = prod(n + 1 for n in sorted(N)[:-1]) * len(N) * stations
    return (sum(N) + 1) * max(step, 3000)


def schweitzer(D: np.ndarray, queues: np.ndarray, N: list[int], Z: np.ndarray):
    """Throughput and residence times, if one customer fewer shortens queues in proportion."""
    n = np.array(N, dtype=float)
    unit = np.maximum(Z, D.max(0))  # a unit of time for each class
    D, Z = D / unit, Z / unit
    share = 1 / np.maximum(n, 1)
    Q = n * D / (Z + D.sum(0))
    for _ in range(min(300_000, NUMBERS // D.size)):
        R = D * (1 + queues[:, None] * (Q.sum(1, keepdims=True) - Q * share))
        X = n / (Z + R.sum(0))
        before, Q = Q, X * R
        if (np.abs(Q - before) <= 1e-13 * Q + NOBODY).all():
            return X / unit, R * unit
    raise ArithmeticError(f"N is {tuple(N)}: Schweitzer's approximation did not settle")
