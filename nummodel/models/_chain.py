"""A closed system with a lock: the birth and death process of the number of threads at the lock."""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from nummodel.arguments import aligned, checked, feasible, within

#: Seconds per completion with n present: a function of the whole number n that gives an array of
#: any shape, or an array with a row for each n from 1 on.
Grant = Callable[[int], Any] | np.ndarray

#: Shortest grant [s]: reciprocals stay within the range of floats.
SHORTEST = 1e-150
#: Most threads of one system, one step for each; and most figures of a grid of systems. Each takes
#: a second or two.
THREADS, FIGURES = 10**5, 10**8
#: Figures of a grid that are worked on at a time: some megabytes.
BLOCK = 10**5


class Contended(NamedTuple):
    """`X` uses per second, `Q` threads at the lock on average (holder included), `share` = Q/N."""

    X: Any
    Q: Any
    share: Any


@checked
def solve(grant: Grant, N, Z, c=np.inf) -> Contended:
    """N threads that think for Z and then use a lock, which takes `grant(n)` with n present.

    Exact for exponential times and a grant that depends on n only: the birth and death process of
    the machine repairman (see `queueing`). One thread never waits; with many, X is 1/grant(N).

    >>> solve(lambda n: 1.0, N=[1, 16, 10**3], Z=15.0).X.round(4)
    array([0.0625, 0.8554, 1.    ])

    A function is called once for each n. An array with a row for each n from 1 to N or more, as the
    grants of `locks` give it, takes less time where there are many threads:

    >>> round(solve(1 + 0.1 * np.arange(100_000), N=100_000, Z=100.0).X, 6)  # 1/grant(N) if full
    0.0001

    With `c` processors, a thread that waits gives its processor away, as at a lock that blocks: at
    most c threads think or hold at a time. A thread that spins keeps it: then N is min(N, c).
    """
    N, Z, c = np.broadcast_arrays(N, Z, c)
    most = int(N.max(initial=0))
    shape = aligned({"grant": seconds(grant, [1])[0], "N": N}) if most else N.shape
    systems = max(prod(shape), 1)
    feasible("N", most, min(THREADS, FIGURES // systems), "one step for each thread")
    # If at most n could be present: the probability `last` of n, the rate X of grants, the mean Q.
    last: Any = 1.0
    X: Any = 0.0
    Q: Any = 0.0
    think: Any = Z if shape else Z.item()  # floats of Python are faster than those of NumPy
    step = max(BLOCK // systems, 1)
    for first in range(1, most + 1, step):
        n = np.arange(first, min(first + step, most + 1))
        present = n.reshape(-1, *(1,) * N.ndim)
        free = np.maximum(np.minimum(N - present + 1, c - (present > 1)), 0.0)
        rows = (free, seconds(grant, n)) if shape else (free.tolist(), seconds(grant, n).tolist())
        for k, room, t in zip(n.tolist(), *rows, strict=True):
            entering = last * room
            total = entering * t + think
            none = total == 0  # where nobody thinks for any time, and nobody more can come
            rate = entering / (total + none)
            fewer = (think + none) / (total + none)
            last = rate * t
            X = X * fewer + rate
            Q = Q * fewer + last * k
    X, Q, N = np.broadcast_arrays(X, Q, N)
    share = np.divide(Q, N, out=np.zeros(Q.shape), where=N > 0)
    return Contended(*(v.copy() if v.ndim else float(v) for v in (X, Q, share)))


def seconds(grant: Grant, numbers) -> np.ndarray:
    """The grant with each of these numbers present, checked: a row for each."""
    if not callable(grant):
        table = within("grant", grant, SHORTEST, 1 / SHORTEST)
        if table.ndim == 0 or len(table) < numbers[-1]:
            raise ValueError(
                f"grant is {grant!r}, expected a function of the number present, or a row for each "
                f"number up to {numbers[-1]}"
            )
        return table[numbers[0] - 1 : numbers[-1]]
    rows: Any = [grant(n) for n in map(int, numbers)]
    if any(isinstance(row, np.ndarray) for row in rows):
        rows = np.broadcast_arrays(*rows)
    try:
        return within("grant", rows, SHORTEST, 1 / SHORTEST)
    except ValueError:
        for n, row in zip(numbers, rows, strict=True):
            within(f"grant({n})", row, SHORTEST, 1 / SHORTEST)
        raise
