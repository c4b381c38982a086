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
from typing import Any, NamedTuple

import numpy as np

from nummodel import queueing
from nummodel.arguments import continuous, station, valid
from nummodel.formula import formula

#: Bytes that one access to memory moves: a cache line.
LINE = 64


class Topology(NamedTuple):
    """`nodes` with `cpus` processors each, and latencies: the remote one may be (least, most)."""

    nodes: int
    cpus: int
    t_local: float = 1.0
    t_remote: Any = (1.0, 3.0)

    def latency(self, f_remote):
        """Mean latency if `f_remote` of the accesses are remote; least and most on the last axis if
        `t_remote` is a pair.

        >>> GS160.latency(0.75)
        array([1. , 2.5])
        """
        share = np.asarray(f_remote, dtype=float)
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
    where = list(range(nodes)) if over is None else list(over)
    if not where or not set(where) <= set(range(nodes)):
        raise ValueError(f"over is {over}, expected nodes from 0 to {nodes - 1}")
    row = np.zeros(nodes)
    row[where] = 1 / len(set(where))
    return row


def replicated(nodes: int) -> np.ndarray:
    """One item, which nobody writes, with a copy on every node."""
    return np.ones(nodes)


def partitioned(nodes: int) -> np.ndarray:
    """As many items as nodes, each on its own: one row an item."""
    return np.eye(nodes)


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
    A, P = (np.asarray(v, dtype=float) for v in (access, copies))
    if A.ndim != 2 or P.ndim != 2 or A.shape != P.T.shape:
        raise ValueError(
            f"copies has the shape {P.shape} and access {A.shape}, expected items x nodes and "
            "nodes x items"
        )
    if not (np.isfinite(A) & (A >= 0)).all() or not A.any():
        raise ValueError(f"access is {A.tolist()}, expected figures of at least 0, and one above")
    if not ((P >= 0) & (P <= 1)).all() or not (P.sum(1) >= 1 - 1e-9).all():
        raise ValueError(f"copies is {P.tolist()}, expected shares that add up to 1 or more")
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

    Three things happen as it fills. Other traffic closes the row that a read would have found open,
    in proportion to the load: `t_row` at full bandwidth. Reads queue at one of `channels` channels,
    each of which passes a line in channels * 64 bytes/B_max: M/M/1. And processors have no more
    than `lines` reads under way, so that a full memory is a closed system: lines * 64 bytes/B by
    Little's law, however much is asked for.

    >>> machine = {"t_row": 35e-9, "channels": 12, "B_max": 226e9, "lines": 930}
    >>> (1e9 * loaded_latency(B=[1e6, 113e9, 226e9], R0=78e-9, **machine)).round(1)
    array([ 78. ,  98.9, 263.4])

    `fit.fit(loaded_latency, table, "log", R0=..., channels=...)` estimates the rest from columns B
    and R. Near B_max the curve is nearly vertical: what a read takes there, between the queue and
    the closed system, is known from the load on offer, not from the bandwidth.
    """
    import sympy as sp

    queue = R0 + t_row * B / B_max + channels * LINE * B / B_max / (B_max - B)
    closed = lines * LINE / B
    least = sp.Piecewise((queue, queue < closed), (closed, True))
    return sp.Piecewise((least, B < B_max), (closed, True))


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
