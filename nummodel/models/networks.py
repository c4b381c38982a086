"""Closed and open networks of queues: exact where that is possible, and said where it is not.

A network is a list of stations that every customer (thread, transaction) visits. `queue`, `delay`
and `load_dependent` make stations, `solve` finds what a closed network does with N customers who
think for Z seconds between transactions, `open_network` what an open one does with arrivals at
Poisson rate lamda. Demands `D` are seconds of service per transaction. The assumptions are those of
the product form (Baskett, Chandy, Muntz and Palacios 1975): a queue is first come first served with
exponential service, the same for all classes per visit, or it is shared equally, and then service
may be distributed in any way and differ by class.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from nummodel.arguments import LARGEST as HIGHEST
from nummodel.arguments import count, numbers, valid
from nummodel.models import _classes, _convolution

#: Several classes are solved exactly up to this many terms, some seconds of work.
LARGEST = 300_000_000
#: Most customers, or servers of a station.
MANY = 10_000_000
#: A demand that is smaller than this times the largest holds nobody up.
NEGLIGIBLE = 1e-200


@dataclass(frozen=True, eq=False)
class Station:
    """Demand, one per class if there are several, and capacity with 1, 2, .. customers present,
    the last one holding from there on; no capacity: everyone is served at once.
    """

    D: Any
    capacity: np.ndarray | None


@dataclass(frozen=True)
class Solution:
    """What a network does. Arrays over populations (one class), or over classes.

    `X` throughput, `R` response time (all stations, without thinking), `R_k`, `Q` and `rho` of
    every station: residence time per transaction, mean number present, and the mean share of the
    station's highest capacity that is in use, which for `c` servers is the utilisation of each
    (0 for a delay). Stations come first: `Q[k]` belongs to `stations[k]`. With no customers X is 0
    and R is nan. `exact` is False for Schweitzer's approximation.
    """

    X: Any
    R: Any
    R_k: np.ndarray
    Q: np.ndarray
    rho: np.ndarray
    exact: bool = True

    def _repr_html_(self) -> str:
        """In a notebook: the stations, for the last population or class, and the fullest one."""
        import pandas as pd

        parts = {"R_k": self.R_k, "Q": self.Q, "rho": self.rho}
        last = {n: part.reshape(len(part), -1)[:, -1] for n, part in parts.items()}
        frame = pd.DataFrame(last).rename_axis("station")
        X, R = (np.atleast_1d(v)[-1] for v in (self.X, self.R))
        said = f"X = {X:.4g}, R = {R:.4g}; fullest: station {frame['rho'].idxmax()}"
        said += "" if self.exact else "; not exact: Schweitzer's approximation"
        return f"{frame.to_html(float_format='{:.4g}'.format)}<p>{said}</p>"


def queue(D, servers: int = 1) -> Station:
    """A queue in front of `servers` equal servers; `D` is a demand [s], or one per class.

    Raises ValueError for a demand that is negative or not finite, and for fewer than one server.
    """
    return Station(_demands(D), np.arange(1.0, count("servers", servers, most=MANY) + 1))


def delay(D) -> Station:
    """Service without queueing, as if there were a server for everyone; `D` as in `queue`."""
    return Station(_demands(D), None)


def load_dependent(D, capacity: Sequence[float]) -> Station:
    """A queue whose speed depends on how many are there.

    `capacity[n - 1]` is the speed with n present, relative to the one at which `D` was measured;
    the last one holds from there on. It may rise, fall or do both.

    >>> c = load_dependent(1.0, [1, 2, 3])  # the same as queue(1.0, servers=3)
    >>> solve([c], 10, Z=2.0).X == solve([queue(1.0, servers=3)], 10, Z=2.0).X
    True

    Raises ValueError for a capacity that is not positive and finite.
    """
    values = numbers("capacity", capacity)
    good = (values >= 1 / HIGHEST) & (values <= HIGHEST)
    if values.ndim != 1 or not 1 <= len(values) <= MANY or not good.all():
        raise ValueError(f"capacity is {capacity}, expected positive numbers, one per customer")
    held = np.flatnonzero(values != values[-1])
    return Station(_demands(D), values[: held[-1] + 2 if len(held) else 1])


@np.errstate(all="ignore")
def solve(stations: Sequence[Station], N, Z=0.0) -> Solution:
    """A closed network with N customers who think for `Z` seconds between transactions.

    One class (scalar demands): `N` is a population or an array of them, in any order; exact, by
    convolution of probabilities (see `convolution`).

    >>> cpu, disk = queue(1.0, servers=32), queue(0.04)
    >>> solve([cpu, disk], [1, 64, 1_000_000]).X.round(6)
    array([ 0.961538, 24.999743, 25.      ])

    One customer meets nobody: R is the sum of the demands. At any N, X (R + Z) = N.

    >>> one = solve([cpu, disk], 1, Z=3.0)
    >>> round(one.R, 12), round(one.X * (one.R + 3.0), 12)
    (1.04, 1.0)

    Several classes (a sequence of demands, one per class, in every station): `N` is a tuple of
    populations, `Z` a scalar or one per class; queues have one server. Exact by mean value analysis
    (Reiser and Lavenberg 1980), all populations of the same total in one step; beyond `LARGEST`
    terms `schweitzer` takes over, and `exact` is False.

    >>> three = [queue([0.1, 0.3]), queue([0.2, 0.05]), queue([0.05, 0.1])]
    >>> solve(three, (10, 15), Z=[1, 2]).X.round(6)
    array([3.178195, 2.273139])

    Raises ValueError, naming the argument, for what is no network or no population, and
    ArithmeticError rather than give a figure that fails its own check: numbers at the stations and
    thinking that do not add up to N, a throughput above a station's capacity, or throughputs of
    several classes that contradict those of one customer fewer. A ValueError that names N also
    refuses, before it begins, what would take longer than some seconds.
    """
    D, Z, several = _network(stations, Z)
    if several:
        each = _populations(N, len(Z))
        if _classes.terms(each, len(stations)) > LARGEST:
            return schweitzer(stations, N, Z)
        X, R_k = _classes.exact(D, _queues(stations), each, Z)
        return _solution(stations, D, each, Z, X, R_k, exact=True)
    counts = _counts(N)
    n = counts.ravel()
    alone = D / np.array([1.0 if s.capacity is None else s.capacity[0] for s in stations])
    longest = D / np.array([1.0 if s.capacity is None else s.capacity.min() for s in stations])
    held_up = _queues(stations) & (longest > NEGLIGIBLE * max(Z, longest.max()))
    busy = np.flatnonzero(held_up).tolist()
    waits = Z + D[~_queues(stations)].sum()
    X, Q = np.zeros(n.size), np.zeros((len(stations), n.size))
    some: Any = slice(None) if n.all() else n > 0
    if n.any():
        queues: Any = [(D[k], stations[k].capacity) for k in busy]
        X[some], numbers = _convolution.solve(queues, waits, n[some])
        for k, number in zip(busy, numbers, strict=True):
            Q[k, some] = number
    Q[~held_up] = np.multiply.outer(alone[~held_up], X)
    most = np.array([inf if s.capacity is None else s.capacity.max() for s in stations])
    rho = np.multiply.outer(D / most, X)
    _check(n, Q, X * Z, rho)
    R_k = Q / X

    def shaped(figure):
        return figure.reshape(figure.shape[:-1] + counts.shape)

    R = shaped(R_k.sum(0))
    return Solution(_plain(shaped(X)), _plain(R), shaped(R_k), shaped(Q), shaped(rho))


@np.errstate(all="ignore")
def schweitzer(stations: Sequence[Station], N: tuple[int, ...], Z=0.0) -> Solution:
    """Several classes, approximately: for any populations, mostly in a few hundred steps.

    One customer fewer is assumed to leave every queue shorter in proportion (Schweitzer 1979;
    Bard 1979), Q_j(N - 1_c) = Q_j(N) (1 - [j = c]/N_c). How far off that is, on random networks of
    two to four classes and up to five stations (`make networks`; median, 95 % and worst of 500; the
    worst of another 500 may be twice as bad; in the last row there are two classes):

    | customers | error of X | error of R |
    |---|---|---|
    | 2 to 5 | 3.1 %, 9.8 %, 15 % | 3.8 %, 12 %, 20 % |
    | 6 to 20 | 4.1 %, 9.5 %, 14 % | 5.1 %, 15 %, 23 % |
    | 21 to 60 | 1.9 %, 6.4 %, 9.7 % | 2.1 %, 9.9 %, 18 % |
    | 61 to 200 | 0.1 %, 2.4 %, 4.2 % | 0.1 %, 3.0 %, 12 % |

    With more customers it comes nearer. One customer meets nobody, and there it is exact:

    >>> schweitzer([queue([1.0]), queue([2.0])], (1,), Z=1.0).X.round(12)
    array([0.25])

    Raises ValueError as `solve` does, and ArithmeticError if 300,000 steps, or fewer of a large
    network, do not settle it: with very many customers and bottlenecks that are nearly alike.
    """
    D, Z, several = _network(stations, Z)
    if not several:
        raise ValueError("stations have one demand, expected a sequence of them, one per class")
    n = _populations(N, len(Z))
    X, R_k = _classes.schweitzer(D, _queues(stations), n, Z)
    return _solution(stations, D, n, Z, X, R_k, exact=False)


@np.errstate(all="ignore")
def open_network(stations: Sequence[Station], lamda) -> Solution:
    """An open network: arrivals at rate `lamda`, each visiting all stations.

    Stations behave as if each were alone (Jackson 1957). One class: `lamda` is a rate or an array
    of them. Several: one rate per class, and queues have one server. A station that cannot keep up
    with a queue of any length has infinite Q and R.

    >>> open_network([queue(0.1), queue(0.2, servers=2)], [5.0, 9.0, 10.0]).R.round(6)
    array([0.466667, 2.052632,      inf])
    """
    D, _, several = _network(stations, 1.0)
    rates = valid({"lamda": lamda})["lamda"]
    if several and rates.shape != D.shape[1:]:
        raise ValueError(f"lamda is {lamda}, expected {D.shape[1]} rates, one per class")
    R_k, rho = np.zeros((2, len(D), *rates.shape))
    for k, (d, station) in enumerate(zip(D, stations, strict=True)):
        load, stretch = rates * d, 1.0
        if station.capacity is not None:
            rho[k] = load / station.capacity.max()
            stretch = _stretch(load.sum() if several else load, station.capacity)
        np.multiply(d, stretch, where=d > 0, out=R_k[k, ...])
    Q = np.multiply(rates, R_k, where=rates > 0, out=np.zeros_like(R_k))
    return Solution(_plain(rates), _plain(R_k.sum(0)), R_k, Q, rho)


def _stretch(load, capacity: np.ndarray):
    """R/D of an open station, the sum of n w(n - 1)/capacity(n) over that of w(n): w(n) is the
    weight of n present.
    """
    load = np.asarray(load, dtype=float)
    result = np.full(load.shape, inf)
    ahead = np.arange(1, len(capacity))
    m, last = len(capacity) - 1, capacity[-1]
    for i, a in np.ndenumerate(load):
        if a < last:
            w, idle = _convolution.products(a / capacity[:-1]), (last - a) / last
            tail = w[m] * (m / idle + 1 / idle**2) / last
            result[i] = ((ahead / capacity[:-1]) @ w[:-1] + tail) / (w[:-1].sum() + w[m] / idle)
    return result


def _solution(stations, D, N, Z, X, R_k, exact: bool) -> Solution:
    """A solution in several classes, checked."""
    Q, rho = X * R_k, X * D * _queues(stations)[:, None]
    _check(np.asarray(N), Q, X * Z, rho.sum(1))
    R_k = np.where(X > 0, R_k, np.nan)
    return Solution(X, R_k.sum(0), R_k, Q, rho, exact)


def _queues(stations: Sequence[Station]) -> np.ndarray:
    """Which of the stations are no delays."""
    return np.array([s.capacity is not None for s in stations])


def _check(N, Q, thinking, rho) -> None:
    """Raise ArithmeticError for figures that contradict each other."""
    whole = np.abs(Q.sum(0) + thinking - N) <= 1e-9 * N  # and then everything is finite
    if not whole.all():
        raise ArithmeticError("the solution fails its check: numbers present do not add up to N")
    if rho.max() > 1 + 1e-9:
        raise ArithmeticError("the solution fails its check: X is above a station's capacity")


def _network(stations: Sequence[Station], Z) -> tuple[np.ndarray, Any, bool]:
    """Demands (stations first), think time, and whether there are several classes."""
    if not isinstance(stations, Sequence) or not all(isinstance(s, Station) for s in stations):
        raise ValueError("stations: expected a list of what queue, delay and load_dependent make")
    if not len(stations):
        raise ValueError("stations are none, expected at least one")
    shapes = {np.shape(s.D) for s in stations}
    if len(shapes) > 1:
        raise ValueError("stations differ in their number of classes: give each one D per class")
    D, think = np.array([s.D for s in stations]), valid({"Z": Z})["Z"]
    several = D.ndim == 2
    if think.ndim and think.shape != D.shape[1:]:
        raise ValueError(f"Z is {Z}, expected a number{', or one per class' if several else ''}")
    if not (D.sum(0) + think > 0).all():
        raise ValueError("stations have no demand and Z is 0: nothing takes any time")
    if several and any(s.capacity is not None and len(s.capacity) > 1 for s in stations):
        raise ValueError(
            "stations: with several classes a queue has one server, expected no servers > 1 and "
            "no load dependence"
        )
    return D, np.broadcast_to(think, D.shape[1:]) if several else float(think), several


def _demands(D) -> Any:
    values = valid({"D": D})["D"]
    if values.ndim > 1 or not values.size:
        raise ValueError(f"D is {D}, expected a demand, or a list of one per class")
    return values if values.ndim else float(values)


def _counts(N) -> np.ndarray:
    numbers = valid({"N": N})["N"]
    if not numbers.size or (numbers > MANY).any():
        raise ValueError(f"N is {N}, expected whole numbers from 0 to {MANY:,}")
    return numbers.astype(int)


def _populations(N, classes: int) -> list[int]:
    n = _counts(N)
    if n.shape != (classes,):
        raise ValueError(f"N is {N}, expected a tuple of {classes} populations, one per class")
    return n.tolist()


def _plain(values) -> Any:
    """A float for what is no array."""
    return float(values) if np.ndim(values) == 0 else values
