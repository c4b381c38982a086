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
lie outside where constant holds follow constant think times and the elapsed time is not known, and
the wait may be longer where a twentieth of the holds is 19 times as long as the others.
"""

from typing import NamedTuple

import numpy as np

from nummodel.arguments import feasible, station, within
from nummodel.models import locks

#: Numbers of threads that are tried, up to that of the processors; more differ little from 64.
THREADS = np.array([2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64])
#: Shares of the longest possible hand-over that are tried.
HAND_OVERS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
#: Most threads of `found_held`, and most locks: some milliseconds of work.
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

    Exact for exponential times: by the arrival theorem a thread finds what n - 1 others leave, of
    which each uses any of the m locks alike. A hold takes S, and `h` more if a thread waits.

    >>> found_held(n=[1, 2, 3], S=1.0, Z=1.0)
    array([0. , 0.5, 0.8])
    >>> found_held(n=2, S=1.0, Z=0.0, m=[1, 4])
    array([1.  , 0.25])

    Where a share w of the uses is exclusive, and the others hold the lock together, a hold counts
    w (2 - w) times: the share of pairs of uses that exclude each other. By simulation, first come
    first served, this is right within 10 % up to a contention of 0.7, and beyond up to 20 % too
    low.

    Sevcik and Mitrani (1981), The distribution of queuing network states at input and output
    instants, J. ACM 28. Raises ValueError for more than `MOST` threads or locks.
    """
    feasible("n", np.max(n), MOST, "n x n products")
    feasible("m", np.max(m), MOST, "a product for each lock")
    n, S, Z, h, m = np.broadcast_arrays(n, S, Z, h, m)
    unit = Z + S + h
    others = np.arange(1.0, n.max()).reshape(-1, *(1,) * n.ndim)
    at_lock = np.cumprod((S + h * (others > 1)) / (unit * m), axis=0)
    thinking = np.cumprod(Z / (unit * others), axis=0)
    one = np.ones((1, *n.shape))
    elsewhere, here = np.concatenate([one, thinking]), np.concatenate([one, at_lock])
    for lock in range(1, int(m.max(initial=1))):
        elsewhere = np.where(lock < m, locks.convolved(elsewhere, here), elsewhere)
    held = locks.convolved(elsewhere, np.concatenate([0 * one, at_lock]))
    found = [
        np.take_along_axis(part, (n - 1).astype(int)[None], 0)[0] for part in (held, elsewhere)
    ]
    return found[0] / sum(found)


def readings(line: Line) -> Readings:
    """All systems that agree with a line, as far as the grids of threads and hand-overs go.

    Raises ValueError for figures that do not belong to one lock with one holder at a time.
    """
    from scipy.optimize.elementwise import find_root

    p, S, W = _means(line)
    n = THREADS[max(2, np.inf if line.c is None else line.c) >= THREADS]
    n, h = (v.ravel() for v in np.meshgrid(n, HAND_OVERS * max(0.0, W / S - 0.5)))
    measured = [(found_held, p)]
    if line.elapsed is not None:
        measured.append((_in_use, line.hold / line.elapsed))
    found = []
    for model, value in measured:

        def excess(use, n, h, model=model, value=value):  # `use` of the lock by one thread alone
            return model(n, 1.0, 1 / use - 1, h) - value

        root = find_root(excess, (1e-12, 1.0), args=(n, h), tolerances={"xatol": 1e-14})
        found.append(np.array([n, 1 / root.x - 1, h])[:, root.success])
    n, Z, h = np.concatenate(found, axis=1)
    wait = _wait(n, Z, h)
    # The shortest waits are those for constant holds, of which half is over.
    possible = h + (wait - h) / 2 <= W / S * (1 + CHANCE / line.contentions**0.5)
    return Readings(n[possible], Z[possible], h[possible])


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
    [0.00099, 0.00101]

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
    return float(times.min()), float(times.max())


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
            "several locks, or several hold one at a time"
        )
    if W * (1 + CHANCE / line.contentions**0.5) < S / 2:
        raise ValueError(
            f"a contended use waits {W:.3g} s, expected at least half a mean hold, {S / 2:.3g} s: "
            "several may hold the lock together, or holds that are waited for are short ones"
        )
    return p, S, W


def _in_use(n, S, Z, h):
    """Share of the time in which the lock is held, hand-overs not included."""
    return S * locks.solve(lambda k: S + h * (k > 1), n, Z).X


def _wait(n, Z, h):
    """Mean wait of a contended use, in mean holds."""
    system = locks.solve(lambda k: 1.0 + h * (k > 1), n, Z)
    return (system.Q / system.X - 1) / found_held(n, 1.0, Z, h)


def _chance(before: float, then: float) -> float:
    """By which share the ratio of two counts varies."""
    return CHANCE * (1 / before + 1 / max(then, 1.0)) ** 0.5
