"""Locks: when one collapses, what splitting it brings, who pays when its holder is taken away.

A lock is a station that serves one at a time. N threads think for Z between two uses and hold it
for S; what differs among locks is the *grant*: the seconds from one acquisition to the next with n
threads at the lock, one of them the holder. `<lock>_grant(n, ...)` gives it, and `solve` puts it
into a closed system. Every argument may be an array, and `solve` takes a whole grid at once:

>>> import numpy as np
>>> system = solve(lambda n: ticket_grant(n, S=1.0, h_waiter=[[0.0], [0.1]]), N=[1, 10, 80], Z=9.0)
>>> system.X.round(3)
array([[0.1  , 0.832, 1.   ],
       [0.1  , 0.701, 0.114]])

Assumptions throughout: think and hold times are exponential (with constant ones a lock that is
neither idle nor full does better), every use is alike, and a hand-over delays nobody but those who
wait for it. Times in seconds.

Held against simulations of the protocols (`tests/protocol.py`, half-widths about 1 %), X is off by

| lock | error of X | where |
|---|---|---|
| queue | -1 % to +1 % | a hand-over takes a constant time |
| shards, readers and writers who do not think | exact, to the half-width | |
| ticket | -5 % to 0 | worst near N_sat: here who comes during a hold prolongs it |
| test-and-set | -1 % to +5 % | worst near N_sat; to +10 % where nodes are answered in turn |
| cohort | -1 % to +2 % | eight nodes |
| readers and writers who think | -1 % to +6 % | |
| sleeping, who is woken takes a processor | -3 % to +3 % | exact without a switch |
| sleeping, who is woken waits for one | -3 % to +16 % | worst with more threads than processors |
"""

from collections.abc import Callable, Iterator
from itertools import islice
from math import isqrt, prod
from typing import Any, NamedTuple

import numpy as np

from nummodel.arguments import (
    aligned,
    count,
    feasible,
    numbers,
    positive,
    station,
    valid,
)
from nummodel.formula import formula
from nummodel.models.queueing import while_stable

#: Seconds per completion with n present, an array of any shape; n is a whole number.
Grant = Callable[[int], Any]

#: Seconds of a grant, at least; reciprocals stay far from what floats do not hold.
SHORTEST = 1e-150
#: Threads of which one system is solved, one step for each; figures computed for a grid of systems,
#: and products for the shards of a grid. Each takes a second or two.
THREADS, FIGURES, PRODUCTS = 20_000, 10**8, 10**9


class Contended(NamedTuple):
    """`X` uses per second, `Q` threads at the lock on average (holder included), `share` = Q/N."""

    X: Any
    Q: Any
    share: Any


def solve(grant: Grant, N, Z, c=None) -> Contended:
    """N threads that think for Z and then use what takes `grant(n)` with n present.

    Exact for exponential times, where grant(n) depends on n only: the birth and death process of
    the machine repairman (see `queueing`). One thread never waits; many find 1/grant(N).

    >>> solve(lambda n: 1.0, N=[1, 16, 10**3], Z=15.0).X.round(4)
    array([0.0625, 0.8554, 1.    ])

    With `c` processors, threads that wait give theirs away (a lock that blocks): no more than c
    think or hold at a time. Threads that spin keep theirs: min(N, c) is then their N.

    >>> solve(lambda n: 1.0, N=16, Z=15.0, c=16).X == solve(lambda n: 1.0, N=16, Z=15.0).X
    True
    """
    given = valid({"N": N, "Z": Z} | ({} if c is None else {"c": c}))
    N, Z, c = np.broadcast_arrays(given["N"], given["Z"], given.get("c", np.inf))
    most = int(N.max(initial=0))
    systems = prod(aligned({"grant": _seconds(grant, 1), "N": N})) if most else 1
    feasible("N", most, min(THREADS, FIGURES // max(systems, 1)), "one step for each thread")
    # With no more than n present: the probability `last` of n, the rate of grants, the number.
    last: Any = 1.0
    X: Any = 0.0
    Q: Any = 0.0
    with np.errstate(all="ignore"):
        for n in range(1, most + 1):
            t = _seconds(grant, n)
            entering = last * np.maximum(np.minimum(N - n + 1, c - (n > 1)), 0)
            left = np.where(entering > 0, Z / (entering * t + Z), 1.0)  # no more than n - 1
            rate = np.where(entering > 0, entering / (entering * t + Z), 0.0)
            last = rate * t
            X = X * left + rate
            Q = Q * left + last * n
        X, Q, N = np.broadcast_arrays(X, Q, N)
        share = np.where(N > 0, Q / N, 0.0)
    return Contended(*(v.copy() if v.ndim else float(v) for v in (X, Q, share)))


@formula("N_sat", valid)
def lock_saturation(S, Z):
    """Threads that one lock can feed: beyond them someone must wait, whatever the order.

    >>> lock_saturation(S=1.0, Z=15.0)
    16.0
    """
    return (Z + S) / S


# --- hand-over by algorithm -------------------------------------------------------------------


@station
def queue_grant(n, S, h=0.0, h_remote=0.0, nodes=1):
    """MCS and CLH: each waiter spins on a line of its own, and one line goes to the next in order.

    `h` is the hand-over inside a node, `h_remote` that across (the lock's line and whatever data
    follow it). Threads are spread evenly over `nodes`, and the order does not care: a share
    1 - 1/nodes of the hand-overs crosses. The grant does not grow with n: a plateau.

    >>> queue_grant(n=[1, 100], S=1.0, h=0.1, h_remote=0.4, nodes=4)
    array([1.325, 1.325])

    Mellor-Crummey and Scott (1991), Algorithms for scalable synchronization on shared-memory
    multiprocessors.

    Raises ValueError, as all of these grants do, where nodes are more than one and a hand-over
    across them, `h_remote`, takes less than one inside: where it was not given.
    """
    return S + h + _further(h, h_remote, nodes) * (1 - 1 / nodes) + 0 * n


@station
def ticket_grant(n, S, h=0.0, h_remote=0.0, nodes=1, h_waiter=0.0):
    """Ticket lock: all waiters spin on one line, and every release makes all of them read it again.

    In order as the queue lock, but each of the n - 1 waiters adds `h_waiter`: of the reads that
    follow a release, one after another, half precede that of the next owner. It falls as 1/n.

    >>> ticket_grant(n=[1, 11], S=1.0, h_waiter=0.1)
    array([1., 2.])
    """
    return queue_grant(n, S, h, h_remote, nodes) + h_waiter * (n - 1)


@station
def tas_grant(n, S, h=0.0, h_remote=0.0, nodes=1, h_waiter=0.0):
    """Test-and-set: every waiter keeps asking for the line to write, and the release must ask, too.

    The release comes after the requests of the n - 1 waiters, `h_waiter` each. They are answered
    node by node, so that the line crosses once for every node where there is one of the n:
    nodes (1 - (1 - 1/nodes)^n) on average, and not at all if all are where it is. The releasing
    node comes last: if nodes are answered in turn, the line comes back to it more often.

    >>> tas_grant(n=[1, 2, 100], S=1.0, h_remote=0.4, nodes=2)
    array([1.2, 1.5, 1.8])
    >>> tas_grant(n=11, S=1.0, h_waiter=0.1) == ticket_grant(n=11, S=1.0, h_waiter=0.1)
    True
    """
    crossings = -nodes * np.expm1(n * np.log1p(-1 / nodes)) - nodes**-n
    return S + h + _further(h, h_remote, nodes) * crossings + h_waiter * (n - 1)


@station
def cohort_grant(n, S, h=0.0, h_remote=0.0, nodes=1, batch=100):
    """Cohort lock: to a waiter of the same node if there is one, at most `batch` times in a row.

    It crosses if all waiters are elsewhere, and once per batch if some are. With `batch=1` it
    crosses whenever it can; with one node it is a queue lock. The more wait, the fewer cross:
    throughput grows with contention.

    >>> cohort_grant(n=[2, 5, 50], S=1.0, h_remote=0.4, nodes=2, batch=100).round(4)
    array([1.2   , 1.0285, 1.004 ])

    Dice, Marathe and Shavit (2012), Lock Cohorting, PPoPP. 100 in a row is what LiTL's C-BO-MCS
    does, whose `include/cbomcs.h` calls it the paper's default.
    """
    waiters = np.maximum(n - 1, 1)  # with nobody waiting, whoever comes next may be anywhere
    elsewhere, here = (1 - 1 / nodes) ** waiters, nodes**-waiters
    return S + h + _further(h, h_remote, nodes) * (elsewhere + (1 - elsewhere - here) / batch)


def _further(h, h_remote, nodes):
    """What a hand-over takes longer across nodes than inside; of no matter with one node."""
    less = (nodes > 1) & (h_remote < h)
    if np.any(less):
        at = np.argmax(less)
        found, inside = (np.broadcast_to(v, np.shape(less)).flat[at] for v in (h_remote, h))
        raise ValueError(
            f"h_remote is {found:g}, expected at least h, {inside:g}: with several nodes a "
            "hand-over across them has to be given"
        )
    return np.where(nodes > 1, h_remote - h, 0.0)


# --- other ways out ---------------------------------------------------------------------------


@np.errstate(all="ignore")
def sharded_grant(grant: Grant, m, N: int) -> Grant:
    """One lock split into `m`, each use going to any of them alike: the grant of all together.

    Exact for up to N threads: m stations in product form with n threads among them. `m` may be an
    array beside the arrays of `grant`.

    >>> shards = sharded_grant(lambda n: 1.0, m=[1, 2, 1000], N=80)
    >>> solve(shards, N=80, Z=9.0).share.round(2)
    array([0.89, 0.78, 0.1 ])

    With one present there is no one to meet: shards(1) is grant(1), whatever m.
    """
    N, m = count("N", N, most=THREADS), valid({"m": m})["m"].astype(int)
    bits = int(m.max(initial=1)).bit_length()
    work = bits * max(prod(aligned({"grant": _seconds(grant, 1), "m": m})), 1)
    feasible("N", N, isqrt(PRODUCTS // work), f"N x N products, {work:,} times")
    t = np.stack(np.broadcast_arrays(m, *(_seconds(grant, n) for n in range(1, N + 1)))[1:])
    x, power = _scaled(t, m)
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
    return lambda n: times[count("n", n, most=N) - 1]


@np.errstate(all="ignore")
def fewest_shards(grant: Grant, N: int, Z, share):
    """Smallest number of shards, up to N, with no more than `share` of the threads at the locks.

    >>> fewest_shards(lambda n: 1.0, N=80, Z=9.0, share=[0.5, 0.2, 0.1])
    array([ 5., 13., inf])
    """
    N, given = count("N", N, most=THREADS), valid({"Z": Z, "share": share})
    systems = aligned({"grant": _seconds(grant, 1)} | given)
    most = round((6 * PRODUCTS / max(prod(systems), 1)) ** (1 / 3))
    feasible("N", N, most, "N x N products for each of N shards")
    t = np.stack(np.broadcast_arrays(*(_seconds(grant, n) for n in range(1, N + 1))))
    fewest, tried, sharded = np.full(systems, np.inf), 0, _one_by_one(t)
    while tried < N and np.isinf(fewest).any():
        some = list(islice(sharded, 16 + tried))
        if not some:
            raise ArithmeticError(f"N is {N}, and for {tried} shards that is more than floats hold")
        times = np.stack(some, axis=1)
        times = times.reshape(N, len(some), *(1,) * (len(systems) - t[0].ndim), *t.shape[1:])
        share = solve(lambda n: times[n - 1], N, given["Z"]).share  # noqa: B023 (called here)
        enough = np.broadcast_to(share <= given["share"], (len(some), *systems))
        found = np.isinf(fewest) & enough.any(axis=0)
        fewest = np.where(found, 1.0 + tried + enough.argmax(axis=0), fewest)
        tried += len(some)
    return fewest if fewest.ndim else float(fewest)


def _scaled(t: np.ndarray, m) -> tuple[Any, np.ndarray]:
    """x, and the terms of one of m locks times x^n, n = 0 .. N: the last two of all m are alike."""
    x = 1 / (t.max(axis=0) * (1 + (m - 1) / len(t)))
    return x, np.concatenate([np.ones((1, *t.shape[1:])), np.cumprod(t * x, axis=0)])


def _one_by_one(t: np.ndarray) -> Iterator[np.ndarray]:
    """The grants of 1, 2, .. N locks together, as far as floats hold them; those of one are `t`."""
    place = np.arange(len(t) + 1.0).reshape(-1, *(1,) * (t.ndim - 1))
    G, before = np.where(place == 0, np.ones(t.shape[1:]), 0.0), 1 / t.max(axis=0)
    for m in range(1, len(t) + 1):
        x, power = _scaled(t, m)
        G, before = G * (x / before) ** place, x
        rows = zip(G.reshape(len(G), -1).T, power.reshape(len(G), -1).T, strict=True)
        G = np.transpose([np.convolve(*row)[: len(G)] for row in rows]).reshape(G.shape)
        if not (np.isfinite(G) & (G > 0)).all():
            return
        yield G[1:] / G[:-1] / x / m
        G = G / np.sqrt(G.min(axis=0)) / np.sqrt(G.max(axis=0))  # amid what floats hold


@station
def shared_grant(n, S, w):
    """Reader-writer lock, first come first served, with a share `w` of exclusive use.

    Readers that follow each other hold it together; a writer waits for them, and all wait for it.
    Per completion w (1 + sum of q^j/j, j < n) + q^n/n holds, q = 1 - w: exact for n threads that
    come back at once; with thinking X comes out up to 6 % too high.

    >>> shared_grant(n=10, S=1.0, w=[1.0, 0.1, 0.0]).round(4)
    array([1.    , 0.3433, 0.1   ])

    Full, it passes 1/(w (1 + log 1/w)) uses per S: with 1 % writers not 100 but 18.

    >>> round(1 / shared_grant(n=10_000, S=1.0, w=0.01), 2)
    17.84
    """
    from scipy.special import exp1

    q, few = 1 - w, np.arange(1, 64)
    series = ((few < n[..., None]) * q[..., None] ** few / few).sum(-1)
    fall = -np.log1p(-w)

    def from_on(n):
        """Sum of q^j/j from j = n on, by Euler and Maclaurin to 14 digits."""
        last, a = q**n / n, fall + 1 / n
        third = fall * (fall * (fall + 3 / n) + 6 / n**2) + 6 / n**3
        return exp1(fall * n) + last / 2 + last * a / 12 - last * third / 720

    series = series + np.where((n > 64) & (w > 0) & (w < 1), from_on(64.0) - from_on(n), 0.0)
    return S * (w * (1 + series) + q**n / n)


def delegated(N, Z, S, h) -> Contended:
    """One processor does nothing but serve the other N - 1, which spin until they are answered.

    The shared data never leave its cache, so it needs S and one transfer `h` for each request; the
    answer takes another, which delays only the one who asked. One processor alone serves nobody.

    >>> delegated(N=[1, 2, 100], Z=1.0, S=0.4, h=0.1).X.round(4)
    array([0.   , 0.625, 2.   ])
    """
    given = valid({"N": N, "Z": Z, "S": S, "h": h})
    N, Z, S, h = (given[name] for name in "NZSh")
    positive("S + h", S + h)
    return solve(lambda n: S + h, np.maximum(N - 1, 0), Z + h)


@formula("W", valid)
def preempted_waiting(lamda, S, cv2, on, away, cv2_v):
    """Mean wait for a lock whose holder may lose its processor: after `on` of holding, on average.

    It is `away` for a while each time, and nobody else can go on. M/G/1 with breakdowns: the wait
    grows as the square of the time away, long before the lock looks busy.

    >>> preempted_waiting(lamda=0.1, S=1.0, cv2=1, on=100.0, away=[0.0, 100.0], cv2_v=1).round(3)
    array([ 0.111, 13.   ])

    With processors overcommitted by a factor 1 + x, as in a capped or shared partition, away is
    x on, and those who wait may be away as well: see `partition` for what that changes.
    Avi-Itzhak and Naor (1963), Some queuing problems with the service station subject to breakdown,
    model B.
    """
    mean = S * (1 + away / on)
    square = S**2 * (1 + cv2) * (1 + away / on) ** 2 + S / on * away**2 * (1 + cv2_v)
    return while_stable(lamda * mean, lamda * square / (2 * (1 - lamda * mean)))


@station
def blocking_grant(n, S, switch):
    """Waiters sleep: each grant to one of them waits for a context `switch`.

    Who is woken takes a processor at once. Where it waits for one until a thread blocks, nobody
    uses the lock meanwhile: `solve` is then up to 16 % too high.

    >>> blocking_grant(n=[1, 2, 9], S=1.0, switch=0.5)
    array([1. , 1.5, 1.5])
    """
    return S + switch * (n > 1)


def switch_break_even(N, c, Z, S):
    """Context-switch time below which N threads on c processors do better to sleep than to spin.

    Sleepers leave their processor to another thread; spinners keep it, so that only c threads ever
    run. With a processor for each there is nothing to gain.

    >>> switch_break_even(N=[8, 16, 64], c=8, Z=10.0, S=1.0).round(3)
    array([0.   , 0.408, 0.509])
    """
    from scipy.optimize.elementwise import find_root

    given = valid({"N": N, "c": c, "Z": Z, "S": S})
    feasible("N", given["N"].max(initial=0), THREADS / 20, "a system of N is solved many times")
    for name in "NS":
        positive(name, given[name])
    N, c, Z, S = np.broadcast_arrays(*(given[name] for name in "NcZS"))
    spinning = solve(lambda n: S, np.minimum(N, c), Z).X

    def gain(switch, N, c, Z, S, spinning):  # the switch is in units of a spinners' cycle
        return solve(lambda n: S + switch / spinning * (n > 1), N, Z, c).X / spinning - 1

    with np.errstate(all="ignore"):
        unit = find_root(gain, (0.0, 1.0), args=(N, c, Z, S, spinning), tolerances={"xatol": 1e-15})
        return np.where(unit.success, unit.x / spinning, 0.0)[()]


def _seconds(grant: Grant, n: int) -> np.ndarray:
    """The grant with n present, checked."""
    if not callable(grant):
        raise ValueError(f"grant is {grant!r}, expected a function of the number present")
    t = numbers("grant", grant(n))
    if not ((t >= SHORTEST) & (t <= 1 / SHORTEST)).all():
        raise ValueError(
            f"grant is {t} with {n} present, expected positive seconds, {SHORTEST} or more"
        )
    return t


def _convolved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of two series, as far as they go, along the first axis."""
    y = np.zeros(np.broadcast_shapes(a.shape, b.shape))
    for k in range(len(a)):
        y[k:] += a[k] * b[: len(b) - k]
    return y
