"""The I/O path: devices and adapters, and RAM disks.

A closed system of N outstanding requests (its queue depth) goes through stations, as in `networks`:

>>> from nummodel.models import networks
>>> path = [networks.queue(0.001), *devices(0.008, m=8)]  # an adapter and eight disks
>>> networks.solve(path, [1, 16, 64]).X.round(1)
array([111.1, 666.7, 888.9])

Little's law, `operational.little_population`, relates depth, IOPS and latency. A request must wait
somewhere from a depth of `operational.saturation` on. For a drive of which only the latency of one
request alone, D, and the most IOPS, 1/D_max, are known, `operational.asymptotic_throughput_max` are
the IOPS if any part can serve any request. `operational.balanced_throughput_min` are those of
D/D_max `devices`, the least if each request needs one particular device, service times are
exponential, and crowding makes no device slower. The two differ most, by nearly a factor of two, at
N = D/D_max.

Times are in seconds, rates per second, utilisations are fractions.
"""

import numpy as np

from nummodel.arguments import LARGEST, checked, count, feasible, within
from nummodel.models import networks

#: Most devices.
MANY = 100_000
#: Most nodes of a split RAM disk, and most terms of a grid of RAM disks: some seconds of work.
NODES, TERMS = 64, 2 * networks.LARGEST
#: Steps to the mean hold of the home disk's lock, which depends on how often each node uses it.
STEPS = 8


def devices(S, m: int = 1) -> list[networks.Station]:
    """`m` equal devices, each request going to any of them alike, for a time `S` at one.

    Each device has a queue of its own, so that one may idle while requests wait at another: N
    requests get N/(N + m - 1) of the throughput of m devices that are always busy.

    >>> networks.solve(devices(1.0, m=8), 8).X * 15  # 8/15 of 8
    64.0

    `S` is a number, or a list of one per class.
    """
    m, S = count("m", m, most=MANY), within("S", S, 0, ndim=(0, 1))
    return [networks.queue(S / m)] * m


@checked
def ramdisk(N, Z, S, t_local, t_remote, nodes=1, r=0.0, held=1.0):
    """Requests per second of N processors on `nodes`, as evenly as can be, that think for `Z`.

    A request holds the driver's lock of its disk for `S`. Then the processor copies the block, in
    `t_local` from the memory of its own node or `t_remote` from that of another, and keeps the lock
    for a share `held` of the copy. A share `r` of the requests is for data that are only read: each
    node has a disk of its own with a copy of them. All other data lie on the disk of the home node.

    One disk whose lock is held throughout is one server, and more nodes only make it slower:

    >>> ramdisk(N=12, Z=0.0, S=1.0, t_local=1.0, t_remote=4.0, nodes=[1, 3]).round(3)
    array([0.5 , 0.25])

    This is a closed network with a class for each node, solved by `networks.solve`: exact for
    exponential locks if no copy holds the lock or none crosses. Otherwise all uses of the home
    disk's lock count as their mean, and X is within 2 % of a simulation where a copy across takes
    four times as long. Eight nodes of four processors take a second; more nodes are approximate.
    """
    within("Z + S + t_local + t_remote", Z + S + t_local + t_remote, 0, LARGEST / 2)
    points = zip(*map(np.ravel, np.broadcast_arrays(N, nodes, r)), strict=True)
    spread = [_spread(int(n), int(q), one) for n, q, one in points]
    sizes = (min(networks._terms(p, len(p)), networks.LARGEST) for p in spread)
    terms = sum(max(TERMS // 2000, some) for some in sizes)
    feasible("terms of all systems asked for", terms, TERMS, "fewer at a time, or smaller N")
    each = np.vectorize(_ramdisk, otypes=[float])
    return each(N, Z, S, t_local, t_remote, nodes, r, held)[()]


def _spread(N: int, nodes: int, r: float) -> list[int]:
    """Processors on each node that has any, the home node first."""
    nodes = max(1, min(nodes, N))
    home = -(-N // nodes)
    if not r:  # all nodes without the only disk are alike
        return [home, N - home]
    feasible("nodes", nodes, NODES, "a class of requests for each")
    return [(N + nodes - 1 - i) // nodes for i in range(nodes)]


def _ramdisk(N, Z, S, t_local, t_remote, nodes, r, held) -> float:
    """`ramdisk` at one point: a class for each node with processors, a station for each disk."""
    if not N:
        return 0.0
    there = _spread(int(N), int(nodes), r)
    at_home = np.arange(len(there)) == 0
    copy = np.where(at_home, t_local, t_remote)  # from or to the home disk, for each node
    visits = (1 - r) + r * at_home  # of the home disk
    away = Z + (1 - held) * (r * t_local + (1 - r) * copy)
    demand = np.diag(np.full(len(there), r * (S + held * t_local)))
    X = np.array(there, dtype=float)
    for solver in [networks.schweitzer] * STEPS + [networks.solve]:
        demand[0] = visits * np.average(S + held * copy, weights=X * visits)
        X = solver([networks.queue(D) for D in demand], tuple(there), away).X
    return float(X.sum())
