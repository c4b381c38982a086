"""What a program's throughput on one node says about its locks on several nodes.

Given is the throughput of N threads on one node with each of several locks. The queue lock's
throughput is one equation for two unknowns: think time Z, and hold time S with the hand-over. Every
other lock adds one equation and one unknown, the cost of its waiters. So one number stays open:
N_sat = 1 + Z/S, the number of threads that would keep the lock busy if they never met. N_sat is 1
if threads do not think: then one thread keeps the lock busy. N_sat is largest if S is only the
hand-over. `outlook` predicts throughputs on several nodes for all N_sat that are possible, with
these assumptions:

- The program's unit of work has one use of the lock or several. Their hold times add up to S, and
  each use begins with a hand-over.
- By the protocols a waiter costs one hand-over with test-and-set (its write), and half of one with
  a ticket lock (half of the reads come before that of the next owner). So the cost of a waiter
  gives the number of uses in a unit: at least one, and no more than fit into S. An N_sat with so
  few waiters that this cost cannot explain a loss of throughput to within `NOISE` is left out.
- If the cohort lock beats the queue lock even on one node, where no hand-over crosses, then
  hand-overs decide and the lock is full; then a waiter may cost less, too. A gain of up to
  `GAIN[0]` may be noise, a gain from `GAIN[1]` on is none; between them the range of N_sat narrows
  step by step.
- If another lock beats the queue lock, this model has no explanation: the cost of its waiters is
  taken to be that of the protocol.

In such systems, from idle to full, with one to ten uses in a unit (`tests/models/test_nodes.py`,
four threads a node), the range holds the truth. The middle is off by a factor of 1.2 on two nodes
and 1.6 on eight (root mean square), on average 8 % and 23 % too low, at worst by a factor of 2.6.
With ten threads and a nearly idle lock the middle on eight nodes may be a quarter of the truth.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from nummodel.arguments import count, feasible, ordered, within
from nummodel.models import locks

GRANTS = {
    "queue": locks.queue_grant,
    "ticket": locks.ticket_grant,
    "tas": locks.tas_grant,
    "cohort": locks.cohort_grant,
}
#: Waiters whose costs make up one hand-over.
WAITERS = {"ticket": 2.0, "tas": 1.0}
#: How far off a ratio of two throughputs may be: about the standard deviation of the ratio of two
#: medians of five runs that vary by 2.4 %, as those of the cohort lock in upscaledb do.
NOISE = 0.02
GAIN = (1 + NOISE, 1 + 3 * NOISE)
#: Values of N_sat that are tried. The end of a range between two of them is off by 0.5 %.
POINTS = 200
#: Most threads of a node times nodes: a second or two of work.
WORK = 6000


class Ratio(NamedTuple):
    """Throughput over that of one node: the middle of the possible range, and its ends."""

    middle: float
    low: float
    high: float


def outlook(
    X: Mapping[str, float], N: int, nodes: int, h: float, h_remote: float
) -> dict[str, Ratio]:
    """Throughput on several nodes, N threads each, over that on one node, for each lock of `X`.

    `X` has the throughputs of N threads on one node, by the names in `GRANTS`; "queue" must be
    among them. `h` is a hand-over inside a node and `h_remote` one across nodes [s].

    `low` and `high` are the ends over all N_sat that are possible, `middle` is the geometric mean.
    In this mean equal ratios of N_sat count alike, by convention: no measurement prefers an N_sat.

    A full lock gives a figure without a range. Here a grant takes 1 s, and by ticket 0.09 s more
    with 9 waiters, since a hand-over takes 0.02 s. Half of the hand-overs cross and take 0.1 s
    more:

    >>> one_node = {"queue": 1.0, "ticket": 1 / 1.09, "cohort": 1.1}
    >>> two = outlook(one_node, 10, nodes=2, h=0.02, h_remote=0.12)
    >>> round(two["queue"].middle * 1.05, 9), round(two["ticket"].middle * 1.24 / 1.09, 9)
    (1.0, 1.0)

    Raises ValueError for a throughput that even a full lock cannot reach, and for one thread.
    """
    x, N, h = _measured(X, N, h)
    h_remote, nodes = _one("h_remote", h_remote), count("nodes", nodes)
    feasible("nodes", nodes, WORK // N - 8, f"{N} threads on each")
    ordered({"h": h, "h_remote": h_remote}, "h", "h_remote")
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
        hold, think = S, Z
        if name == "cohort":  # what it takes longer than the queue lock is outside of the lock
            hold, think = S / gain, Z + max(N / x[name] - N / x["queue"], 0)
        waiter = {"h_waiter": cost[name]} if name in cost else {}

        def grant(n):
            far = uses * (h_remote - h)
            return GRANTS[name](n, hold, h_remote=far, nodes=nodes, **waiter)

        return locks.solve(grant, N * nodes, think).X

    result = {}
    for name in x:
        logs = np.log(throughput(name, nodes) / throughput(name, 1))
        result[name] = Ratio(*(float(np.exp(log)) for log in (logs.mean(), logs.min(), logs.max())))
    return result


def _measured(X: Mapping[str, float], N: int, h: float) -> tuple[dict[str, float], int, float]:
    """X, N and h, checked: N is at least 2, as one thread waits for nobody."""
    if not isinstance(X, Mapping) or "queue" not in X or not set(X) <= set(GRANTS):
        found = ", ".join(map(str, X)) if isinstance(X, Mapping) else repr(X)
        raise ValueError(f"X has {found}; expected queue and any of {', '.join(GRANTS)}")
    number = count("N", N, least=2)
    feasible("N", number, WORK // 10, "a grid of systems of N is solved many times")
    return {name: _one(f"X[{name!r}]", x) for name, x in X.items()}, number, _one("h", h)


def _one(name: str, value: Any) -> float:
    """One measured number: figures beyond these ends cannot be read with floats."""
    return float(within(name, value, 1e-30, 1e30, ndim=(0,)))


class Reading(NamedTuple):
    """What one node says: hold and think time, waiters' costs, uses in a unit, and the misfit."""

    S: np.ndarray
    Z: np.ndarray
    cost: dict[str, np.ndarray]
    uses: np.ndarray
    misfit: np.ndarray


def reading(X: Mapping[str, float], N: int, h: float, N_sat, full: float = 0.0) -> Reading:
    """How the throughputs of one node are read for each N_sat; X, N and h as in `outlook`.

    `full` is 1 where the lock is known to be full, so that waiters may cost less than by protocol.
    The misfit is the logarithm of the loss that waiters cannot explain, the largest of all locks.

    >>> reading({"queue": 1.0, "tas": 0.8}, N=11, h=0.025, N_sat=[1.0]).cost["tas"].round(9)
    array([0.025])
    """
    X, N, h = _measured(X, N, h)
    N_sat = within("N_sat", N_sat, 1, ndim=(1,))
    full = float(within("full", full, 0, 1, ndim=(0,)))
    S = locks.solve(lambda n: 1.0, N, N_sat - 1).X / X["queue"]  # Z is N_sat - 1 times S
    Z, cost, misfit = (N_sat - 1) * S, {}, np.zeros(len(S))
    measured = {name: min(X[name], X["queue"]) for name in WAITERS if name in X}
    for name, x in measured.items():
        hand_over = WAITERS[name] * _waiter_cost(x, N, S, Z)
        cost[name] = np.clip(hand_over, (1 - full) * h, S) / WAITERS[name]
        misfit = np.maximum(misfit, np.log(_with_waiters(cost[name], N, S, Z) / x))
    if cost:
        uses = np.mean([WAITERS[name] * cost[name] / h for name in cost], axis=0)
    else:  # one use, as many as fit into S, or between the two
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
