"""What a line of lock statistics says about a lock, and what a change of the lock would bring.

A tool such as lock_stat counts how often a lock was taken and how often it was found held, and adds
up waiting and holding times. The model behind the line is closed: n threads work for Z between two
uses of the lock and hold it for S. A use is contended if it finds the lock held by one of the other
n - 1 threads, or on its way to one of these. The line leaves open

- how many threads use the lock alike: from 2 to the number of processors, as n threads of which
  some use the lock seldom look like fewer;
- how their uses coincide. Z follows from the share of contended uses; where the elapsed time is
  known, it also follows from the utilisation, as if threads came independently at all times. Uses
  that come together are contended more often than that, and those of threads that avoid each other
  less often. After a change, either may hold;
- how much of a wait is a hand-over `h`, from a release to the next hold: from nothing to all but
  half a hold, which is the mean remainder of a constant hold time;
- whether waiting threads have slowed the holder. They can do so only while they wait: without them,
  all holds together would have taken at least hold - wait;
- whether few long holds make most contentions. Then all others may come to wait for one such hold,
  and fewer uses need not change that;
- chance: contentions are counted, so their number varies by its square root, or more.

`readings` has systems that agree with a line, `after` the ends of what a change may bring in them.
In simulations (`tests/models/test_contention.py`) of 2 to 12 threads whose think times are even,
uneven or come in bursts, with constant or exponential holds, the truth lies within the ends. It may
lie outside where holds are constant, threads are in step or come in bursts, and the elapsed time is
not known; and the wait may be longer where a twentieth of the holds is 19 times as long as others.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nummodel.arguments import feasible, station, within
from nummodel.models import locks

#: Numbers of threads that are tried, up to that of the processors; more differ little from 64.
THREADS = np.array([2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64])
#: Shares of the longest possible hand-over that are tried.
HAND_OVERS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
#: Most threads of `found_held`: some milliseconds of work.
MOST = 1000
#: Standard deviations of a count that count as chance.
CHANCE = 2.0
#: Shortest hold after a change, as a share of the hold before: 0 has no think time to compare with.
SHORTEST = 1e-9


class Line(NamedTuple):
    """What a tool counted of one lock. Times in seconds, `wait` and `hold` in total; `elapsed` and
    the number `c` of processors are None where they are not known.
    """

    acquisitions: float
    contentions: float
    wait: float
    hold: float
    elapsed: float | None = None
    c: float | None = None


class Readings(NamedTuple):
    """Systems that agree with a line, one in each place: threads, and Z and h in mean holds."""

    n: np.ndarray
    Z: np.ndarray
    h: np.ndarray


class After(NamedTuple):
    """The least and the most of: the share `p` of contended uses, their mean wait `W` [s], and the
    share of all waiting time that a change has `saved`.
    """

    p: tuple[float, float]
    W: tuple[float, float]
    saved: tuple[float, float]


@station
def found_held(n, S, Z, h=0.0, m=1):
    """Share of the uses that find the lock held or being handed over; n threads, `m` locks.

    Exact for exponential times and one lock. A hold takes S, and after a wait, the hand-over and
    the hold take S + h.

    >>> found_held(n=[1, 2, 3], S=1.0, Z=1.0)
    array([0. , 0.5, 0.8])
    >>> found_held(n=2, S=1.0, Z=1.0, h=[0.0, 1.0, 2.0])
    array([0.5       , 0.6       , 0.66666667])

    Each use goes to any of the m locks. For one of these, m Z + (m - 1) S pass between two uses:
    waits for the other locks are left out, so that a share below a half is up to 6 % too high, and
    a larger share up to 30 %.

    Where a share w of the uses is exclusive, and the others hold the lock together, a hold counts
    w (2 - w) times: the share of pairs of uses that exclude each other. By simulation, first come
    first served, this is right within 10 % up to a contention of 0.7, and beyond up to 20 % too
    low. Raises ValueError for more than `MOST` threads.
    """
    return _closed(n, S, m * Z + (m - 1) * S, h)[0]


@station
def contended_wait(n, S, Z):
    """Mean wait of the uses that find the lock held: total wait over contentions of lock_stat.

    Exact for exponential times and hand-overs that take no time; 0 for one thread, which never
    waits.

    >>> contended_wait(n=[1, 2, 64], S=1.0, Z=16.0).round(2)
    array([ 0.,  1., 47.])
    """
    p, _, wait = _closed(n, S, Z, 0.0)
    return np.where(n > 1, wait / np.where(p > 0, p, 1.0), 0.0)


@np.errstate(invalid="ignore")
def _closed(n, S, Z, h):
    """Of n threads at one lock: share of contended uses, share of the time in which the lock is
    held, and mean wait of all uses.

    A Markov chain with the number present, and a holder who has waited or not: `a` and `b` are the
    shares of both, among the states with the largest number so far. `last` is the probability of
    these states, if no more could be present, and the other sums are means, so that all of them
    stay finite, also for Z = 0.
    """
    feasible("n", np.max(n), MOST, "one step for each thread")
    n, S, Z, h = np.broadcast_arrays(n, S, Z, h)
    shape, order = n.shape, np.argsort(-n, axis=None)
    n, S, Z, S_h = (v.ravel()[order] for v in (n, S, Z, S + h))
    most = int(n.max(initial=0))
    systems = np.searchsorted(-n, -np.arange(most + 3), side="right")  # with j threads or more
    a, p, last = np.ones(n.shape), np.zeros(n.shape), np.ones(n.shape)
    # Of those asking, of those who find it held, of the time held, of those present, and X.
    means = np.zeros((5, n.size))
    means[0] = n
    new = np.ones(means.shape)
    for j in range(1, most + 1):
        k = systems[j]
        S_k, Z_k, S_h_k, last_k, means_k, new_k = (
            S[:k],
            Z[:k],
            S_h[:k],
            last[:k],
            means[:, :k],
            new[:, :k],
        )
        thinking = n[:k] - j
        left = a[:k] * (thinking + 1) * np.where(thinking > 0, Z_k / (thinking * S_k + Z_k), 1.0)
        first, waited = left * S_k, np.maximum(thinking + 1 - left, 0) * S_h_k
        both = first + waited
        more = last_k * both
        last_k[:] = more / (Z_k + more)
        a = first / both
        new_k[:2], new_k[3], new_k[4] = thinking, j, a / S_k + waited / both / S_h_k
        means_k += last_k * (new_k - means_k)
        ends = slice(systems[j + 2], systems[j + 1])  # who come next find all others present
        p[ends] = means[1, ends] / means[0, ends]
    results = np.empty((3, *n.shape))
    results[:, order] = p, S * means[4], means[3] / means[4] - S
    return results.reshape(3, *shape)


def readings(line: Line) -> Readings:
    """All systems that agree with a line, as far as the grids of threads and hand-overs go.

    Raises ValueError for figures that do not belong to one lock with one holder at a time.
    """
    return _readings(Line._make(v if v is None else float(v) for v in line))


@lru_cache(maxsize=64)  # since several changes are asked about the same line
def _readings(line: Line) -> Readings:
    from scipy.optimize.elementwise import find_root

    p, S, W = _means(line)
    n = THREADS[max(2, np.inf if line.c is None else line.c) >= THREADS]
    n, h = (v.ravel() for v in np.meshgrid(n, HAND_OVERS * max(0.0, W / S - 0.5)))
    measured = [p]
    if line.elapsed is not None:
        measured.append(line.hold / line.elapsed)
    found = []
    for place, value in enumerate(measured):

        def excess(use, n, h, place=place, value=value):  # `use` of the lock by one thread alone
            return _closed(n, 1.0, 1 / use - 1, h)[place] - value

        root = find_root(excess, (1e-12, 1.0), args=(n, h), tolerances={"xatol": 1e-14})
        found.append(np.array([n, 1 / root.x - 1, h])[:, root.success])
    n, Z, h = np.concatenate(found, axis=1)
    contended, _, wait = _closed(n, 1.0, Z, h)
    # The shortest waits are those for constant holds, of which half is over.
    possible = h + (wait / contended - h) / 2 <= W / S * (1 + CHANCE / line.contentions**0.5)
    if not possible.any():
        raise ValueError(
            "no system of threads that are alike agrees with the counters of this lock"
        )
    systems = np.array([n, Z, h])[:, possible]
    systems.flags.writeable = False
    return Readings(*systems)


def after(
    line: Line,
    uses: float = 1.0,
    hold: float = 1.0,
    m: int = 1,
    w: float = 1.0,
    S: float | None = None,
) -> After:
    """Contention after a change: `uses` times as many acquisitions in the same time, whose critical
    section takes `hold` times as long, at a lock that is split into `m`, and that a share `w` of
    the uses takes exclusively, while the others hold it together.

    With the mean hold time `S` that was measured after the change, what comes out is a conditional
    prediction. Without it, holds may be shorter than `hold` says, if waiting threads have slowed
    the holder. The wait of a contended use is at least half of a hold.

    >>> line = Line(acquisitions=10**10, contentions=10**8, wait=100.0, hold=10_000.0)
    >>> [round(end, 5) for end in after(line, uses=0.1).p]  # somewhat off a tenth of 0.01
    [0.00098, 0.00101]

    Raises ValueError for a change that makes the lock busier, and where `readings` does.
    """
    p, S_before, W = _means(line)
    slowed = line.wait / line.hold
    sizes = np.array([max(0.0, 1 - slowed) * hold, hold] if S is None else 2 * [S / S_before])
    exclusive = w * (2 - w)
    busier = uses * sizes[1] * exclusive / m
    if not 0 < busier <= 1 + 1e-9:
        raise ValueError(f"the lock would be {busier:.3g} times as busy, expected above 0, up to 1")
    n, Z, h = readings(line)
    # The time that is saved passes without a use, or not at all.
    work = np.array([Z / uses, (Z + 1) / uses - 1])
    holds = np.maximum(sizes, SHORTEST)[:, None, None] * exclusive
    shares = found_held(n, holds, work, h, m)
    # Of one long hold, the share min(slowed, 1) of the others comes to wait, and less than that of
    # them is saved.
    piled = 1 / (1 - min(slowed, 1.0) * (1 - busier))
    low, high = shares.min(), max(shares.max(), p * busier * piled)
    few, many = (_chance(line.contentions, uses * line.acquisitions * q) for q in (low, high))
    low, high = max(0.0, low * (1 - few)), min(1.0, high * (1 + many))
    shortest, longest = S_before * sizes[0] / 2 * max(0.0, 1 - few), W * max(1.0, sizes[1])
    waits = (uses * low * shortest, uses * high * longest)  # for each use there was before
    return After(
        (float(low), float(high)),
        (float(shortest), float(longest * piled * (1 + few))),
        (float(max(0.0, 1 - waits[1] / (p * W))), float(1 - waits[0] / (p * W))),
    )


def saturation(line: Line) -> tuple[float, float]:
    """How many times as many threads as now the lock can feed: the least and the most.

    With more of them some must wait, whatever the order, as a full lock goes from hand to hand.
    Below 1, there are too many already.
    """
    n, Z, h = readings(line)
    times = locks.lock_saturation(1 + h, Z) / n
    chance = _chance(line.contentions, line.contentions)
    return float(times.min() * max(0.0, 1 - chance)), float(times.max() * (1 + chance))


def _means(line: Line) -> tuple[float, float, float]:
    """Share of contended uses, mean hold, mean wait of a contended use. Raises ValueError."""
    for name in ("acquisitions", "contentions", "wait", "hold"):
        within(name, getattr(line, name), SHORTEST)
    p, S = line.contentions / line.acquisitions, line.hold / line.acquisitions
    W = line.wait / line.contentions
    if p > 1:
        raise ValueError(f"contentions are {p:.3g} times the acquisitions, expected at most 1")
    if line.elapsed is not None and line.hold > line.elapsed:
        raise ValueError(
            f"holds take {line.hold:.4g} s in {line.elapsed:.4g} s, expected no more: these are "
            "several locks, or several holders at a time"
        )
    if W * (1 + CHANCE / line.contentions**0.5) < S / 2:
        raise ValueError(
            f"a contended use waits {W:.3g} s, expected at least half a mean hold, {S / 2:.3g} s: "
            "several may hold the lock together, or holds that are waited for are short ones"
        )
    return p, S, W


def _chance(before: float, then: float) -> float:
    """By which share the ratio of two counts varies."""
    return CHANCE * (1 / before + 1 / max(then, 1.0)) ** 0.5
