"""Memory that is near and memory that is far: where accesses go, and how long they take.

A machine is made of nodes with processors and memory each; an access to the memory of another node
takes longer. What share of them is remote is not a property of the machine: it follows from who
accesses what (`access`, a row for each node and a column for each item of data) and from where the
data are (`copies`, a row for each item and a column for each node).

>>> ramdisk = mix(access=np.ones((3, 1)), copies=[striped(3, over=[0])])
>>> round(ramdisk.f_remote, 4), ramdisk.by_node
(0.6667, array([0., 1., 1.]))

Latencies may be in any unit of time; often no more is known than their ratio.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nummodel.arguments import continuous, count, indices, numbers, station, valid
from nummodel.formula import formula
from nummodel.models import queueing

#: Most nodes that data are placed on: tables have a row and a column for each.
NODES = 1000
#: Bytes that one access to memory moves: a cache line.
LINE = 64


@dataclass(frozen=True)
class Topology:
    """`nodes` with `cpus` processors each, and latencies: the remote one may be (least, most).

    Raises ValueError for less than one node or processor, and for latencies that are negative or a
    pair in the wrong order.
    """

    nodes: int
    cpus: int
    t_local: float = 1.0
    t_remote: Any = (1.0, 3.0)

    def __post_init__(self):
        count("nodes", self.nodes)
        count("cpus", self.cpus)
        local, remote = valid({"t_local": self.t_local, "t_remote": self.t_remote}).values()
        if local.ndim:
            raise ValueError(f"t_local is {self.t_local}, expected a number")
        if remote.shape not in ((), (2,)) or (remote.ndim and remote[0] > remote[1]):
            raise ValueError(f"t_remote is {self.t_remote}, expected a number or (least, most)")

    def latency(self, f_remote):
        """Mean latency if `f_remote` of the accesses are remote; least and most on the last axis if
        `t_remote` is a pair.

        >>> GS160.latency(0.75)
        array([1. , 2.5])
        """
        share = valid({"f_remote": f_remote})["f_remote"]
        share = share[..., None] if np.ndim(self.t_remote) else share
        return mean_latency(share, self.t_local, self.t_remote)


#: AlphaServers; a local access is the unit of time, and a remote one takes one to three of them: no
#: more has been published where it could be read, and that much is second hand (table gs-guides).
GS80, GS160, GS320 = (Topology(nodes, cpus=4) for nodes in (2, 4, 8))


@formula("R", valid)
def mean_latency(f_remote, t_local, t_remote):
    """Mean latency of accesses, a share `f_remote` of which goes to another node.

    >>> mean_latency(f_remote=[0.0, 0.5, 1.0], t_local=80e-9, t_remote=140e-9).round(10)
    array([8.0e-08, 1.1e-07, 1.4e-07])
    """
    return t_local + f_remote * (t_remote - t_local)


# --- placement --------------------------------------------------------------------------------


def striped(nodes: int, over: Sequence[int] | None = None) -> np.ndarray:
    """One item in equal parts on the nodes `over`; on all of them: uniform; on one: its home.

    >>> striped(4), striped(4, over=[0])
    (array([0.25, 0.25, 0.25, 0.25]), array([1., 0., 0., 0.]))
    """
    nodes = count("nodes", nodes, most=NODES)
    where = indices("over", np.arange(nodes) if over is None else over, nodes, "nodes")
    if where.ndim != 1 or not len(where):
        raise ValueError(f"over is {over!r}, expected a list of nodes from 0 to {nodes - 1}")
    row = np.zeros(nodes)
    row[where] = 1 / len(np.unique(where))
    return row


def replicated(nodes: int) -> np.ndarray:
    """One item, which nobody writes, with a copy on every node."""
    return np.ones(count("nodes", nodes, most=NODES))


def partitioned(nodes: int) -> np.ndarray:
    """As many items as nodes, each on its own: one row an item."""
    return np.eye(count("nodes", nodes, most=NODES))


class Mix(NamedTuple):
    """Remote share of all accesses and of those from each node; `served`: share of all accesses
    that the memory of each node has to serve.
    """

    f_remote: float
    by_node: np.ndarray
    served: np.ndarray


def mix(access, copies) -> Mix:
    """Who accesses what, where it is, and what follows.

    `access[i, j]` is how much node i accesses item j, in any unit; `copies[j, k]` is the share of
    item j that node k holds. A node that holds none of what it wants goes to those that do, in
    proportion. Shares of an item add up to one, or to more if it is replicated.

    Processors on all of q nodes, data anywhere: (q - 1)/q, be it striped or in one place.

    >>> [round(mix(np.ones((q, 1)), [striped(q)]).f_remote, 3) for q in (1, 2, 4, 8)]
    [0.0, 0.5, 0.75, 0.875]

    Read-only data everywhere, and what each node keeps for itself, are never remote:

    >>> mix(np.ones((4, 1)), [replicated(4)]).f_remote, mix(np.eye(4), partitioned(4)).f_remote
    (0.0, 0.0)

    What differs is whom it hits. From one home, one node has it all, and its memory all the work:

    >>> mix(np.ones((2, 1)), [striped(2, over=[0])]).served
    array([1., 0.])

    Raises ValueError for shapes that do not fit, negative figures, shares above one or adding up to
    less than one, and a system that accesses nothing.
    """
    A, P = numbers("access", access), numbers("copies", copies)
    if A.ndim != 2 or P.ndim != 2 or A.shape != P.T.shape:
        raise ValueError(
            f"copies has the shape {P.shape} and access {A.shape}, expected items x nodes and "
            "nodes x items"
        )
    if not (np.isfinite(A) & (A >= 0)).all() or not A.any():
        raise ValueError(f"access is {A.tolist()}, expected figures of at least 0, and one above")
    if not ((P >= 0) & (P <= 1)).all() or not (P.sum(1) >= 1 - 1e-9).all():
        raise ValueError(f"copies is {P.tolist()}, expected shares that add up to 1 or more")
    A = A / A.max()  # so that the sum of the largest figures is no more than their number
    A = A / A.sum()
    near, far = A * P.T, A * (1 - P.T)
    elsewhere = P.sum(1) - P.T  # of item j, what is on other nodes than i
    with np.errstate(all="ignore"):
        each = np.where(elsewhere > 0, far / elsewhere, 0.0)
        by_node = np.where(A.any(1), far.sum(1) / A.sum(1), 0.0)
    served = near.sum(1) + each.sum(0) @ P - (each * P.T).sum(1)
    return Mix(float(far.sum()), by_node, served)


# --- memory under load ------------------------------------------------------------------------


@formula("R", continuous)
def loaded_latency(B, R0, t_row, channels, B_max, lines):
    """Latency of a read while a bandwidth `B` is drawn from memory.

    Three things happen as it fills, to u = B/B_max. Other traffic closes the row that a read would
    have found open: `t_row` at full bandwidth. Reads queue at one of `channels` channels, each of
    which passes a line in S = channels * 64 bytes/B_max: M/M/1, a wait of S u/(1 - u). And no more
    than `lines` reads are under way, so that a full memory is a closed system: lines * 64 bytes/B
    by Little's law, however much is asked for. At B_max, E of that is waiting. In between a read
    waits W, an interpolation of our own between the open queue and the closed end:
    1/W = (1 - u)/(S u) + 1/E. It is no queue: against the exact machine repairman (exponential
    times, no rows, an idle latency of 3 S) latency is too high, with N lines a channel by at most

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

    If the lines end before the bandwidth does, nothing waits, and B_max is out of reach:

    >>> loaded_latency(B=[32.0, 128.0], R0=1.0, t_row=0.0, channels=1, B_max=128.0, lines=1)
    array([1. , 0.5])

    Two figures can be read off a measurement in which nothing holds the processors back, that of
    the least delay between two reads: its bandwidth is `B_max`, and bandwidth * latency/64 bytes is
    `lines`. Always give both: a search for them may end anywhere, and does not say so. What is left
    of R0, t_row and channels, `fit.fit(loaded_latency, table, "log", B_max=..., lines=...)` finds
    from columns B and R. With channels known, give `R0`, too, if idle latency was measured; if not,
    leave it out. With channels unknown leave it out in any case: the curve begins some percent off
    an idle latency measured by itself, and channels would make up for that. They come out as more
    than there are where reads come in bursts.

    The law gives one latency for each bandwidth. Of a memory that does less when asked for more, it
    has one branch: above `B_max` it knows no queue, only the lines.
    """
    import sympy as sp

    u, S = B / B_max, channels * LINE / B_max
    most = lines * LINE / B_max - R0 - t_row
    closed, empty = lines * LINE / B, R0 + t_row * u
    filling = empty + S * u * most / (S * u + most * (1 - u))
    return sp.Piecewise(
        (closed, B >= B_max), (filling, most > 0), (empty, empty < closed), (closed, True)
    )


# --- where to run -----------------------------------------------------------------------------


@station
def cold_break_even(rho, c):
    """Colder cache at which a process does as well on any of c processors as on its own, warm one.

    Affinity: each processor has its own queue, M/M/1 at utilisation `rho`. Home RAD: one queue for
    the `c` of a node, M/M/c, where service takes longer by a share: the one at which response times
    are equal is given. Below it the home RAD is better.

    >>> cold_break_even(rho=[0.0, 0.5, 0.9], c=4).round(3)
    array([0.   , 0.431, 0.08 ])

    An idle processor is warm, and there is nothing to wait for; a full one has no time for a cold
    cache. One processor is no choice: 0.
    """
    from scipy.optimize.elementwise import find_root

    rho, c = np.broadcast_arrays(rho, c)
    warm = 1 / (1 - np.where(rho < 1, rho, 0.0))

    def gain(cold, rho, c, warm):  # in what is done per second, as a response time may be infinite
        return 1 / queueing.mmc_response(c * rho, 1 + cold, c) - 1 / warm

    even = find_root(gain, (0.0, warm), args=(rho, c, warm))
    return np.where(even.success & (rho < 1), even.x, 0.0)
