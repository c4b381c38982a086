"""Memory under load: what three figures of a machine tell, and nodes that load one another.

`loaded_range` gives the latency at any bandwidth from three figures of a machine: the idle latency,
the greatest bandwidth, and one point between them. The law is `numa.loaded_latency`. Three of its
quantities are unknown, and one point does not determine them: at half or two thirds of the greatest
bandwidth, machines are alike whose latencies differ by a factor of two when memory is full. What
the point leaves open is taken from nine machines whose curves were published. Each of them
predicted from the other eight and a point near 70 %, the mean error is 10 % and the worst 100 %;
with the delay of this point, 6.5 % and 48 %. If the one point is the latency at the greatest
bandwidth, it is 3.3 % and 14 % (`benchmarks/MEMORY.md`).

`memories` makes the stations of a closed network from a placement of data: nodes that read from the
same memory wait for one another.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nummodel.arguments import aligned, continuous, count, ordered, within
from nummodel.models import networks, numa

#: Standard deviation of ln R of a measured point around the law.
NOISE = 0.03


class Population(NamedTuple):
    """What machines are like.

    `mean` and `covariance` are those of the logarithms of three figures of `_law`. `places` has
    the mean and the standard deviation of ln(lines under way in a full memory/(lines read per ns *
    delay in cycles)), where the lines per ns and the delay are those of a point of medium load.
    """

    mean: np.ndarray
    covariance: np.ndarray
    places: tuple[float, float]


#: The nine machines of the tables loaded-latency*; `make memory` computes these figures.
MACHINES = Population(
    np.array([-1.2524, -2.3572, 0.0594]),
    np.array([[0.302, -0.2017, 0.0273], [-0.2017, 0.3893, -0.1414], [0.0273, -0.1414, 0.5678]]),
    (0.736, 0.314),
)
#: Standard deviations on either side of the middle that hold 95 %; from `make memory`, too.
WIDTH = 2.37


class Latency(NamedTuple):
    """Latency of a read [s]: the middle, and the ends of an interval that ought to hold 95 %."""

    middle: Any
    low: Any
    high: Any


def loaded_range(B, R0, B_max, B_mid, R_mid, delay=None) -> Latency:
    """Latency of a read at bandwidth `B` [bytes/s], a number or an array, from three figures.

    `R0` is the latency of idle memory [s], `B_max` the greatest bandwidth that was measured, and
    `R_mid` the latency at the bandwidth `B_mid`; both may be arrays of several points. One at
    `B_max` itself tells most. `delay` is the pause between two reads of a thread at a single point
    [clock cycles], as Intel's Memory Latency Checker prints it. The reads in a second times the
    pause say how many threads read, and a full memory is a closed system: the more threads, the
    more lines are under way, and the longer a read takes.

    >>> machine = {"R0": 78e-9, "B_max": 226e9, "B_mid": 134e9, "R_mid": 103e-9}
    >>> [f"{1e9 * R:.0f} ns" for R in loaded_range(226e9, **machine)]
    ['186 ns', '82 ns', '421 ns']
    >>> [f"{1e9 * R:.0f} ns" for R in loaded_range(226e9, **machine, delay=300)]
    ['295 ns', '157 ns', '553 ns']

    With a second point, at the greatest bandwidth:

    >>> machine |= {"B_mid": [134e9, 226e9], "R_mid": [103e-9, 261e-9]}
    >>> [f"{1e9 * R:.0f} ns" for R in loaded_range(196e9, **machine)]
    ['133 ns', '112 ns', '158 ns']

    If more threads read than memory can serve, bandwidth may fall: then the law has the latency of
    the rising branch only. Raises ValueError for a bandwidth above `B_max`, a point that is faster
    than idle memory, a delay below 1, and a delay with several points.
    """
    given = continuous({"B": B, "B_max": B_max})
    figures = {"R0": R0, "B_max": B_max, "B_mid": B_mid, "R_mid": R_mid}
    dims = {"R0": (0,), "B_max": (0,)}
    of = {n: within(n, v, 1e-30, 1e30, ndim=dims.get(n, (0, 1))) for n, v in figures.items()}
    aligned(of)
    ordered(of, "R0", "R_mid")
    ordered(of, "B_mid", "B_max")
    ordered(given, "B", "B_max")
    places = None
    if delay is not None:
        pause = within("delay", delay, 1, 1e9, ndim=(0,))
        reads = of["B_mid"] / numa.LINE - 1 / of["R_mid"]  # the measuring thread does not pause
        if reads.size > 1:
            raise ValueError(f"delay is {delay}, expected one point, not {reads.size}")
        if reads <= 0:
            raise ValueError(f"B_mid is {B_mid}, expected more than one read in R_mid, {R_mid} s")
        places = float(reads * pause * numa.LINE / (of["B_max"] * of["R0"] * 1e9))
    u, u_mid = (np.minimum(b / of["B_max"], 1.0) for b in (given["B"], of["B_mid"]))
    logs, covariance = _posterior(_law, MACHINES, u_mid, of["R_mid"] / of["R0"], places)
    middle, deviation = _predicted(_law, logs, covariance, u)
    R, spread = of["R0"] * np.exp(middle), np.exp(WIDTH * deviation)
    return Latency(*(v if np.ndim(v) else float(v) for v in (R, R / spread, R * spread)))


def _law(u, figures):
    """`numa.loaded_latency` over idle latency, at a share `u` of the greatest bandwidth.

    `figures` are logarithms of three times over the idle latency: that of rows, that in which a
    channel passes a line, and the wait for channels in a full memory.
    """
    row, line, wait = np.exp(figures)
    lines = (1 + row + wait) / numa.LINE
    return numa.loaded_latency.unchecked(
        B=u, R0=1.0, t_row=row, channels=line / numa.LINE, B_max=1.0, lines=lines
    )


def _posterior(law: Callable, machines: Population, u, r, places=None):
    """Figures of `law`, their logarithms, and the covariance of these, of one of `machines`.

    At the shares `u` of the greatest bandwidth the latencies over idle latency are `r`; `places` is
    the latency of a full memory over idle latency where `machines.places` has the mean 0. Normal
    errors of logarithms; the figures are those of the highest posterior density, the covariance is
    that of the law's tangent there. So a deviation may be 1.7 times too large; the intervals, whose
    width is calibrated, hold as many measurements as they should on average over the nine machines.
    """
    from scipy.optimize import least_squares

    u, r = np.atleast_1d(u), np.log(np.atleast_1d(r))
    whitened = np.linalg.inv(np.linalg.cholesky(machines.covariance))

    def residuals(figures):
        errors = [(np.log(law(u, figures)) - r) / NOISE, whitened @ (figures - machines.mean)]
        if places is not None:
            mean, deviation = machines.places
            full = np.log(law(np.ones(1), figures))
            errors.append((full - np.log(places) - mean) / deviation)
        return np.concatenate(errors)

    found = least_squares(residuals, machines.mean)
    return found.x, np.linalg.inv(found.jac.T @ found.jac)


def _predicted(law: Callable, figures, covariance, u):
    """Logarithm of latency over idle latency at `u`, and its standard deviation with `NOISE`."""
    steps = 1e-4 * np.eye(len(figures))
    slopes = np.stack([(np.log(law(u, figures + h) / law(u, figures - h))) / 2e-4 for h in steps])
    variance = np.einsum("i...,ij,j...->...", slopes, covariance, slopes) + NOISE**2
    return np.log(law(u, figures)), np.sqrt(variance)


# --- nodes that load one another ---------------------------------------------------------------


def memories(
    access, copies, latency, B_max, channels: int = 1, B_link=None
) -> list[networks.Station]:
    """Stations of a closed network whose classes are nodes and whose customers are reads.

    `access` and `copies` are those of `numa.mix`, `latency[i, k]` is the idle latency of a read by
    node i from the memory of node k [s], and `B_max` the greatest bandwidth of a node's memory
    [bytes/s], of `channels` channels that are used alike. A read takes its idle latency, in which a
    channel passes the line, and waits before for its turn at the channel. `networks.schweitzer`
    and, with few reads, `networks.solve` tell throughput and latency of each node from the numbers
    of reads that a node has under way.

    `B_link` is the bandwidth of the links between nodes [bytes/s]: one number, or a table whose row
    i and column k is the link that brings lines from the memory of node k to node i; its diagonal
    does not count. Each direction is a link of its own, a queue like a channel. Without `B_link`
    links are never full.

    Two nodes with 40 reads each. If all data are on the first, its memory limits both, unless a
    link is narrower:

    >>> latency = 1e-9 * np.array([[78.0, 143.0], [144.0, 78.0]])
    >>> for placed, B_link in ((numa.striped(2), None), (numa.striped(2, over=[0]), None),
    ...                        (numa.striped(2, over=[0]), 5e9)):
    ...     stations = memories(np.ones((2, 1)), [placed], latency, B_max=20e9, B_link=B_link)
    ...     print((1e9 * networks.solve(stations, (40, 40)).R).round())
    [137. 138.]
    [227. 294.]
    [171. 512.]

    Raises ValueError as `numa.mix` does, and for a latency that is less than the time of a line, in
    the memory and on the link.
    """
    shares, m = numa.paths(access, copies), count("channels", channels)
    t = within("latency", latency, 0, ndim=(2,))
    if t.shape != shares.shape or not shares.any(1).all():
        raise ValueError(
            f"latency has the shape {t.shape}, expected {len(shares)} x {len(shares)}; and access "
            f"is {access}, expected one figure above 0 for each node"
        )
    S = m * numa.LINE / float(within("B_max", B_max, 1e-30, 1e30, ndim=(0,)))
    link = _link_times(B_link, t.shape)
    way = t - S - link
    if way.min() < 0:
        raise ValueError(
            f"latency is {t.flat[way.argmin()]:g}, expected at least the time of a line, "
            f"{(t - way).flat[way.argmin()]:g}"
        )
    shares = shares / shares.sum(1, keepdims=True)
    idle = networks.delay((shares * way).sum(1))
    channel = [networks.queue(to / m * S) for to in shares.T for _ in range(m)]
    nodes, D = np.eye(len(t)), shares * link
    return [idle, *channel, *(networks.queue(nodes[i] * D[i, k]) for i, k in np.argwhere(D > 0))]


def _link_times(B_link, shape) -> np.ndarray:
    """Time in which a link passes a line [s]; 0 inside a node, and if links are never full."""
    if B_link is None:
        return np.zeros(shape)
    if np.shape(B_link) not in ((), shape):
        found = f"{np.shape(B_link)}, expected {shape[0]} x {shape[1]}"
        raise ValueError(f"B_link has the shape {found}")
    # Whatever stands on the diagonal, as 0, inf or nan for a node that needs no link to itself.
    B = np.where(np.eye(*shape), 1.0, B_link) if np.ndim(B_link) else B_link
    return (1 - np.eye(*shape)) * numa.LINE / within("B_link", B, 1e-30, 1e30, ndim=(0, 2))
