"""A closed system with a lock: the birth and death process of the number of threads at the lock."""

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from nummodel.arguments import aligned, checked, feasible, within

#: Seconds per completion with n present: a function of the whole number n that gives an array of
#: any shape, or an array with a row for each n from 1 on.
Grant = Callable[[int], Any] | np.ndarray

#: Shortest grant [s]: reciprocals stay within the range of floats.
SHORTEST = 1e-150
#: A think time that is as short as none [s].
NEVER = 1e-300
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
    most, seconds = int(N.max(initial=0)), rows(grant)
    ends = [seconds([n])[0] for n in {1, most}] if most else []  # a grant may be an array later on
    shape = aligned({"grant": sum(ends[1:], ends[0]), "N": N}) if most else N.shape
    systems = max(prod(shape), 1)
    feasible("N", most, min(THREADS, FIGURES // systems), "one step for each thread")
    think: Any = np.maximum(Z, NEVER)  # so that no sum below is 0
    think = think if shape else float(think)  # floats of Python are faster than those of NumPy
    step = max(BLOCK // systems, 1)

    def steps():
        for first in range(1, most + 1, step):
            n = np.arange(first, min(first + step, most + 1))
            present = n.reshape(-1, *(1,) * N.ndim)
            room = np.maximum(np.minimum(N - present + 1, c - (present > 1)), 0.0)
            t = seconds(n.tolist())
            lists = (room, t) if shape else (room.tolist(), t.tolist())
            yield from zip(*lists, strict=True)

    X, Q = walked(steps(), think)
    X, Q, N = np.broadcast_arrays(X, Q, N)
    share = np.divide(Q, N, out=np.zeros(Q.shape), where=N > 0)
    return Contended(*(v.copy() if v.ndim else float(v) for v in (X, Q, share)))


def walked(steps: Iterable, think) -> tuple[Any, Any]:
    """X and mean Q of a chain, whose step to n present has the room of n and the grant with n."""
    # If at most n could be present: the probability `last` of n, the rate X of grants, the mean Q.
    last: Any = 1.0
    X: Any = 0.0
    Q: Any = 0.0
    for n, (free, t) in enumerate(steps, 1):
        entering = last * free
        total = entering * t + think
        rate, fewer = entering / total, think / total
        last = rate * t
        X = X * fewer + rate
        Q = Q * fewer + last * n
    return X, Q


def rows(grant: Grant) -> Callable[[Sequence[int]], np.ndarray]:
    """The grant with each of some numbers present that follow each other, checked, a row each."""
    if callable(grant):
        return lambda numbers: _called(grant, numbers)
    table = within("grant", grant, SHORTEST, 1 / SHORTEST)

    def some(numbers):
        if table.ndim == 0 or len(table) < numbers[-1]:
            raise ValueError(
                f"grant is {grant!r}, expected a function of the number present, or a row for each "
                f"number up to {numbers[-1]}"
            )
        return table[numbers[0] - 1 : numbers[-1]]

    return some


def _called(grant: Callable, numbers: Sequence[int]) -> np.ndarray:
    each: Any = [grant(n) for n in map(int, numbers)]
    if any(isinstance(one, np.ndarray) for one in each):
        each = np.broadcast_arrays(*each)
    try:
        return within("grant", each, SHORTEST, 1 / SHORTEST)
    except ValueError:
        for n, one in zip(numbers, each, strict=True):
            within(f"grant({n})", one, SHORTEST, 1 / SHORTEST)
        raise
