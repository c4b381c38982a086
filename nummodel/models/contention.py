"""What a line of lock statistics says about a lock, and what a change of the lock would bring.

A tool such as lock_stat counts how often a lock was taken and how often it was found held, and adds
up waiting and holding times. The model behind the line is closed: n threads work for Z between two
uses of the lock and hold it for S. A use is contended if it finds the lock held by one of the other
n - 1 threads, or on its way to one of these.

The line says the share p of contended uses, the mean hold S and the mean wait W of a contended use.
With the elapsed time, it says the utilisation (hold over elapsed) and how many threads hold the
lock or wait for it on average: there are at least so many. All hand-overs fit into the time in
which nobody holds the lock. If M is the longest hold, the mean square of hold times is at most S M,
and no kind of long holds has a mean above M. The line leaves open

- how many threads use the lock alike: from 2 to the number of processors, as n threads of which
  some use the lock seldom look like fewer;
- how much of a wait is a hand-over `h`, from a release to the next hold: from nothing to all but
  half a hold, which is the mean remainder of a constant hold time;
- how the hold times vary. A share g of the time of all holds may be in long holds of L mean holds,
  as when a holder loses its processor. The others then come to wait for one such hold, and fewer
  uses or more locks need not change that;
- whether waiting threads have slowed the holder. They can do so only while they wait: at most, a
  holder stood still in the share of the held time in which somebody waited;
- chance: contentions are counted, so their number varies by its square root, or more.

`after` has the ends of what a change may bring in systems that agree with a line.
Z follows from p, and once more from the utilisation, where that is known; what the system then says
of p, the utilisation and W has to be within 25 % of the line. As uses of threads that come in
bursts, or avoid each other, may agree less, the best systems count in any case. In simulations
(`tests/models/test_contention.py`) of 2 to 12 threads whose think times are even, uneven or come in
bursts, with constant, exponential or a few long holds, the truth lies within the ends, or 25 %
beyond. It may lie outside where holds are constant and threads are in step or come in bursts.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nummodel.arguments import count, within
from nummodel.models import locks

#: Numbers of threads that are tried, up to that of the processors; more differ little from 64.
THREADS = np.array([2, 3, 4, 6, 8, 12, 16, 32, 64])
#: Shares of the longest possible hand-over that are tried.
HAND_OVERS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
#: Long holds that are tried: their means in waits, and which share of the time of holds is theirs.
LONG = np.array([0.5, 1.0, 2.0, 8.0, 100.0])
SHARES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
#: By which factor a system may differ from a line, and by how much more than the best does.
AGREES, WORSE = 1.25, 1.5
#: Standard deviations of a count that count as chance.
CHANCE = 2.0
#: Shortest hold after a change, as a share of the hold before: 0 has no think time to compare with.
SHORTEST = 1e-9


class Line(NamedTuple):
    """What a tool counted of one lock. Times in seconds, `wait` and `hold` in total; `elapsed`, the
    number `c` of processors, and the longest hold are None where they are not known.
    """

    acquisitions: float
    contentions: float
    wait: float
    hold: float
    elapsed: float | None = None
    c: float | None = None
    longest: float | None = None


class After(NamedTuple):
    """The least and the most of: the share `p` of contended uses, their mean wait `W` [s], and the
    share of all waiting time that a change has `saved`.
    """

    p: tuple[float, float]
    W: tuple[float, float]
    saved: tuple[float, float]


@np.errstate(invalid="ignore", divide="ignore")
def _closed(n, S, Z, h, L=1.0, g=0.0):
    """Of n threads at one lock: share of contended uses, share of the time in which the lock is
    held, mean wait of all uses, and share of the held time in which somebody waits.

    Exact for exponential times: after a wait, the hand-over and the hold take S + h. A share g of
    all hold time is in holds whose mean is L S. A Markov chain with the number present and four
    kinds of holder: short or long, who has waited or not. `kinds` are their shares among the states
    with the largest number so far, `last` is the probability of these states, if no more could be
    present, and the other sums are means, so that all of them stay finite, also for Z = 0.
    """
    n, S, Z, h, L, g = np.broadcast_arrays(n, S, Z, h, L, g)
    q = g / L
    times = np.stack([S * (1 - g) / (1 - q), S * L])
    D, chosen, none = np.concatenate([times, times + h]), np.stack([1 - q, q]), 0 * times
    kinds, after_wait = np.concatenate([chosen, none]), np.concatenate([none, chosen])
    p, last = np.zeros(n.shape), np.ones(n.shape)
    means = np.array([n, 0 * n, 0 * n, 0 * n, 0 * n, 0 * n])  # asking, ... in vain, present, X
    for j in range(1, int(n.max()) + 1):
        thinking, one_more = np.maximum(n - j, 0), j <= n
        rest = np.where(thinking > 0, D / (Z + thinking * D), D)
        gone = np.where(thinking > 0, (after_wait / (Z + thinking * D)).sum(0), 1.0)
        per = (thinking + 1) * (kinds * rest).sum(0) / gone  # Z times the step from j - 1 to j
        share = np.where(thinking > 0, Z, 1.0)
        fresh = rest * ((thinking + 1) * kinds * share / per + thinking * after_wait)
        kinds = np.where(one_more, fresh, kinds)
        last = np.where(one_more, last * per / (Z + last * per), last)
        new = np.array(np.broadcast_arrays(thinking, thinking, j, (kinds / D).sum(0), 1, j > 1))
        means = np.where(one_more, means + last * (new - means), means)
        p = np.where(thinking > 0, means[1] / np.where(thinking > 0, means[0], 1.0), p)
    _, _, present, X, busy, queued = means
    return p, S * X, present / X - S, queued / busy


@lru_cache(maxsize=64)
def _readings(line: Line) -> np.ndarray:
    """All systems that agree with a line, as far as the grids of threads, hand-overs and holds go,
    one in each column: n, Z and h in mean holds, L in mean holds, and g.

    Raises ValueError for figures that do not belong to one lock with one holder at a time.
    """
    from scipy.optimize.elementwise import find_root

    p, S, W = _means(line)
    waits, most, few = W / S, max(0.0, W / S - 0.5), 0.0
    measured = [p]
    if line.elapsed is not None:
        measured.append(line.hold / line.elapsed)
        most = min(most, (line.elapsed / line.hold - 1) / p)
        few = (line.hold + line.wait) / line.elapsed
    c = np.inf if line.c is None or line.c < few else max(2.0, line.c)
    threads = THREADS[(c >= THREADS) & (THREADS >= 0.98 * few)]
    top = np.inf if line.longest is None else line.longest / S
    long = np.append(max(1.0, waits) * LONG, [] if line.longest is None else [top / 2, top])
    shares = np.append(SHARES, line.wait / line.hold * np.array([0.25, 0.5, 1.0]))
    long, shares = np.unique(np.minimum(long, top)), shares[shares <= SHARES[-1]]
    shapes = np.array([(1.0, 0.0), *((L, g) for L in long if L > 1 for g in shares)])
    threads = threads if len(threads) else THREADS[-1:]
    n, h, shape = (v.ravel() for v in np.meshgrid(threads, HAND_OVERS * most, range(len(shapes))))
    L, g = shapes[shape].T
    found = []
    for place, value in enumerate(measured):

        def excess(use, *system, place=place, value=value):  # `use` of the lock by one thread alone
            return _closed(system[0], 1.0, 1 / use - 1, *system[1:])[place] - value

        tolerances = {"xatol": 1e-14, "xrtol": 1e-7}
        root = find_root(excess, (1e-12, 1.0), args=(n, h, L, g), tolerances=tolerances)
        found.append(np.array([n, 1 / root.x - 1, h, L, g])[:, root.success])
    n, Z, h, L, g = np.concatenate(found, axis=1)
    *reproduced, wait, _ = _closed(n, 1.0, Z, h, L, g)
    off = [abs(np.log(one / value)) for one, value in zip(reproduced, measured, strict=False)]
    # Where holds are constant, half of one is over.
    wait = np.log(wait / reproduced[0] / waits)
    shorter = np.log((np.exp(wait) + h / waits) / 2)
    worst = np.max([*off, -wait, shorter], axis=0, initial=0.0)
    if not len(worst):
        raise ValueError(
            "no system of threads that are alike agrees with the counters of this lock"
        )
    chance = CHANCE / line.contentions**0.5
    agrees = worst <= max(np.log(AGREES) + chance, WORSE * worst.min())
    return np.array([n, Z, h, L, g])[:, agrees]


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
    the holder. Long holds change as all others do. The wait of a contended use is at least half of
    a hold.

    Each use goes to any of the m locks. For one of these, m Z + (m - 1) S pass between two uses:
    waits for the other locks are left out, so that a contention below a half is up to 6 % too high,
    and a larger one up to 30 %. With a share w of exclusive uses, a hold counts w (2 - w) times:
    the share of pairs of uses that exclude each other. By simulation, first come first served, this
    is right within 10 % up to a contention of 0.7, and beyond up to 20 % too low.

    >>> line = Line(acquisitions=10**10, contentions=10**8, wait=100.0, hold=10_000.0)
    >>> [round(end, 5) for end in after(line, uses=0.1).p]  # somewhat off a tenth of 0.01
    [0.00098, 0.00102]

    Raises ValueError for a change that makes the lock busier, and for figures that do not belong to
    one lock with one holder at a time.
    """
    p, S_before, W = _means(line)
    m, _ = count("m", m), within("w", w, 0, 1, ndim=(0,))
    size = hold if S is None else S / S_before
    exclusive = w * (2 - w)
    busier = uses * size * exclusive / m
    if not 0 < busier <= 1 + 1e-9:
        raise ValueError(f"the lock would be {busier:.3g} times as busy, expected above 0, up to 1")
    n, Z, *more = _readings(line)
    contended, _, wait, queued = _closed(n, 1.0, Z, *more)
    # The time that is saved passes without a use, or not at all.
    work = np.array([Z / uses, (Z + 1) / uses - 1])
    slower = np.array([0 * queued, np.minimum(queued, line.wait / line.hold) * (S is None)])
    holds = np.maximum(size * (1 - slower), SHORTEST)[:, None, :] * exclusive
    then, _, waits, _ = _closed(n, holds, m * work + (m - 1) * holds, *more)
    low, high = then.min(), max(then.max(), p * busier)
    few, many = (_chance(line.contentions, uses * line.acquisitions * q) for q in (low, high))
    low, high = low * (1 - few), min(1.0, high * (1 + many))
    shortest = S_before * size * (1 - slower.max()) / 2 * max(0.0, 1 - few)
    longest = W * max(1.0, size, float((waits / then / (wait / contended)).max())) * (1 + few)
    left = uses * waits / wait
    if line.wait / line.hold > THREADS[-1]:  # long hand-overs, or more threads than are tried
        high, left = max(high, p), np.append(left, uses)
    saved = 1 - left.max() * (1 + many), 1 - max(0.0, left.min() * (1 - few))
    ends = (low, high), (shortest, longest), saved
    return After(*((max(0.0, float(least)), float(most)) for least, most in ends))


def saturation(line: Line) -> tuple[float, float]:
    """How many times as many threads as now the lock can feed: the least and the most.

    With more of them some must wait, whatever the order, as a full lock goes from hand to hand.
    Below 1, there are too many already.
    """
    n, Z, h, *_ = _readings(line)
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
    for name, least in (("c", 1), ("longest", S / 2)):  # tools round the longest hold
        if getattr(line, name) is not None:
            within(name, getattr(line, name), least, ndim=(0,))
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
