"""Nodes that load one another: the stations of a closed network, from a placement of data."""

from nummodel.arguments import count, within
from nummodel.models import networks, numa


def memories(access, copies, latency, B_max, channels: int = 1) -> list[networks.Station]:
    """Stations of a closed network whose classes are nodes and whose customers are reads.

    `access` and `copies` are those of `numa.mix`, `latency[i, k]` is the idle latency of a read by
    node i from the memory of node k [s], and `B_max` the greatest bandwidth of a node's memory
    [bytes/s], of `channels` channels that are used alike. A read takes its idle latency, in which a
    channel passes the line, and waits before for its turn at the channel. Links between nodes are
    never full. `networks.schweitzer` and, with few reads, `networks.solve` tell throughput and
    latency of each node from the numbers of reads that a node has under way.

    Two nodes with 40 reads each. If all data are on the first, its memory limits both:

    >>> import numpy as np
    >>> latency = 1e-9 * np.array([[78.0, 143.0], [144.0, 78.0]])
    >>> for placed in (numa.striped(2), numa.striped(2, over=[0])):
    ...     stations = memories(np.ones((2, 1)), [placed], latency, B_max=20e9)
    ...     print((1e9 * networks.solve(stations, (40, 40)).R).round())
    [137. 138.]
    [227. 294.]

    Raises ValueError as `numa.mix` does, and for a latency that is less than the time of a line.
    """
    shares, m = numa.paths(access, copies), count("channels", channels)
    t = within("latency", latency, 0, ndim=(2,))
    if t.shape != shares.shape or not shares.any(1).all():
        raise ValueError(
            f"latency has the shape {t.shape}, expected {len(shares)} x {len(shares)}; and access "
            f"is {access}, expected one figure above 0 for each node"
        )
    S = m * numa.LINE / float(within("B_max", B_max, 1e-30, 1e30, ndim=(0,)))
    within("latency", t, S)
    shares = shares / shares.sum(1, keepdims=True)
    channel = [networks.queue(to / m * S) for to in shares.T for _ in range(m)]
    return [networks.delay((shares * (t - S)).sum(1)), *channel]
