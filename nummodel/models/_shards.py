"""A lock that is split into several: the grant of all of them together."""

from math import isqrt, prod

import numpy as np

from nummodel.arguments import aligned, checked, count, feasible
from nummodel.models._chain import THREADS, Grant, rows, solve

#: Most products for the shards of a grid, which take a second or two.
PRODUCTS = 10**9


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
    bits = int(m.max(initial=1)).bit_length()
    work = bits * max(prod(aligned({"grant": rows(grant)([1])[0], "m": m})), 1)
    feasible("N", N, isqrt(PRODUCTS // work), f"N x N products, {work:,} times")
    t = rows(grant)(range(1, N + 1))
    t = t.reshape(N, *(1,) * (m.ndim + 1 - t.ndim), *t.shape[1:])
    t = np.broadcast_to(t, (N, *np.broadcast_shapes(t.shape[1:], m.shape)))
    x = 1 / (t.max(axis=0) * (1 + (m - 1) / N))  # a scale at which few terms are far from 1
    power = np.concatenate([np.ones((1, *t.shape[1:])), np.cumprod(t * x, axis=0)])
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
    the same demands, and each G is the product of 1/X for 1 to N threads (see `_many`). Accurate to
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
    systems = aligned({"grant": rows(grant)([1])[0], "m": m, "Z": Z})
    n = np.arange(1, N + 1).reshape(-1, *(1,) * len(systems))
    fewer = sharded_grant(lambda k: less / m * rows(grant)([k])[0], less, N)
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
    systems = aligned({"grant": rows(grant)([1])[0], "Z": Z, "share": share})
    fewest, tried = np.full(systems, np.inf), 0
    while tried < N and np.isinf(fewest).any():
        m = np.arange(tried + 1, min(2 * tried + 16, N) + 1)
        several = sharded_grant(grant, m.reshape(-1, *(1,) * len(systems)), N)
        enough = np.broadcast_to(solve(several, N, Z).share <= share, (len(m), *systems))
        newly = np.isinf(fewest) & enough.any(axis=0)
        fewest = np.where(newly, m[enough.argmax(axis=0)], fewest)
        tried = m[-1]
    return fewest if fewest.ndim else float(fewest)


def _convolved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of two series, as far as they go, along the first axis."""
    y = np.zeros(np.broadcast_shapes(a.shape, b.shape))
    for k in range(len(a)):
        y[k:] += a[k] * b[: len(b) - k]
    return y
