"""What a program's throughput on one node says about its locks on several.

On one node N threads were measured with several locks. Of these figures the queue lock's is one
equation for two unknowns, think time Z and hold time S (its hand-over included); every other lock
adds one figure and one unknown, what its waiters cost. So one number stays open: N_sat, how many
threads the lock can feed. It is 1 for a lock that is always full, and greatest where to hold the
lock takes no longer than to hand it over. `outlook` says what all of this makes of several nodes.
What it knows besides the figures:

- What the program counts contains a use of the lock, or several; one after the other they make up
  S, and each begins with a hand-over.
- By its protocol a waiter costs one hand-over with test-and-set (its write) and half of one with a
  ticket (half of the reads come first). So the cost of a waiter tells the uses in a unit: no less
  than one, and no more than fit into S. An N_sat at which so few wait that even this does not
  explain a loss to within `NOISE` is left out.
- If the cohort lock beats the queue lock even on one node, where nothing crosses, hand-overs
  decide, and the lock is full; then a waiter may cost less, too. A gain of up to `GAIN[0]` may be
  noise, from `GAIN[1]` on it is none, and between them the range closes step by step.
- Another lock that beats the queue lock does so outside of this model: its waiters are taken to
  cost what the protocol says.

In worlds as assumed, from idle to full, with one to ten uses in a unit
(`tests/models/test_nodes.py`, four threads a node), the range holds the truth; the middle is off by
a factor of 1.2 on two nodes and 1.6 on eight (root mean square), on average 8 % and 23 % too low,
2.6 at worst. More threads leave more open: with ten and a nearly idle lock the middle on eight
nodes may be a quarter of it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from nummodel.arguments import count, feasible, numbers, valid
from nummodel.models import locks

GRANTS = {
    "queue": locks.queue_grant,
    "ticket": locks.ticket_grant,
    "tas": locks.tas_grant,
    "cohort": locks.cohort_grant,
}
#: Waiters whose costs make up one hand-over.
WAITERS = {"ticket": 2.0, "tas": 1.0}
#: How far off a ratio of two throughputs may be: about the standard deviation of that of medians of
#: five runs that vary by 2.4 %, as the cohort lock's in upscaledb. The gain of the cohort lock is
#: weighed from one to three of these.
NOISE = 0.02
GAIN = (1 + NOISE, 1 + 3 * NOISE)
#: Values of N_sat that are tried; an end of a range may lie between two, and is then off by 0.5 %.
POINTS = 200
#: Threads of a node times nodes, and times what it takes to read a node: a second or two.
WORK = 6000


class Ratio(NamedTuple):
    """Throughput over that of one node: the centre of what is possible, and its ends."""

    middle: float
    low: float
    high: float


def outlook(
    X: Mapping[str, float], N: int, nodes: int, h: float, h_remote: float
) -> dict[str, Ratio]:
    """Throughput on several nodes, N threads each, over that on one node, for each lock of `X`.

    `X` are throughputs of N threads on one node, by the names in `GRANTS`, "queue" among them;
    `h` is a hand-over inside a node and `h_remote` one across [s].

    `low` and `high` are the ends over all N_sat that are possible. `middle` is the geometric mean,
    equal ratios of N_sat counting alike: a convention, where nothing measured prefers one.

    A full lock gives a figure, without a range. Here it takes 1 s, 0.09 more with 9 waiters by
    ticket, which is one hand-over of 0.02 s; half of them cross, and take 0.1 s more:

    >>> one_node = {"queue": 1.0, "ticket": 1 / 1.09, "cohort": 1.1}
    >>> two = outlook(one_node, 10, nodes=2, h=0.02, h_remote=0.12)
    >>> round(two["queue"].middle * 1.05, 9), round(two["ticket"].middle * 1.24 / 1.09, 9)
    (1.0, 1.0)

    One node says nothing new about one node, and little about two if all locks are alike there:

    >>> alike = {"queue": 1.0, "ticket": 1.0, "tas": 1.0}
    >>> [round(x, 2) + 0 for x in outlook(alike, 10, nodes=1, h=0.001, h_remote=0.003)["tas"]]
    [1.0, 1.0, 1.0]
    >>> [round(x, 1) for x in outlook(alike, 10, nodes=2, h=0.001, h_remote=0.003)["tas"]]
    [1.6, 1.0, 2.0]

    Raises ValueError for a throughput that is not positive or that even a full lock cannot reach,
    an unknown lock or no queue lock, fewer than two threads, and anything that is not one number.
    """
    x, (h, h_remote) = _throughputs(X), (_one("h", h), _one("h_remote", h_remote))
    N, nodes = _threads(N), count("nodes", nodes)
    most = WORK // N - 8
    feasible("nodes", nodes, most, f"{N} threads on each")
    if not 0 < h <= h_remote:
        raise ValueError(f"h is {h}, expected more than 0 and at most h_remote, {h_remote}")
    if max(x.values()) * h > 1:
        raise ValueError(f"X is {dict(X)}, expected no more than one use in each hand-over, {h} s")
    gain = max(1.0, x.get("cohort", 0) / x["queue"])
    full = float(np.interp(gain, GAIN, (0, 1)))
    N_sat = np.geomspace(1, N / (x["queue"] * h), POINTS)
    misfit = reading(x, N, h, N_sat, full).misfit
    possible = N_sat[misfit <= max(NOISE, misfit.min())] ** (1 - full)
    N_sat = np.geomspace(possible[0], possible[-1], POINTS)
    S, Z, cost, uses, _ = reading(x, N, h, N_sat, full)

    def throughput(name, nodes):
        hold = S / gain if name == "cohort" else S
        # A cohort lock's longer way in and out is no time of the lock.
        think = Z + max(N / x[name] - N / x["queue"], 0) if name == "cohort" else Z
        further = {"h_waiter": cost[name]} if name in cost else {}

        def grant(n):
            far = uses * (h_remote - h)
            return GRANTS[name](n, hold, h_remote=far, nodes=nodes, **further)

        return locks.solve(grant, N * nodes, think).X

    result = {}
    for name in x:
        logs = np.log(throughput(name, nodes) / throughput(name, 1))
        result[name] = Ratio(*(float(np.exp(log)) for log in (logs.mean(), logs.min(), logs.max())))
    return result


def _throughputs(X: Mapping[str, float]) -> dict[str, float]:
    """X as floats, checked."""
    if not isinstance(X, Mapping) or "queue" not in X or not set(X) <= set(GRANTS):
        found = ", ".join(map(str, X)) if isinstance(X, Mapping) else repr(X)
        raise ValueError(f"X has {found}; expected queue and any of {', '.join(GRANTS)}")
    return {name: _one(f"X[{name!r}]", value) for name, value in X.items()}


def _one(name: str, value: Any) -> float:
    """A number that can be measured: of the others there is no reading that floats hold."""
    found = numbers(name, value)
    if found.ndim or not 1e-30 <= found <= 1e30:
        raise ValueError(f"{name} is {value!r}, expected one positive number, of 1e-30 to 1e30")
    return float(found)


def _threads(N: Any) -> int:
    """N, checked: as many as are read in a second or two."""
    number = count("N", N)
    if number < 2:
        raise ValueError(f"N is {N}, expected at least 2: one thread waits for nobody")
    feasible("N", number, WORK // 10, "a grid of systems of N is solved many times")
    return number


class Reading(NamedTuple):
    """Of one node: hold and think time, waiters' costs, uses in a unit, and how far off it is."""

    S: np.ndarray
    Z: np.ndarray
    cost: dict[str, np.ndarray]
    uses: np.ndarray
    misfit: np.ndarray


def reading(X: Mapping[str, float], N: int, h: float, N_sat, full: float = 0.0) -> Reading:
    """How the throughputs of one node are read for each N_sat, arguments as those of `outlook`.

    `full` is 1 where the lock is known to be full, so that waiters may cost less than by protocol.
    The misfit is that of the lock whose loss waiters can explain least, in the logarithm.

    >>> reading({"queue": 1.0, "tas": 0.8}, N=11, h=0.025, N_sat=[1.0]).cost["tas"].round(9)
    array([0.025])
    """
    X, N, h, N_sat = _throughputs(X), _threads(N), _one("h", h), valid({"N_sat": N_sat})["N_sat"]
    if N_sat.ndim != 1 or (N_sat < 1).any():
        raise ValueError(f"N_sat is {N_sat}, expected a list of numbers of at least 1")
    if np.ndim(full) or not 0 <= numbers("full", full) <= 1:
        raise ValueError(f"full is {full!r}, expected a number from 0 to 1")
    S = locks.solve(lambda n: 1.0, N, N_sat - 1).X / X["queue"]  # Z is N_sat - 1 times S
    Z, cost, misfit = (N_sat - 1) * S, {}, np.zeros(len(S))
    measured = {name: min(X[name], X["queue"]) for name in WAITERS if name in X}
    for name, x in measured.items():
        hand_over = WAITERS[name] * _waiter_cost(x, N, S, Z)
        cost[name] = np.clip(hand_over, (1 - full) * h, S) / WAITERS[name]
        misfit = np.maximum(misfit, np.log(_with_waiters(cost[name], N, S, Z) / x))
    if cost:
        uses = np.mean([WAITERS[name] * cost[name] / h for name in cost], axis=0)
    else:  # nothing tells
        uses = (S / h) ** np.array([[0.0], [0.5], [1.0]])
    return Reading(S, Z, cost, np.maximum(uses, 1.0), misfit)


def _with_waiters(cost: np.ndarray, N: int, S: np.ndarray, Z: np.ndarray):
    return locks.solve(lambda n: S + cost * (n - 1), N, Z).X


def _waiter_cost(X: float, N: int, S: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """What each waiter must add to the hold time so that the throughput is X: from 0 to S."""
    from scipy.optimize.elementwise import find_root

    def faster(share, S, Z):  # the cost as a share of the hold time
        return _with_waiters(share * S, N, S, Z) / X - 1

    even = find_root(faster, (0.0, 1.0), args=(S, Z), tolerances={"xatol": 1e-15})
    return S * np.where(even.success, even.x, np.where(faster(1.0, S, Z) > 0, 1.0, 0.0))
