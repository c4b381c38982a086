"""Memory that is near and memory that is far: where accesses go, and how long they take.

A machine has nodes, each with processors and memory; an access to the memory of another node takes
longer. The share of remote accesses is not a property of the machine. It follows from which node
accesses which data (`access`, a row for each node and a column for each item of data) and from
where the data are (`copies`, a row for each item and a column for each node).

>>> ramdisk = mix(access=np.ones((3, 1)), copies=[striped(3, over=[0])])
>>> round(ramdisk.f_remote, 4), ramdisk.by_node
(0.6667, array([0., 1., 1.]))

Latencies may be in any unit of time; often only their ratio is known. `memories` are the stations
of a network in which accesses wait for the channels of the memory that they go to.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nummodel.arguments import continuous, count, indices, station, valid, within
from nummodel.formula import formula
from nummodel.models import networks, queueing

#: Most nodes that data are placed on: tables have a row and a column for each.
NODES = 1000
#: Bytes that one access to memory moves: a cache line.
LINE = 64


@formula("R", valid)
def mean_latency(f_remote, t_local, t_remote):
    """Mean latency of accesses, a share `f_remote` of which goes to another node.

    >>> mean_latency(0.75, t_local=1.0, t_remote=3.0)
    2.5
    """
    return t_local + f_remote * (t_remote - t_local)


def striped(nodes: int, over: Sequence[int] | None = None) -> np.ndarray:
    """One item of data, in equal parts on the nodes `over`: on all nodes if they are left out.

    >>> striped(4), striped(4, over=[0])
    (array([0.25, 0.25, 0.25, 0.25]), array([1., 0., 0., 0.]))
    """
    nodes = count("nodes", nodes, most=NODES)
    where = indices("over", np.arange(nodes) if over is None else over, nodes, ndim=(1,))
    holds = np.isin(np.arange(nodes), where)
    return holds / holds.sum()


class Mix(NamedTuple):
    """Remote share of all accesses and of those from each node; `served`: share of all accesses
    that the memory of each node has to serve.
    """

    f_remote: float
    by_node: np.ndarray
    served: np.ndarray


def mix(access, copies) -> Mix:
    """The shares of accesses that are remote: of all nodes together, and of each node.

    `access[i, j]` is how often node i accesses item j, in any unit; `copies[j, k]` is the share of
    item j that node k holds. The shares of an item add up to one, or to more if the item is
    replicated. A node gets the part of an item that it does not hold itself from the other nodes,
    in proportion to their shares.

    If all of q nodes access all data alike, (q - 1)/q of the accesses are remote, whether the data
    are striped or in one place:

    >>> [round(mix(np.ones((q, 1)), [striped(q)]).f_remote, 3) for q in (1, 2, 4, 8)]
    [0.0, 0.5, 0.75, 0.875]

    Accesses to data of which each node has a copy, or that only their own node uses, are never
    remote:

    >>> mix(np.ones((4, 1)), [np.ones(4)]).f_remote, mix(np.eye(4), np.eye(4)).f_remote
    (0.0, 0.0)

    Raises ValueError for shares that add up to less than one, and if there are no accesses.
    """
    shares = _paths(access, copies)
    total, far = shares.sum(1), shares - np.diag(np.diag(shares))
    by_node = np.divide(far.sum(1), total, out=np.zeros(len(total)), where=total > 0)
    return Mix(float(far.sum()), by_node, shares.sum(0))


def _paths(access, copies) -> np.ndarray:
    """Share of all accesses that go from node i, a row, to the memory of node k; as in `mix`."""
    A = within("access", access, 0, np.finfo(float).max, ndim=(2,))
    P = within("copies", copies, 0, 1, ndim=(2,))
    if A.shape != P.T.shape:
        expected = f"that of access, {A.shape}, turned round"
        raise ValueError(f"copies has the shape {P.shape}, expected {expected}")
    if not A.any():
        raise ValueError("access is 0 everywhere, expected one figure above 0 at least")
    within("the sum of an item's copies", P.sum(1), 1 - 1e-9)
    A = A / A.max()  # so that the sum of the largest figures does not overflow
    A = A / A.sum()
    elsewhere = P.sum(1) - P.T  # of item j, what is on other nodes than i
    with np.errstate(all="ignore"):
        per_share = np.where(elsewhere > 0, A * (1 - P.T) / elsewhere, 0.0)
    shares = per_share @ P
    np.fill_diagonal(shares, (A * P.T).sum(1))
    return shares


@formula("R", continuous)
def loaded_latency(B, R0, t_row, channels, B_max, lines):
    """Latency of a read while a bandwidth `B` is drawn from memory.

    Three effects grow with u = B/B_max. First, other traffic closes rows that a read would have
    found open: this takes `t_row` at full bandwidth. Second, reads queue at one of `channels`
    channels, each of which transfers a line in S = channels * 64 bytes/B_max: M/M/1, a wait of
    S u/(1 - u). Third, at most `lines` reads are under way, so that a full memory is a closed
    system: its latency is lines * 64 bytes/B by Little's law, of which a part E is waiting at
    B_max. Below B_max a read waits W, which interpolates between the open queue and the closed
    system: 1/W = (1 - u)/(S u) + 1/E. This interpolation is our own. Beside the exact machine
    repairman (exponential times, no rows, an idle latency of 3 S, N lines a channel) latency is too
    high by at most

    ==========  ====  ====  ====
    N              5    20    80
    ==========  ====  ====  ====
    at u = 0.5    5%    3%    1%
    at u = 0.9    6%   35%   28%
    anywhere      7%   73%  211%
    ==========  ====  ====  ====

    >>> machine = {"t_row": 35e-9, "channels": 12, "B_max": 226e9, "lines": 930}
    >>> (1e9 * loaded_latency(B=[0.0, 113e9, 226e9], R0=78e-9, **machine)).round(1)
    array([ 78. ,  98.8, 263.4])

    With too few lines to fill the memory, no read waits, and B_max is out of reach.

    The measurement with the least delay between two reads gives two quantities: its bandwidth is
    `B_max`, and bandwidth * latency/64 bytes is `lines`. Always give both, since a search for them
    may end anywhere. `fit(loaded_latency, table, "log", B_max=..., lines=...)` then estimates R0,
    t_row and channels from columns B and R. Give a measured idle latency as `R0` only if channels
    are known: the curve begins some percent off it, and an estimate of channels would make up for
    that. Where reads come in bursts, the estimate of channels is above their number.

    The law has one latency for each bandwidth. If bandwidth falls when more reads are asked for,
    the law has one branch only: above `B_max` it has no queue, only the lines.
    """
    import sympy as sp

    u, S = B / B_max, channels * LINE / B_max
    most = lines * LINE / B_max - R0 - t_row
    closed, empty = lines * LINE / B, R0 + t_row * u
    filling = empty + S * u * most / (S * u + most * (1 - u))
    return sp.Piecewise(
        (closed, B >= B_max), (filling, most > 0), (empty, empty < closed), (closed, True)
    )


def memories(access, copies, latency, B_max, channels: int = 1) -> list[networks.Station]:
    """Stations of a closed network whose classes are nodes and whose customers are reads.

    `access` and `copies` are those of `mix`, `latency[i, k]` is the idle latency of a read by
    node i from the memory of node k [s], and `B_max` the greatest bandwidth of a node's memory
    [bytes/s], of `channels` channels that are used alike. A read takes its idle latency, in which a
    channel passes the line, and waits before for its turn at the channel. Links between nodes are
    never full. `networks.schweitzer` and, with few reads, `networks.solve` tell throughput and
    latency of each node from the numbers of reads that a node has under way.

    Two nodes with 40 reads each. If all data are on the first, its memory limits both:

    >>> latency = 1e-9 * np.array([[78.0, 143.0], [144.0, 78.0]])
    >>> for placed in (striped(2), striped(2, over=[0])):
    ...     stations = memories(np.ones((2, 1)), [placed], latency, B_max=20e9)
    ...     print((1e9 * networks.solve(stations, (40, 40)).R).round())
    [137. 138.]
    [227. 294.]

    Raises ValueError as `mix` does, and for a latency that is less than the time of a line.
    """
    shares, m = _paths(access, copies), count("channels", channels)
    t = within("latency", latency, 0, ndim=(2,))
    if t.shape != shares.shape:
        raise ValueError(f"latency has the shape {t.shape}, expected {shares.shape}")
    if not shares.sum(1).all():
        raise ValueError("access has a node of zeros, expected one figure above 0 for each node")
    S = m * LINE / float(within("B_max", B_max, 1e-30, 1e30, ndim=(0,)))
    within("latency", t, S)
    shares = shares / shares.sum(1, keepdims=True)
    channel = [networks.queue(to / m * S) for to in shares.T for _ in range(m)]
    return [networks.delay((shares * (t - S)).sum(1)), *channel]


@station
def cold_break_even(rho, c):
    """Cost of a cold cache at which any of c processors is as good as a process's own, warm one.

    With affinity each processor has its own queue, M/M/1 at utilisation `rho`. With a home RAD the
    `c` processors of a node share one queue, M/M/c, but service is longer by a share. This is the
    share at which both response times are equal; below it the home RAD is better.

    >>> cold_break_even(rho=[0.0, 0.5, 0.9], c=4).round(3)
    array([0.   , 0.431, 0.08 ])

    It is 0 where no process waits (rho = 0), no time is left (rho = 1) or there is one processor.
    """
    from scipy.optimize.elementwise import find_root

    rho, c = np.broadcast_arrays(rho, c)
    warm = 1 / (1 - np.where(rho < 1, rho, 0.0))

    def gain(cold, rho, c, warm):  # in what is done per second, as a response time may be infinite
        return 1 / queueing.mmc_response(c * rho, 1 + cold, c) - 1 / warm

    even = find_root(gain, (0.0, warm), args=(rho, c, warm))
    return np.where(even.success & (rho < 1), even.x, 0.0)
