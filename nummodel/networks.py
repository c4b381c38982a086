"""Closed and open networks of queues: exact where that is possible, and said where it is not.

A network is a list of stations that every customer (thread, transaction) visits. `queue`, `delay`
and `load_dependent` make stations, `solve` finds what a closed network does with N customers who
think for Z seconds between transactions, `open_network` what an open one does with arrivals at
rate lamda. Demands `D` are seconds of service per transaction. Service is exponential or shared
equally (the assumptions of Baskett, Chandy, Muntz and Palacios 1975: the product form).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Any

import numpy as np

from nummodel import convolution

#: Several classes are solved exactly up to this many terms, some seconds of work.
LARGEST = 300_000_000


@dataclass(frozen=True)
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


def queue(D, servers: int = 1) -> Station:
    """A queue in front of `servers` equal servers; `D` is a demand [s], or one per class.

    Raises ValueError for a demand that is negative or not finite, and for fewer than one server.
    """
    if not _whole(servers) or servers < 1:
        raise ValueError(f"servers is {servers}, expected a whole number of at least 1")
    return Station(_demands(D), np.arange(1.0, int(servers) + 1))


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
    values = np.array(capacity, dtype=float)
    if values.ndim != 1 or not len(values) or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(f"capacity is {capacity}, expected positive numbers, one per customer")
    held = np.flatnonzero(values != values[-1])
    return Station(_demands(D), values[: held[-1] + 2 if len(held) else 1])


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
    thinking that do not add up to N, or a throughput above a station's capacity. Where the speed
    of a station collapses with thousands present, more than 100,000 customers are refused so, too.
    """
    D, Z, classes = _network(stations, Z)
    if classes:
        each = _populations(N, len(Z))
        small = _terms(each, len(stations)) <= LARGEST
        return _exact_classes(stations, D, each, Z) if small else schweitzer(stations, N, Z)
    counts = _counts(N)
    n = counts.ravel()
    busy = [k for k, s in enumerate(stations) if s.capacity is not None and D[k] > 0]
    waits = Z + sum(d for d, s in zip(D, stations, strict=True) if s.capacity is None)
    X, Q = np.zeros(n.size), np.zeros((len(stations), n.size))
    some: Any = slice(None) if n.all() else n > 0
    if n.any():
        queues: Any = [(D[k], stations[k].capacity) for k in busy]
        X[some], numbers = convolution.solve(queues, waits, n[some])
        for k, number in zip(busy, numbers, strict=True):
            Q[k, some] = number
    for k, station in enumerate(stations):
        if station.capacity is None:
            Q[k] = X * D[k]
    most = np.array([inf if s.capacity is None else s.capacity.max() for s in stations])
    rho = np.multiply.outer(D / most, X)
    _check(n, Q, X * Z, rho)
    with np.errstate(invalid="ignore"):
        R_k = Q / X

    def shaped(figure):
        return figure.reshape(figure.shape[:-1] + counts.shape)

    R = shaped(R_k.sum(0))
    return Solution(_plain(shaped(X)), _plain(R), shaped(R_k), shaped(Q), shaped(rho))


def schweitzer(stations: Sequence[Station], N: tuple[int, ...], Z=0.0) -> Solution:
    """Several classes, approximately: for any populations, at the cost of a few hundred steps.

    One customer fewer is assumed to leave every queue shorter in proportion (Schweitzer 1979;
    Bard 1979), Q_j(N - 1_c) = Q_j(N) (1 - [j = c]/N_c). How far off that is, on random networks of
    two classes and up to five stations (`make networks`; median, 95 % and worst of 500):

    | customers | error of X | error of R |
    |---|---|---|
    | 2 to 5 | 2.4 %, 6.4 %, 12 % | 2.9 %, 9.5 %, 16 % |
    | 6 to 20 | 2.4 %, 7.2 %, 22 % | 2.6 %, 10 %, 39 % |
    | 21 to 60 | 0.7 %, 5.4 %, 16 % | 0.7 %, 6.6 %, 25 % |
    | 61 to 200 | 0.1 %, 2.9 %, 6.2 % | 0.1 %, 3.0 %, 6.6 % |

    One customer meets nobody, and there it is exact:

    >>> schweitzer([queue([1.0]), queue([2.0])], (1,), Z=1.0).X.round(12)
    array([0.25])

    Raises ValueError as `solve` does.
    """
    D, Z, classes = _network(stations, Z)
    if not classes:
        raise ValueError("stations have one demand, expected a sequence of them, one per class")
    n = np.array(_populations(N, len(Z)), dtype=float)
    queues = np.array([s.capacity is not None for s in stations])
    share = 1 / np.maximum(n, 1)
    X = n / (Z + D.sum(0) * max(n.sum(), 1))
    Q = X * D
    for _ in range(1_000_000):
        R = D * (1 + queues[:, None] * (Q.sum(1, keepdims=True) - Q * share))
        X = n / (Z + R.sum(0))
        before, Q = Q, X * R
        if (np.abs(Q - before) <= 1e-13 * Q).all():
            return _solution(n, X, R, D, Z, queues, exact=False)
    raise ArithmeticError("Schweitzer's approximation did not settle")


def open_network(stations: Sequence[Station], lamda) -> Solution:
    """An open network: arrivals at rate `lamda`, each visiting all stations.

    Stations behave as if each were alone (Jackson 1957). One class: `lamda` is a rate or an array
    of them. Several: one rate per class, and queues have one server. A station that cannot keep up
    has infinite Q and R; rho tells by how much.

    >>> open_network([queue(0.1), queue(0.2, servers=2)], [5.0, 9.0, 10.0]).R.round(6)
    array([0.466667, 2.052632,      inf])
    """
    D, _, classes = _network(stations, 1.0)
    rates = np.asarray(lamda, dtype=float)
    if not (np.isfinite(rates) & (rates >= 0)).all():
        raise ValueError(f"lamda is {lamda}, expected rates that are not negative")
    if classes and rates.shape != D.shape[1:]:
        raise ValueError(f"lamda is {lamda}, expected {D.shape[1]} rates, one per class")
    rho, R_k = [], []
    for d, station in zip(D, stations, strict=True):
        if station.capacity is None:
            rho.append(0 * rates * d)
            R_k.append(d + 0 * rates)
        else:
            load = np.multiply(rates, d)
            rho.append(load / station.capacity.max())
            full = load.sum() if classes else load
            R_k.append(d * _stretch(full, station.capacity))
    R = np.array(R_k)
    with np.errstate(invalid="ignore"):
        Q = np.where(rates > 0, rates * R, 0.0)
    return Solution(_plain(rates), _plain(R.sum(0)), R, Q, np.array(rho))


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
            w, idle = convolution.products(a / capacity[:-1]), 1 - a / last
            tail = w[m] * (m / idle + 1 / idle**2) / last
            result[i] = ((ahead / capacity[:-1]) @ w[:-1] + tail) / (w[:-1].sum() + w[m] / idle)
    return result


def _exact_classes(stations: Sequence[Station], D: np.ndarray, N: list[int], Z: np.ndarray):
    """Mean value analysis. A step holds all populations of the same total, as an array over those
    of all classes but the largest; one customer fewer is a shift of the step before. What it holds
    for fewer than no customers is never used.
    """
    order = np.argsort(N, kind="stable")
    n = np.array(N)[order]
    queues = np.array([s.capacity is not None for s in stations])
    wait = (Z + D[~queues].sum(0))[order][:, None]
    demand = D[queues].T[order][:, :, None]
    shape = tuple(n[:-1] + 1)
    strides = [prod(shape[c + 1 :]) for c in range(len(shape))]
    counts = np.zeros((len(n), prod(shape)))
    counts[:-1] = np.indices(shape).reshape(len(shape), prod(shape))
    placed = counts.sum(0)
    R = np.ones((len(n), demand.shape[1], prod(shape)))
    numbers, before, X = np.zeros_like(R), np.ones_like(R), np.zeros_like(counts)
    for total in range(1, n.sum() + 1):
        np.add(numbers.sum(0), 1.0, out=before[-1])
        for c, stride in enumerate(strides):
            before[c, :, stride:] = before[-1, :, :-stride]
        np.multiply(demand, before, out=R)
        np.maximum(total - placed, 0.0, out=counts[-1])
        X = counts / (wait + R.sum(1))
        np.multiply(X[:, None], R, out=numbers)
    back = np.argsort(order)
    R_k = D.copy()
    R_k[queues] = R[back, :, -1].T
    return _solution(N, X[back, -1], R_k, D, Z, queues, exact=True)


def _terms(N: list[int], stations: int) -> int:
    """How many numbers the exact solution in several classes has to compute."""
    return (sum(N) + 1) * prod(n + 1 for n in sorted(N)[:-1]) * len(N) * stations


def _solution(N, X, R_k, D, Z, queues, exact: bool) -> Solution:
    """A solution in several classes, checked."""
    Q, rho = X * R_k, X * D * queues[:, None]
    _check(np.asarray(N), Q, X * Z, rho.sum(1))
    R_k = np.where(X > 0, R_k, np.nan)
    return Solution(X, R_k.sum(0), R_k, Q, rho, exact)


def _check(N, Q, thinking, rho) -> None:
    """Raise ArithmeticError for figures that contradict each other."""
    whole = np.abs(Q.sum(0) + thinking - N) <= 1e-9 * N  # and then everything is finite
    if not whole.all() or rho.max() > 1 + 1e-9:
        raise ArithmeticError("the solution fails its check: numbers present do not add up to N")


def _network(stations: Sequence[Station], Z) -> tuple[np.ndarray, Any, bool]:
    """Demands (stations first), think time, and whether there are several classes."""
    if not len(stations):
        raise ValueError("stations are none, expected at least one")
    shapes = {np.shape(s.D) for s in stations}
    if len(shapes) > 1:
        raise ValueError("stations differ in their number of classes: give each one D per class")
    D, think = np.array([s.D for s in stations]), np.asarray(Z, dtype=float)
    classes = D.ndim == 2
    if think.ndim and think.shape != D.shape[1:]:
        raise ValueError(f"Z is {Z}, expected a number{', or one per class' if classes else ''}")
    if not (np.isfinite(think) & (think >= 0)).all():
        raise ValueError(f"Z is {Z}, expected a think time that is finite and not negative")
    if not (D.sum(0) + think > 0).all():
        raise ValueError("stations have no demand and Z is 0: nothing takes any time")
    if classes and any(s.capacity is not None and len(s.capacity) > 1 for s in stations):
        raise ValueError(
            "stations: with several classes a queue has one server, expected no servers > 1 and "
            "no load dependence"
        )
    return D, np.broadcast_to(think, D.shape[1:]) if classes else float(think), classes


def _demands(D) -> Any:
    values = np.array(D, dtype=float)
    if values.ndim > 1 or not values.size or not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError(f"D is {D}, expected a demand that is finite and not negative, or several")
    return values if values.ndim else float(values)


def _counts(N) -> np.ndarray:
    numbers = np.asarray(N, dtype=float)
    whole = (numbers >= 0) & (numbers < inf) & (np.floor(numbers) == numbers)
    if not numbers.size or not whole.all():
        raise ValueError(f"N is {N}, expected whole numbers that are not negative")
    return numbers.astype(int)


def _populations(N, classes: int) -> list[int]:
    n = _counts(N)
    if n.shape != (classes,):
        raise ValueError(f"N is {N}, expected a tuple of {classes} populations, one per class")
    return n.tolist()


def _whole(value) -> bool:
    return np.ndim(value) == 0 and bool(np.isfinite(value)) and value == int(value)


def _plain(values) -> Any:
    """A float for what is no array."""
    return float(values) if np.ndim(values) == 0 else values
