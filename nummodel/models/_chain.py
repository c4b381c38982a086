"""A closed system with a lock, or with one that is split into several: the birth and death process
of the number of threads there.
"""

from collections.abc import Callable, Iterable, Sequence
from math import isqrt, prod
from typing import Any, NamedTuple

import numpy as np

from nummodel.arguments import aligned, checked, count, feasible, within

#: Seconds per completion with n present, as a number or an array of any shape.
Grant = Callable[[int], Any]

#: Shortest grant [s]: reciprocals stay within the range of floats.
SHORTEST = 1e-150
#: A think time that is as short as none [s].
NEVER = 1e-300
#: Most threads of one system, one step for each; and most figures of a grid of systems, a second.
THREADS, FIGURES = 10**5, 10**7
#: Most products for the shards of a grid, which take a second or two.
PRODUCTS = 10**9


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

    With `c` processors, a thread that waits gives its processor away, as at a lock that blocks: at
    most c threads think or hold at a time. A thread that spins keeps it: then N is min(N, c).
    """
    N, Z, c = np.broadcast_arrays(N, Z, c)
    most = int(N.max(initial=1))
    systems = prod(aligned({"grant": seconds(grant, [1])[0], "N": N}))
    feasible("N", most, min(THREADS, FIGURES // max(systems, 1)), "one step for each thread")
    n = np.arange(1, most + 1).reshape(-1, *(1,) * N.ndim)
    t: Any = seconds(grant, range(1, most + 1))
    room: Any = np.maximum(np.minimum(N - n + 1, c - (n > 1)), 0.0)
    think: Any = np.maximum(Z, NEVER)  # so that no sum below is 0
    if room.ndim == t.ndim == 1:  # floats of Python are faster than those of NumPy
        room, t, think = room.tolist(), t.tolist(), float(think)
    return contended(*walked(zip(room, t, strict=True), think), N)


def contended(X, Q, N) -> Contended:
    """With the share, and floats for what is no array."""
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


def shares(ratios, axis=0):
    """Shares of the time in a chain's first state and in others, by ratios of rates to and back."""
    weights = np.cumsum(np.log(np.minimum(ratios, 1 / NEVER)), axis=axis)
    largest = np.maximum(weights.max(axis=axis, keepdims=True, initial=0.0), 0.0)
    first, further = np.exp(-largest), np.exp(weights - largest)
    total = first + further.sum(axis=axis, keepdims=True)
    return np.squeeze(first / total, axis), further / total


def seconds(grant: Grant, numbers: Sequence[int]) -> np.ndarray:
    """The grant with each of some numbers present, checked, a row each."""
    if not callable(grant):
        raise ValueError(f"grant is {grant!r}, expected a function of the number present")
    each: Any = [grant(n) for n in numbers]
    if any(isinstance(one, np.ndarray) for one in each):
        each = np.broadcast_arrays(*each)
    try:
        return within("grant", each, SHORTEST, 1 / SHORTEST)
    except ValueError:
        for n, one in zip(numbers, each, strict=True):
            within(f"grant({n})", one, SHORTEST, 1 / SHORTEST)
        raise


@np.errstate(all="ignore")
@checked
def sharded_grant(grant: Grant, m, N: int) -> Grant:
    """One lock split into `m` shards, each use going to any of them alike: the grant of all shards.

    Exact for up to N threads: m stations in product form with n threads among them. `m` may be an
    array beside the arrays of `grant`.

    >>> shards = sharded_grant(lambda n: 1.0, m=[1, 2, 1000], N=80)
    >>> solve(shards, N=80, Z=9.0).share.round(2)
    array([0.89, 0.78, 0.1 ])

    One thread alone never waits: shards(1) is grant(1), whatever m.
    """
    N, m = count("N", N, most=THREADS), m.astype(int)
    systems = aligned({"grant": seconds(grant, [1])[0], "m": m})
    bits = int(m.max(initial=1)).bit_length()
    work = bits * max(prod(systems), 1)
    feasible("N", N, isqrt(PRODUCTS // work), f"N x N products, {work:,} times")
    t = np.array([np.broadcast_to(row, systems) for row in seconds(grant, range(1, N + 1))])
    x = 1 / (t.max(axis=0) * (1 + (m - 1) / N))  # a scale at which few terms are far from 1
    power = np.concatenate([np.ones((1, *systems)), np.cumprod(t * x, axis=0)])
    G = np.zeros_like(power)
    G[0] = 1.0
    for bit in range(bits):
        if bit:
            power = _convolved(power, power)
        G = np.where(m >> bit & 1, _convolved(G, power), G)
    if not (np.isfinite(G) & (G > 0)).all():
        raise ArithmeticError(f"N is {N} and m up to {m.max()}: beyond what floats can hold")
    # Each of the m is chosen with 1/m: as demands, all of the terms times m^-n.
    times = G[1:] / G[:-1] / x / m
    # A whole number need not be checked each time that `solve` asks.
    return lambda n: times[(n if type(n) is int and 0 < n <= N else count("n", n, most=N)) - 1]


@np.errstate(all="ignore")
@checked
def held_shards(grant: Grant, m, N: int, Z):
    """Mean number of the `m` shards that are held, by N threads that think for Z seconds. The other
    threads at the locks wait.

    Exact for exponential times; `m`, `Z` and the arrays of `grant` are broadcast, N is one number.
    A shard is free with the probability G'/G, of the normalising constants without and with it, at
    the same demands, and each G is the product of 1/X for 1 to N threads. Accurate to
    some m N 1e-16. Raises ValueError as `sharded_grant` and `solve` do.

    With a constant grant of 1 s, as many are held as are used a second:

    >>> held_shards(lambda n: 1.0, m=[1, 4], N=80, Z=9.0).round(4)
    array([1.    , 3.7528])

    If those who wait slow the holder, threads gather at few shards, and the others are free:

    >>> round(held_shards(lambda n: 1 + 0.3 * (n - 1), m=8, N=80, Z=9.0), 2)
    1.3
    """
    N, m = count("N", N, most=THREADS), m.astype(int)
    less = np.maximum(m - 1, 1)
    systems = aligned({"grant": seconds(grant, [1])[0], "m": m, "Z": Z})
    n = np.arange(1, N + 1).reshape(-1, *(1,) * len(systems))
    fewer = sharded_grant(lambda k: less / m * seconds(grant, [k])[0], less, N)
    X = solve(sharded_grant(grant, m, N), n, Z).X
    X_without = np.where(m > 1, solve(fewer, n, Z).X, n / Z)  # without the only lock, all think
    held = m * (1 - (X / X_without).prod(axis=0))
    return held if systems else float(held)


@np.errstate(all="ignore")
@checked
def fewest_shards(grant: Grant, N: int, Z, share):
    """Smallest number of shards, up to N, with no more than `share` of the threads at the locks.

    >>> fewest_shards(lambda n: 1.0, N=80, Z=9.0, share=[0.5, 0.2, 0.1])
    array([ 5., 13., inf])
    """
    N = count("N", N, most=THREADS)
    systems = aligned({"grant": seconds(grant, [1])[0], "Z": Z, "share": share})
    fewest, tried = np.full(systems, np.inf), 0
    while tried < N and np.isinf(fewest).any():
        m = np.arange(tried + 1, min(2 * tried + 16, N) + 1).reshape(-1, *(1,) * len(systems))
        enough = solve(sharded_grant(grant, m, N), N, Z).share <= share
        fewest = np.fmin(fewest, np.where(enough, m, np.inf).min(axis=0))
        tried = int(m.max())
    return fewest if systems else float(fewest)


def _convolved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of two series, as far as they go, along the first axis."""
    y = np.zeros(np.broadcast_shapes(a.shape, b.shape))
    for k in range(len(a)):
        y[k:] += a[k] * b[: len(b) - k]
    return y
