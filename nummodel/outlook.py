"""What a program's throughput on one node says about its locks on several.

On one node N threads were measured with several locks. Of these figures the queue lock's is one
equation for two unknowns, think time Z and hold time S (its hand-over included); every other lock
adds one figure and one unknown, what its waiters cost. So one number stays open, how full the lock
is, and `outlook` says what all its possible values make of several nodes:

- If the cohort lock beats the queue lock even on one node, hand-overs decide, and the lock is full.
- Else the queue lock is no fuller than N* = N, where Z + S = N S.
- A use takes no less than the hand-overs in it: h <= S, with what a waiter costs h by test-and-set
  (one write each) and h/2 by ticket (half of the reads).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from nummodel import locks
from nummodel.arguments import valid

GRANTS = {
    "queue": locks.queue_grant,
    "ticket": locks.ticket_grant,
    "tas": locks.tas_grant,
    "cohort": locks.cohort_grant,
}
#: Waiters' costs that make up one hand-over.
WAITERS = {"ticket": 2.0, "tas": 1.0}


class Outlook(NamedTuple):
    """Throughput over that of one node: its mean over all that is open, and the extremes."""

    middle: float
    low: float
    high: float


def outlook(X: Mapping[str, float], N: int, nodes: int, far: float) -> dict[str, Outlook]:
    """Throughput on several nodes, N threads each, over that on one node, for each lock of `X`.

    `X` are throughputs of N threads on one node, by the names in `GRANTS`, "queue" among them;
    `far` is what a hand-over takes longer across nodes than inside one [s].

    A full lock gives a figure, without a range; here each grant takes 1, 1.09 and 1.09 + 0.09:

    >>> full = outlook({"queue": 1.0, "ticket": 1 / 1.09, "cohort": 1.1}, 10, nodes=2, far=0.1)
    >>> round(full["queue"].middle * 1.05, 12), round(full["ticket"].middle * 1.24 / 1.09, 12)
    (1.0, 1.0)

    Raises ValueError for a throughput that is not positive, an unknown lock or no queue lock.
    """
    if "queue" not in X or not set(X) <= set(GRANTS):
        raise ValueError(f"X has {', '.join(X)}; expected queue and any of {', '.join(GRANTS)}")
    if not all(0 < x < np.inf for x in X.values()):
        raise ValueError(f"X is {dict(X)}, expected positive throughputs")
    valid({"N": N, "nodes": nodes, "h": far})
    full = X.get("cohort", 0) > X["queue"]
    S, Z = (np.array([1 / X["queue"]]), np.zeros(1)) if full else _possible(X["queue"], N)
    cost = {name: _waiter_cost(X[name], N, S, Z) for name in WAITERS if name in X}
    open_ = np.all([S >= WAITERS[name] * cost[name] for name in cost], axis=0) | full
    result = {}
    for name, x in X.items():
        hold, think = S, Z
        if name == "cohort" and full:
            hold = np.array([1 / x])
        elif name == "cohort":  # its longer way in and out is no time of the lock
            think = np.maximum(Z + N / x - N / X["queue"], 0)
        further = {"h_waiter": cost[name]} if name in cost else {}

        def grant(n, name=name, hold=hold, further=further):
            return GRANTS[name](n, hold, h_remote=far, nodes=nodes, **further)

        ratios = (locks.solve(grant, N * nodes, think).X / x)[open_]
        result[name] = Outlook(float(ratios.mean()), float(ratios.min()), float(ratios.max()))
    return result


def _possible(X: float, N: int, points: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Hold times between none and that of N* = N, with the think times that give X."""
    most = _root(lambda S: X - locks.solve(lambda n: S, N, (N - 1) * S).X, np.full(1, N / X))
    S = most * (np.arange(points) + 0.5) / points
    return S, _root(lambda Z: X - locks.solve(lambda n: S, N, Z).X, np.full(points, N / X))


def _waiter_cost(X: float, N: int, S, Z) -> np.ndarray:
    """What each waiter must add to the hold time so that the throughput is X; none if it is less
    without.
    """

    def lacking(cost):
        return X - locks.solve(lambda n: S + cost * (n - 1), N, Z).X

    return _root(lacking, np.full(len(S), N / X))


def _root(f, high: np.ndarray) -> np.ndarray:
    """Where the rising f passes 0 between 0 and `high`, or next to the end that is nearer to 0."""
    low = np.zeros_like(high)
    for _ in range(60):  # halves the interval to rounding
        middle = (low + high) / 2
        low, high = np.where(f(middle) < 0, middle, low), np.where(f(middle) < 0, high, middle)
    return (low + high) / 2
