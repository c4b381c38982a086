"""What a line of lock statistics says about a lock, and what a change of the lock would bring.

A tool such as lock_stat counts how often a lock was taken and how often it was found held, and adds
up waiting and holding times. The model behind the line is closed: n threads work for Z between two
uses of the lock and hold it for S. A use is contended if it finds the lock held by one of the other
n - 1 threads, or on its way to one of these. The line leaves open

- how many threads use the lock alike: from 2 to the number of processors, as n threads of which
  some use the lock seldom look like fewer;
- how their uses coincide. Z follows from the share of contended uses; where the elapsed time is
  known, it also follows from the utilisation, as if threads came independently at all times. Uses
  that come together are contended more often than that, and threads that avoid each other less
  often. After a change, either may hold;
- how much of a wait is a hand-over `h`, from release to the next hold, in which nobody has the lock:
  from nothing to all but half a hold, the mean remainder of a constant hold time;
- whether waiting threads have slowed the holder, which they can do only while they wait: without
  them, all holds together would have taken between hold - wait and hold;
- chance: contentions are counted, so their number varies by its square root, or more.

`readings` has all combinations, `after` the smallest and the largest result of a change. Each use
is as likely to be contended as any other; if few uses have all contentions, as at a lock that is
full for moments and unused otherwise, a change may bring less than `after` says.
"""

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
    """Systems that agree with a line, one in each place: threads, Z and h in holds."""

    n: np.ndarray
    Z: np.ndarray
    h: np.ndarray


class After(NamedTuple):
    """The lowest and the highest share `p` of contended uses, and mean wait `W` of these [s]."""

    p: tuple[float, float]
    W: tuple[float, float]


@station
def found_held(n, S, Z, h=0.0, m=1):
    """Share of the uses that find the lock held or being handed over; n threads, `m` locks.

    Exact for exponential times: by the arrival theorem a thread finds what n - 1 others leave, of
    which each uses any of the m locks alike. A hold takes S, and `h` more if a thread waits.

    >>> found_held(n=[1, 2, 3], S=1.0, Z=1.0)
    array([0. , 0.5, 0.8])
    >>> found_held(n=2, S=1.0, Z=0.0, m=[1, 4])
    array([1.  , 0.25])

    Many threads that seldom come make a Poisson stream, which finds the lock held for a share of
    its utilisation: Sevcik and Mitrani (1981), The distribution of queuing network states at input
    and output instants, J. ACM 28.
    """
    feasible("n", n.max(), MOST, "n x n products")
    n, S, Z, h, m = np.broadcast_arrays(n, S, Z, h, m)
    others = int(n.max()) - 1
    unit = Z + S + h
    j = np.arange(1.0, others + 1).reshape(-1, *(1,) * n.ndim)
    at_lock = np.cumprod((S + h * (j > 1)) / (unit * m) + 0 * j, axis=0)
    thinking = np.cumprod(Z / (unit * j), axis=0)
    one, none = np.ones((1, *n.shape)), np.zeros((1, *n.shape))
    elsewhere = np.concatenate([one, thinking])
    for lock in range(1, int(m.max(initial=1))):
        more = locks.convolved(elsewhere, np.concatenate([one, at_lock]))
        elsewhere = np.where(lock < m, more, elsewhere)
    here = locks.convolved(elsewhere, np.concatenate([none, at_lock]))
    at = (n - 1).astype(int)[None]
    held, free = (np.take_along_axis(part, at, 0)[0] for part in (here, elsewhere))
    return held / (held + free)


def readings(line: Line) -> Readings:
    """All systems that agree with a line, as far as the grids of threads and hand-overs go.

    Raises ValueError for figures that do not belong to one lock with one holder at a time.
    """
    from scipy.optimize.elementwise import find_root

    p, S, W = _means(line)
    most = max(2, np.inf if line.c is None else line.c)
    n, h = (v.ravel() for v in np.meshgrid(THREADS[most >= THREADS], HAND_OVERS * (W / S - 0.5)))
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
    possible = h + (wait - h) / 2 <= W / S * (1 + 1e-9)  # constant holds, one of them half over
    return Readings(n[possible], Z[possible], h[possible])


def after(
    line: Line, uses: float = 1.0, hold: float = 1.0, m: int = 1, S: float | None = None
) -> After:
    """Contention after a change: `uses` times as many acquisitions in the same time, whose critical
    section takes `hold` times as long, of a lock that is split into `m`.

    With the mean hold time `S` as it was measured after the change, what comes out is a conditional
    prediction. Without it, holds may be shorter than `hold` says, if waiting threads had slowed the
    holder. The wait of a contended use is at least half of a hold, and at most as long as before.

    Raises ValueError for a change that makes the lock busier, and where `readings` does.
    """
    p, before, wait = _means(line)
    shortest = max(0.0, 1 - line.wait / line.hold)
    factors = np.array([shortest * hold, hold] if S is None else [S / before])
    uses, m = float(within("uses", uses, 1e-9, 1e9)), int(within("m", m, 1, MOST, whole=True))
    if (uses * factors / m > 1 + 1e-9).any():
        raise ValueError(f"the lock would be {uses * factors.max() / m:.3g} times as busy, expected no busier")
    n, Z, h = readings(line)
    shares = found_held(n, np.maximum(factors, 1e-9)[:, None], Z / uses, h, m)
    low, high = shares.min(), min(shares.max(), 1.0)
    by_chance = [CHANCE * (1 / line.contentions + 1 / (q * uses * line.acquisitions)) ** 0.5 for q in (low, high)]
    ends = max(0.0, low * (1 - by_chance[0])), min(1.0, high * (1 + by_chance[1]))
    return After(ends, (before * factors[0] / 2, wait * max(1.0, factors[-1])))


def saturation(line: Line) -> tuple[float, float]:
    """How many times as many threads as now the lock can feed: the least and the most.

    With more of them some must wait, whatever the order. Below 1, there are too many already.
    """
    n, Z, _ = readings(line)
    times = locks.lock_saturation(1.0, Z) / n
    return float(times.min()), float(times.max())


def _means(line: Line) -> tuple[float, float, float]:
    """Share of contended uses, mean hold, mean wait of a contended use."""
    for name in ("acquisitions", "contentions", "wait", "hold"):
        within(name, getattr(line, name), 1e-12)
    p, S = line.contentions / line.acquisitions, line.hold / line.acquisitions
    W = line.wait / line.contentions
    if p > 1:
        raise ValueError(f"contentions are {p:.3g} times the acquisitions, expected at most 1")
    if line.elapsed is not None and line.hold > line.elapsed:
        raise ValueError(f"holds take {line.hold:g} s in {line.elapsed:g} s: several locks, or several holders at a time")
    if W < S / 2:
        raise ValueError(
            f"a contended use waits {W:.3g} s, less than half a mean hold, {S / 2:.3g} s: several "
            "may hold the lock together, or uses that are waited for are shorter than others"
        )
    return p, S, W


def _in_use(n, S, Z, h):
    """Share of the time in which the lock is held, hand-overs not included."""
    return S * locks.solve(lambda k: S + h * (k > 1), n, Z).X


def _wait(n, Z, h):
    """Mean wait of a contended use, in holds."""
    system = locks.solve(lambda k: 1.0 + h * (k > 1), n, Z)
    return (system.Q / system.X - 1) / found_held(n, 1.0, Z, h)
