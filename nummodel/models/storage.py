"""The I/O path: devices and adapters, a RAM disk, and the processor that takes the interrupts.

A closed system of N outstanding requests (its queue depth) goes through stations, as in `networks`:

>>> from nummodel.models import networks
>>> path = [networks.queue(0.001), *devices(0.008, m=8)]  # an adapter and eight disks
>>> networks.solve(path, [1, 16, 64]).X.round(1)
array([111.1, 666.7, 888.9])

Depth, IOPS and latency are tied by Little's law, `operational.little_population`; the interrupts
that a processor can take before it is busy to rho are `operational.throughput_at`.
Times in seconds, rates per second, utilisations as fractions.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nummodel.arguments import LARGEST, aligned, continuous, count, feasible, indices, valid
from nummodel.formula import formula
from nummodel.models import _classes, networks
from nummodel.models.operational import (
    asymptotic_throughput_max,
    balanced_throughput_min,
    saturation,
)
from nummodel.models.queueing import while_stable

#: Devices, or processors that take interrupts.
MANY = 100_000
#: Nodes of a split RAM disk, and terms in which a grid of RAM disks is solved: some seconds.
NODES, TERMS = 64, 2 * networks.LARGEST

# --- devices ----------------------------------------------------------------------------------


def devices(S, m: int = 1, servers: int = 1) -> list[networks.Station]:
    """`m` equal devices, each request going to any of them alike, for a time `S` at one.

    Each has a queue of its own, so one may idle while another has a line: N requests get
    N/(N + m - 1) of what m devices can do. With one queue for all, or one that is never empty,
    they would get all of it.

    >>> networks.solve(devices(1.0, m=8), 8).X * 15  # 8/15 of 8
    64.0

    `servers` are what one device can do at a time (channels, actuators) from its one queue.
    Raises ValueError for a time that is negative and for fewer than one device or server.
    """
    m = count("m", m, most=MANY)
    each = valid({"S": S})["S"]
    if each.ndim > 1:
        raise ValueError(f"S is {S!r}, expected a number, or a list of one per class")
    return [networks.queue(each / m, servers)] * m


def saturation_depth(stations: Sequence[networks.Station], Z=0.0) -> Any:
    """Queue depth beyond which a request must wait somewhere, whatever the order.

    With m disks and nothing else it is m. Delays count as time only.

    >>> saturation_depth(devices(0.008, m=8)), saturation_depth(devices(0.008, m=8), Z=0.008)
    (8.0, 16.0)
    >>> saturation_depth([networks.queue(0.001), *devices(0.008, m=8)])  # either limits
    9.0

    Raises ValueError for no stations and for several classes.
    """
    some = isinstance(stations, Sequence) and len(stations) > 0
    if not some or not all(isinstance(s, networks.Station) and not np.ndim(s.D) for s in stations):
        raise ValueError("stations: expected at least one, with one D each")
    widest = [0.0 if s.capacity is None else s.D / s.capacity.max() for s in stations]
    D, Z = sum(s.D for s in stations), valid({"Z": Z})["Z"]
    if (D + Z == 0).any():
        raise ValueError("stations have no demand and Z is 0: nothing takes any time")
    return saturation.unchecked(D=D, D_max=max(widest), Z=Z)


def iops(N, R, X_max) -> tuple[Any, Any]:
    """IOPS of a drive with N requests outstanding: the lowest and the highest, from two numbers.

    `R` is the latency of one request alone and `X_max` the most IOPS. The highest is that of a
    drive any part of which can serve any request, the lowest that of R X_max `devices`, each
    request needing one of them, for exponential times and parts that are not slower when crowded.
    Latency is N over it. They agree at both ends, and differ by nearly two at the knee, R X_max.

    >>> iops(N=[1, 40, 4000], R=80e-6, X_max=500e3)
    (array([ 12500.        , 253164.5..., 495172.0...]), array([ 12500., 500000., 500000.]))

    Raises ValueError for no requests and where X_max is less than what one alone gets, 1/R.
    """
    given = valid({"N": N, "R": R, "X_max": X_max})
    if (given["N"] < 1).any():
        raise ValueError(f"N is {N}, expected at least one request outstanding")
    if (given["R"] * given["X_max"] < 1 - 1e-9).any():
        raise ValueError(f"X_max is {X_max}, expected at least 1/R: what one request alone gets")
    drive = {"N": given["N"], "D": given["R"], "D_max": 1 / given["X_max"], "Z": 0.0}
    return balanced_throughput_min(**drive), asymptotic_throughput_max(**drive)


#: Steps to the mean hold of the home disk's lock, which depends on who uses it how often.
STEPS = 8

# --- RAM disk ---------------------------------------------------------------------------------


class Requests(NamedTuple):
    """`X` requests per second, `R` seconds each, `rho` the home disk's lock in use."""

    X: Any
    R: Any
    rho: Any


@formula("f_remote", continuous)
def ramdisk_remote(nodes, r):
    """Share of the requests that copy across nodes, processors being spread over them evenly.

    One RAM disk on one of q nodes: all but 1/q of the requests. A share `r` of them, for data
    that are only read and so can have a copy on each node, stays at home when it has one.

    >>> ramdisk_remote(nodes=[1, 3, 4], r=0.0)
    array([0.        , 0.66666667, 0.75      ])
    >>> ramdisk_remote(nodes=3, r=[0.5, 1.0])
    array([0.33333333, 0.        ])
    """
    return (1 - r) * (1 - 1 / nodes)


def ramdisk(N, Z, S, t_local, t_remote, nodes=1, r=0.0, held=1.0) -> Requests:
    """N processors, spread over `nodes` as evenly as can be, that use RAM disks every `Z`.

    A request holds the driver's lock of its disk for `S`; the processor that asked copies the
    block, in `t_local` from the memory of its own node or `t_remote` from another's, a share `held`
    of that under the lock as well. Data that are written lie on the home node's disk; a share `r`
    of the requests is for data that are only read, of which each node has a disk of its own. r = 0
    is one disk for everything.

    One disk whose lock is held throughout is one server, and more nodes only make it slower:

    >>> one = ramdisk(N=12, Z=0.0, S=1.0, t_local=1.0, t_remote=4.0, nodes=[1, 3])
    >>> one.X.round(3), one.rho
    (array([0.5 , 0.25]), array([1., 1.]))

    All of it replicated is a machine for each node:

    >>> ramdisk(N=12, Z=9.0, S=1.0, t_local=1.0, t_remote=4.0, nodes=3, r=1.0).X
    0.9649...
    >>> 3 * ramdisk(N=4, Z=9.0, S=1.0, t_local=1.0, t_remote=4.0).X
    0.9649...

    Arrays of any broadcastable shape. A closed network with a class for each node, solved by
    `networks.solve`: exact for exponential locks if no copy is held or none crosses. Otherwise each
    use of the home disk's lock counts as their mean; X is then within 2 % of a simulation where a
    copy across takes four times as long. Split over eight nodes of four it takes a second; from
    nine on it is approximate, as `networks.solve` says.
    """
    names = ("N", "Z", "S", "t_local", "t_remote", "nodes", "r", "held")
    given = valid(dict(zip(names, (N, Z, S, t_local, t_remote, nodes, r, held), strict=True)))
    shape = aligned(given)
    cycle = sum(given[name] for name in ("Z", "S", "t_local", "t_remote"))
    if (cycle >= LARGEST).any():
        raise ValueError(
            f"Z + S + t_local + t_remote is {cycle.max():g}, expected less than {LARGEST:g}"
        )
    points = np.stack([part.ravel() for part in np.broadcast_arrays(*given.values())], axis=-1)
    spread = [_spread(int(N), int(q), r) for N, q, r in points[:, [0, 5, 6]]]
    sizes = (min(_classes.terms(p, len(p)), networks.LARGEST) for p in spread)
    terms = sum(max(TERMS // 2000, some) for some in sizes)
    feasible("terms of all systems asked for", terms, TERMS, "fewer at a time, or smaller N")
    each = [_ramdisk(there, *point) for there, point in zip(spread, points.tolist(), strict=True)]
    X, R, rho = np.array(each).reshape(*shape, 3).transpose(-1, *range(len(shape)))
    return Requests(*(v if shape else float(v) for v in (X, R, rho)))


def _spread(N: int, nodes: int, r: float) -> list[int]:
    """Processors on each node, the home node first, but for nodes that have none."""
    nodes = max(1, min(nodes, N))
    home = -(-N // nodes)
    if not r:  # away from the only disk all nodes are alike
        return [home, N - home]
    feasible("nodes", nodes, NODES, "a class of requests for each")
    return [(N + nodes - 1 - i) // nodes for i in range(nodes)]


def _ramdisk(there, N, Z, S, t_local, t_remote, _nodes, r, held) -> tuple[float, float, float]:
    """`ramdisk` at one point."""
    if not N:
        return 0.0, np.nan, 0.0
    q = len(there)
    at_home = np.arange(q) == 0
    copy = np.where(at_home, t_local, t_remote)  # from or to the home disk, by node that asks
    visits = (1 - r) + r * at_home  # of the home disk
    copying = (1 - held) * (r * t_local + (1 - r) * copy)
    demand, X = np.diag(np.full(q, r * (S + held * t_local))), np.array(there, dtype=float)
    for way in [networks.schweitzer] * STEPS + [networks.solve]:
        demand[0] = visits * np.average(S + held * copy, weights=X * visits)
        solved = way([networks.queue(D) for D in demand], tuple(there), Z + copying)
        X = solved.X
    R = np.average((copying + solved.R)[X > 0], weights=X[X > 0])
    return float(X.sum()), float(R), float(solved.rho[0].sum())


# --- interrupts -------------------------------------------------------------------------------


def interrupt_load(X, S, cpu: Sequence[int], c: int) -> np.ndarray:
    """Share of each of `c` processors that interrupts take: adapter i interrupts `cpu[i]`.

    `X` are the adapters' interrupts per second and `S` the seconds that one takes, a number or one
    per adapter. Without a choice all go to processor 0; with a preferred CPU per adapter they do
    not. Above 1 the rates cannot be had.

    >>> interrupt_load(X=[8e3, 8e3, 4e3], S=25e-6, cpu=[0, 0, 0], c=4)
    array([0.5, 0. , 0. , 0. ])
    >>> interrupt_load(X=[8e3, 8e3, 4e3], S=25e-6, cpu=[1, 2, 3], c=4)
    array([0. , 0.2, 0.2, 0.1])

    Raises ValueError for a processor that is none of 0 to c - 1, and for lists of unequal length.
    """
    c = count("c", c, most=MANY)
    arrays = valid({"X": X, "S": S}) | {"cpu": indices("cpu", cpu, c, "processors")}
    aligned(arrays)
    rates, seconds, at = np.broadcast_arrays(*arrays.values())
    return np.bincount(at.ravel(), (rates * seconds).ravel(), minlength=c)


@formula("R", valid)
def interrupted_response(D, rho):
    """Mean time in which a processor does work of `D`, interrupts taking a share `rho` of it.

    Interrupts come first and at random, and pass the time of the work on: D/(1 - rho). A program
    that waits for its slowest part pays this as a whole, not only on one processor of many.

    >>> interrupted_response(D=1.0, rho=[0.0, 0.5, 1.0])
    array([ 1.,  2., inf])
    """
    return while_stable(rho, D / (1 - rho))


def unused_cycles(interrupt, mp_synch, busy):
    """Whether the processors that take the interrupts should run clients as well: true or false.

    The rule for CPUs 0-3 of an AlphaServer GS (Covert 2002, slide 26): yes if less than 50 % of
    their time is interrupt stack and MP synchronization, and CPUs 1-3 are less than 75 % busy
    overall. Shares of time, the last axis being the processors from CPU 0 on; taken together, as
    MONITOR MODES /CPU=(0,1,2,3) shows them.

    >>> unused_cycles(interrupt=[0.3, 0.4, 0.4, 0.2], mp_synch=0.1, busy=[0.9, 0.6, 0.6, 0.9])
    True
    >>> unused_cycles(interrupt=[0.3, 0.4, 0.4, 0.2], mp_synch=0.2, busy=0.6)
    False

    Raises ValueError where interrupts and synchronization take more than all of the time.
    """
    given = valid({"interrupt": interrupt, "mp_synch": mp_synch, "busy": busy})
    each = given | {"CPUs 0-3": np.empty(4)}  # one figure is that of each
    aligned(each)
    each = np.broadcast_arrays(*each.values())
    waiting, busy_others = each[0] + each[1], each[2][..., 1:]
    if (waiting > 1 + 1e-9).any():
        raise ValueError(f"interrupt + mp_synch is {waiting.max():g}, expected at most 1")
    answer = (waiting.mean(-1) < 0.50) & (busy_others.mean(-1) < 0.75)
    return answer if answer.ndim else bool(answer)
