"""What a program's throughputs on one node, or on some, say about its locks on more nodes.

The program is a closed system: threads think for Z, then hold the lock for S, and N_sat = 1 + Z/S
threads would keep the lock busy if they never met. The kinds of locks differ in what makes a
hand-over longer on more nodes:

- **queue**: a share 1 - 1/nodes of the hand-overs crosses nodes, and each crossing takes longer, as
  farther nodes join.
- **ticket**: as the queue lock, and each waiter reads the line again after a release.
- **tas**, test-and-set: each waiter writes the line. On more nodes its write takes longer: not at
  all if the requests are answered node by node, in proportion to the distance if as they come.
- **ttas**, test-and-test-and-set: each waiter reads, and then tries to write: between the two.
- **backoff**: waiters ask seldom, and cost little.
- **cohort** and **hierarchical**: hand-overs hardly cross (`locks.cohort_grant`).

All work, in the lock and outside, is slower by a share of 1 - 1/nodes, as some of its memory is on
other nodes: this is why a cohort lock slows down, too.

Each number of this model is unknown, but not any value is likely. `_program.PRIOR` says which are,
and throughputs narrow this down. So `outlook` gives the range that holds the throughput on more
nodes in nine of ten cases. The model misses something as well, and more with every doubling of the
nodes: how much was settled with `benchmarks/locks.py`, whose table tells how well the ranges hold.
"""

from collections.abc import Mapping
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from nummodel.arguments import count, feasible, ordered, within
from nummodel.models._program import KINDS, Program

#: An interval that is to hold nine in ten, and its middle.
ENDS = (0.5, 0.05, 0.95)
#: Most threads, over all numbers of nodes that were measured, which takes half a minute; and most
#: threads that are predicted.
MEASURED, PREDICTED = 400, 6000


class Ratio(NamedTuple):
    """Throughput over that of one node: the median, and the ends of the 90 % range."""

    middle: float
    low: float
    high: float


def outlook(X: Mapping, N: int, nodes: int, h=None, h_remote=None) -> dict[str, Ratio]:
    """Throughput on several nodes, N threads each, over that on one node, for each lock of `X`.

    `X` has the throughputs of N threads on one node [1/s], by the kinds of locks above; "queue"
    must be among them. Or `X` has such mappings for several numbers of nodes, 1 among them. Instead
    of a throughput there may be two numbers, a mean and its standard error.

    `h` is a hand-over inside a node and `h_remote` one across nodes [s], if they are known.
    `h_remote` may be a matrix with a row and a column for each node, for machines on which some
    nodes are farther than others; the first `nodes` of them are in use. If `h` is not given, it is
    the mean of the diagonal; if `h` is given, the diagonal does not count.

    On as many nodes as were measured, the figure is the measured one, and its range is as wide as
    the standard errors tell: without any, nothing is open.

    >>> X = {1: {"queue": 1e6, "tas": 9e5}, 2: {"queue": 9e5, "tas": 6e5}}
    >>> outlook(X, 8, nodes=2)["queue"]
    Ratio(middle=0.9, low=0.9, high=0.9)
    >>> eight = outlook(X, 8, nodes=8)
    >>> eight["queue"].low > eight["tas"].high
    True

    In this model, a lock seldom feeds more than ten times the threads of a node, unless X on
    several nodes shows it. So from one node, ranges may be too low for a program that hardly uses
    its lock.

    The numbers are random draws, always the same. Others would move an end of a range by some 1 to
    3 %, and the lower end for test-and-set by up to 8 % (standard deviations of eight seeds).

    Raises ValueError for a throughput that even a full lock cannot reach, and for one thread.
    """
    x, number = _measured(X), count("N", N, least=2)
    nodes = count("nodes", nodes)
    feasible("N", number, MEASURED // sum(x), "the nodes in X are solved thousands of times")
    feasible("nodes", nodes, PREDICTED // number, f"{number} threads on each")
    h, h_remote = _latencies(h, h_remote, max(nodes, *x))
    highest = max(mean for mean, _ in x[1].values())
    if h is not None and highest * h > 1:
        raise ValueError(
            f"X is up to {highest:g} on one node, expected no more than one use in each hand-over, "
            f"{h:g} s"
        )
    told = {kind: _beside(figure, x[1][kind], nodes) for kind, figure in x.get(nodes, {}).items()}
    if set(told) == set(x[1]):
        return told
    program = Program(x, number, h, h_remote)
    logs = program.predicted(program.draws(), nodes) - program.y[1][:, None]
    ends = np.exp(np.quantile(logs, ENDS, axis=1).T)
    found = {kind: Ratio(*map(float, row)) for kind, row in zip(program.kinds, ends, strict=True)}
    return found | told


def _beside(there: tuple[float, float], here: tuple[float, float], nodes: int) -> Ratio:
    """A measured throughput over that of one node, with the range that both errors leave."""
    (x, error), (one, own) = there, here
    sd = np.hypot(error / x, own / one) if nodes > 1 else 0.0
    ends = np.array([0.0, -1.0, 1.0]) * NormalDist().inv_cdf(ENDS[2]) * sd
    return Ratio(*map(float, x / one * np.exp(ends)))


def _measured(X: Any) -> dict[int, dict[str, tuple[float, float]]]:
    """Means and standard errors by nodes and kinds, checked."""
    if not isinstance(X, Mapping) or not X:
        raise ValueError(f"X is {X!r}, expected throughputs by locks, or by nodes and locks")
    by_nodes = X if all(isinstance(x, Mapping) for x in X.values()) else {1: X}
    whole = {count("the number of nodes in X", n): x for n, x in by_nodes.items()}
    if 1 not in whole or "queue" not in whole[1] or not set(whole[1]) <= set(KINDS):
        found = ", ".join(map(str, whole.get(1, ()))) or "none"
        raise ValueError(f"X has {found} on one node; expected queue and any of {', '.join(KINDS)}")
    for n, x in whole.items():
        if not x or not set(x) <= set(whole[1]):
            found = ", ".join(map(str, x)) or "none"
            raise ValueError(
                f"X has {found} on {n} nodes; expected only locks measured on one node"
            )
    return {n: {k: _figure(f"X[{n}][{k!r}]", v) for k, v in x.items()} for n, x in whole.items()}


def _figure(name: str, value: Any) -> tuple[float, float]:
    """A throughput and its standard error, which is 0 where it is not given."""
    if isinstance(value, tuple) and len(value) == 2:
        return _one(name, value[0]), float(within(f"error of {name}", value[1], 0, 1e30, ndim=(0,)))
    return _one(name, value), 0.0


def _latencies(h: Any, h_remote: Any, nodes: int) -> tuple[float | None, Any]:
    """A hand-over inside a node, and how long hand-overs across nodes take on each number of nodes:
    one figure for two nodes, or a matrix.
    """
    if h is not None:
        h = _one("h", h)
    if h_remote is None:
        return h, None
    table = np.array(h_remote, dtype=object)
    if h is not None and table.ndim == 2 and table.shape[0] == table.shape[1]:
        h_remote = np.where(np.eye(len(table)), h, table)  # whatever stands on the diagonal
    far = within("h_remote", h_remote, 1e-30, 1e30, ndim=(0, 2))
    if far.ndim == 2 and (far.shape[0] != far.shape[1] or len(far) < max(nodes, 2)):
        raise ValueError(f"h_remote is {far.shape}, expected a row and a column for {nodes} nodes")
    if h is None and far.ndim == 0:
        raise ValueError("h is None, expected a hand-over inside a node beside h_remote")
    h = float(np.diag(far).mean()) if h is None else h
    outside = far[~np.eye(len(far), dtype=bool)] if far.ndim else far
    ordered({"h": h, "h_remote": outside}, "h", "h_remote")
    return h, far


def _one(name: str, value: Any) -> float:
    """One measured number: figures beyond these ends cannot be read with floats."""
    return float(within(name, value, 1e-30, 1e30, ndim=(0,)))
