"""What a program's throughput on one node says about its locks on several.

On one node N threads were measured with several locks. Of these figures the queue lock's is one
equation for two unknowns, think time Z and hold time S (its hand-over included); every other lock
adds one figure and one unknown, what its waiters cost. So one number stays open, how full the lock
is, and `outlook` says what all its possible values make of several nodes, counting all hold
times alike:

- By its protocol a waiter costs one hand-over with test-and-set (its write) and half of one with a
  ticket (half of the reads come first). Known what a hand-over takes, this tells how many of them
  are in one unit of what the program counts: a transaction may use the lock several times. They
  are no less than one; all of them may cross; and S is not less than their sum, which excludes a
  lock that is nearly idle.
- Unless the lock is full, it costs no less: where hardly anyone waits, one node does not show it.
- If the cohort lock beats the queue lock even on one node, where nothing crosses, hand-overs
  decide, and the lock is full.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from nummodel import locks
from nummodel.arguments import valid

GRANTS = {
    "queue": locks.queue_grant,
    "ticket": locks.ticket_grant,
    "tas": locks.tas_grant,
    "cohort": locks.cohort_grant,
}
#: What the cohort lock must gain on one node to be more than noise.
FASTER = 1.02
#: Waiters whose costs make up one hand-over.
WAITERS = {"ticket": 2.0, "tas": 1.0}


class Outlook(NamedTuple):
    """Throughput over that of one node: its mean over all that is open, and the extremes."""

    middle: float
    low: float
    high: float


def outlook(
    X: Mapping[str, float], N: int, nodes: int, h: float, h_remote: float
) -> dict[str, Outlook]:
    """Throughput on several nodes, N threads each, over that on one node, for each lock of `X`.

    `X` are throughputs of N threads on one node, by the names in `GRANTS`, "queue" among them;
    `h` is a hand-over inside a node and `h_remote` one across [s].

    A full lock gives a figure, without a range. Here it takes 1 s, 0.09 more with 9 waiters by
    ticket, which is one hand-over of 0.02 s; half of them cross, and take 0.1 s more:

    >>> one_node = {"queue": 1.0, "ticket": 1 / 1.09, "cohort": 1.1}
    >>> two = outlook(one_node, 10, nodes=2, h=0.02, h_remote=0.12)
    >>> round(two["queue"].middle * 1.05, 12), round(two["ticket"].middle * 1.24 / 1.09, 12)
    (1.0, 1.0)

    Raises ValueError for a throughput that is not positive, an unknown lock or no queue lock.
    """
    if "queue" not in X or not set(X) <= set(GRANTS):
        raise ValueError(f"X has {', '.join(X)}; expected queue and any of {', '.join(GRANTS)}")
    if not all(0 < x < np.inf for x in X.values()):
        raise ValueError(f"X is {dict(X)}, expected positive throughputs")
    valid({"N": N, "nodes": nodes, "h": h, "h_remote": h_remote})
    if not 0 < h <= h_remote:
        raise ValueError(f"h is {h}, expected more than 0 and at most h_remote, {h_remote}")
    full = X.get("cohort", 0) > FASTER * X["queue"]
    S, Z = (np.array([1 / X["queue"]]), np.zeros(1)) if full else _possible(X["queue"], N)
    cost = {name: _waiter_cost(X[name], N, S, Z) for name in WAITERS if name in X}
    if not full:  # too few may have waited to show what a waiter costs by its protocol
        cost = {name: np.maximum(each, h / WAITERS[name]) for name, each in cost.items()}
    uses: Any = np.ones(len(S))
    open_: Any = np.ones(len(S), dtype=bool)
    if cost:
        hand_overs = np.array([WAITERS[name] * cost[name] for name in cost])
        uses = hand_overs.mean(axis=0) / h
        open_ = (S >= hand_overs).all(axis=0) | full
        open_[-1] |= not open_.any()
    far = np.maximum(uses, 1.0) * (h_remote - h)
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
    """Hold times from none to a full lock, with the think times that give X."""
    S = (np.arange(points) + 0.5) / points / X
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
