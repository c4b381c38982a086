"""Closed networks of queues, solved exactly, or approximately where it is said.

A network is a list of stations that every customer (thread, transaction) visits. `queue`, `delay`
and `load_dependent` make stations. `solve` finds throughput and response time of N customers who
think for Z seconds between transactions. A demand `D` is the seconds of service that a transaction
needs. Networks have product form (Baskett, Chandy, Muntz and Palacios 1975): a queue either serves
in the order of arrival, for exponential times that are the same for all classes per visit; or it
serves all customers at once and equally, for times of any distribution and class.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from nummodel.arguments import LARGEST as HIGHEST
from nummodel.arguments import count, feasible, valid, within
from nummodel.models import _convolution

#: Terms up to which several classes are solved exactly: some seconds of work.
LARGEST = 300_000_000
#: Most customers, and most servers of a station.
MANY = 10_000_000
#: Most numbers that Schweitzer's approximation computes: some seconds of work.
NUMBERS = 100_000_000
#: A number present that is as good as 0.
NOBODY = 1e-290


@dataclass(frozen=True, eq=False)
class Station:
    """Demand, one per class if there are several, and capacity with 1, 2, .. customers present,
    of which the last holds for all larger numbers. A delay has no capacity: it serves all at once.
    """

    D: Any
    capacity: np.ndarray | None


@dataclass(frozen=True)
class Solution:
    """The figures of a network, as arrays over populations (one class) or over classes.

    Throughput `X`, response time `R` of all stations, and with a row for each station: residence
    time per transaction `R_k`, mean number present `Q`, and the mean share `rho` of its highest
    capacity that is in use, which is the utilisation of each server (0 for a delay). Without
    customers X is 0 and R is nan. `exact` is False for Schweitzer's approximation.
    """

    X: Any
    R: Any
    R_k: np.ndarray
    Q: np.ndarray
    rho: np.ndarray
    exact: bool = True


def queue(D, servers: int = 1) -> Station:
    """A queue in front of `servers` equal servers; `D` is a demand [s], or one per class."""
    return load_dependent(D, np.arange(1.0, count("servers", servers, most=MANY) + 1))


def delay(D) -> Station:
    """Service without queueing, as if there were a server for everyone; `D` as in `queue`."""
    return Station(within("D", D, 0, ndim=(0, 1))[()], None)


def load_dependent(D, capacity: Sequence[float] | np.ndarray) -> Station:
    """A queue whose speed depends on the number of customers present.

    `capacity[n - 1]` is the speed with n customers present, relative to the speed at which `D`
    was measured; the last value holds for every larger n. Values may rise and fall. [1, 2, 3] is a
    queue of 3 servers.
    """
    values = within("capacity", capacity, 1 / HIGHEST, ndim=(1,))
    feasible("length of capacity", len(values), MANY, "a number for each customer")
    differing = np.flatnonzero(values != values[-1])
    D = within("D", D, 0, ndim=(0, 1))[()]
    return Station(D, values[: differing[-1] + 2 if len(differing) else 1])


@np.errstate(all="ignore")
def solve(stations: Sequence[Station], N, Z=0.0) -> Solution:
    """A closed network with N customers who think for `Z` seconds between transactions.

    One class (scalar demands): `N` is a population or an array of them, in any order. The solution
    is exact, by convolution of probabilities (see `_convolution`).

    >>> cpu, disk = queue(1.0, servers=32), queue(0.04)
    >>> solve([cpu, disk], [1, 64, 1_000_000]).X.round(6)
    array([ 0.961538, 24.999743, 25.      ])

    Several classes (every station has a sequence of demands, one per class): `N` is a tuple of
    populations, `Z` a scalar or one per class, and queues have one server. The solution is exact,
    by mean value analysis (Reiser and Lavenberg 1980). Above `LARGEST` terms it is that of
    `schweitzer`, and `exact` is False.

    >>> three = [queue([0.1, 0.3]), queue([0.2, 0.05]), queue([0.05, 0.1])]
    >>> solve(three, (10, 15), Z=[1, 2]).X.round(6)
    array([3.178195, 2.273139])

    Raises ValueError for what is no network or no population, and for an N that would take longer
    than some seconds. Raises ArithmeticError for figures that fail a check: customers add up to N,
    no throughput is above a station's capacity, and throughputs of several classes agree with those
    of one customer fewer.
    """
    D, Z, queues = _network(stations, Z)
    if D.ndim == 2:
        return _of_classes(D, queues, N, Z, LARGEST)
    counts = within("N", N, 0, MANY, whole=True).astype(int)
    n = counts.ravel()
    capacities = [np.ones(1) if s.capacity is None else s.capacity for s in stations]
    X, Q = _convolution.exact(D, capacities, queues, Z, n)
    rho = np.multiply.outer(queues * D / np.array([c.max() for c in capacities]), X)
    _check(n, Q, X * Z, rho)
    R_k = Q / X

    def shaped(figure):
        return figure.reshape(figure.shape[:-1] + counts.shape)

    X, R = (v if v.ndim else v.item() for v in map(shaped, (X, R_k.sum(0))))
    return Solution(X, R, shaped(R_k), shaped(Q), shaped(rho))


@np.errstate(all="ignore")
def schweitzer(stations: Sequence[Station], N: tuple[int, ...], Z=0.0) -> Solution:
    """Several classes, approximately: any populations, mostly in a few hundred steps.

    The approximation is that one customer fewer makes the queues of the class shorter in proportion
    (Schweitzer 1979; Bard 1979): Q_j(N - 1_c) = Q_j(N) (1 - [j = c]/N_c). These are its errors
    (median, 95 % and largest; the largest of other networks may be twice as large) on 500 random
    networks of two to four classes, two in the last row, and up to five stations (`make networks`):

    | customers | error of X | error of R |
    |---|---|---|
    | 2 to 5 | 3.1 %, 9.8 %, 15 % | 3.8 %, 12 %, 20 % |
    | 6 to 20 | 4.1 %, 9.5 %, 14 % | 5.1 %, 15 %, 23 % |
    | 21 to 60 | 1.9 %, 6.4 %, 9.7 % | 2.1 %, 9.9 %, 18 % |
    | 61 to 200 | 0.1 %, 2.4 %, 4.2 % | 0.1 %, 3.0 %, 12 % |

    The more customers, the smaller the error. One customer meets nobody, and there it is exact:

    >>> schweitzer([queue([1.0]), queue([2.0])], (1,), Z=1.0).X.round(12)
    array([0.25])

    Raises ValueError as `solve` does, and ArithmeticError if 300,000 steps are too few (fewer for a
    large network), as with very many customers and bottlenecks that are nearly alike.
    """
    D, Z, queues = _network(stations, Z)
    if D.ndim == 1:
        raise ValueError("stations have one demand, expected a sequence of them, one per class")
    return _of_classes(D, queues, N, Z, most=0)


def _of_classes(D, queues, N, Z, most: int) -> Solution:
    """A solution in several classes, exact for up to `most` terms, and checked."""
    n = within("N", N, 0, MANY, whole=True).astype(int)
    _one_per_class("N", n, Z.shape)
    exact = _terms(n.tolist(), len(D)) <= most
    solver = _exact if exact else _schweitzer
    X, R_k = solver(D, queues, n.tolist(), Z)
    Q, rho = X * R_k, X * D * queues[:, None]
    _check(n, Q, X * Z, rho.sum(1))
    R_k = np.where(X > 0, R_k, np.nan)
    return Solution(X, R_k.sum(0), R_k, Q, rho, exact)


def _exact(D: np.ndarray, queues: np.ndarray, N: list[int], Z: np.ndarray):
    """Throughput and residence times of classes, from those of all smaller populations.

    A customer who arrives at a queue finds the queue of the network without this customer (Reiser
    and Lavenberg 1980): R = D (1 + Q with one fewer of the class), and X = N/(Z + R). Arrays have
    stations first, then classes; `queues` says which stations are no delays.

    A step has all populations of the same total, as an array over all classes but the largest; one
    customer fewer is a shift of the step before. Entries with a negative population, and those that
    a shift takes from outside of the array, have throughput 0 and are not used.

    Raises ArithmeticError if throughputs contradict those with one customer fewer: X_c(N) is
    G(N - 1_c)/G(N), so that X_c(N) X_d(N - 1_c) does not depend on the order of c and d.
    """
    order = np.argsort(N, kind="stable")
    n = np.array(N)[order]
    wait = (Z + D[~queues].sum(0))[order][:, None]
    demand = D[queues].T[order][:, :, None]
    shape = tuple(n[:-1] + 1)
    strides = [prod(shape[c + 1 :]) for c in range(len(shape))]
    counts = np.zeros((len(n), prod(shape)))
    counts[:-1] = np.indices(shape).reshape(len(shape), prod(shape))
    placed = counts.sum(0)
    R = np.ones((len(n), demand.shape[1], prod(shape)))
    numbers, ahead = np.zeros_like(R), np.ones_like(R)
    last = X = np.zeros_like(counts)
    for total in range(1, n.sum() + 1):
        np.add(numbers.sum(0), 1.0, out=ahead[-1])
        for c, stride in enumerate(strides):
            ahead[c, :, stride:] = ahead[-1, :, :-stride]
        np.multiply(demand, ahead, out=R)
        np.maximum(total - placed, 0.0, out=counts[-1])
        last, X = X, counts / (wait + R.sum(1))
        np.multiply(X[:, None], R, out=numbers)
    end = prod(shape) - 1  # all customers but those of the largest class; a class may have none
    fewer = last[:, [max(end - stride, 0) for stride in [*strides, 0]]].T  # a row a class
    orders = (X[:, -1:] * fewer)[np.ix_(n > 0, n > 0)]
    if (abs(orders - orders.T) > 1e-9 * orders).any():
        raise ArithmeticError("the solution fails its check: throughputs contradict each other")
    back = np.argsort(order)
    R_k = D.copy()
    R_k[queues] = R[back, :, -1].T
    return X[back, -1], R_k


def _terms(N: list[int], stations: int) -> int:
    """Numbers that `_exact` has to compute; a step counts as 3,000 at least, by its time."""
    step = prod(n + 1 for n in sorted(N)[:-1]) * len(N) * stations
    return (sum(N) + 1) * max(step, 3000)


def _schweitzer(D: np.ndarray, queues: np.ndarray, N: list[int], Z: np.ndarray):
    """Throughput and residence times, if each queue is in proportion to the customers."""
    n = np.array(N, dtype=float)
    unit = np.maximum(Z, D.max(0))  # a unit of time for each class
    D, Z = D / unit, Z / unit
    share = 1 / np.maximum(n, 1)
    Q = n * D / (Z + D.sum(0))
    for _ in range(min(300_000, NUMBERS // D.size)):
        R = D * (1 + queues[:, None] * (Q.sum(1, keepdims=True) - Q * share))
        X = n / (Z + R.sum(0))
        before, Q = Q, X * R
        if (np.abs(Q - before) <= 1e-13 * Q + NOBODY).all():
            return X / unit, R * unit
    raise ArithmeticError(f"N is {tuple(N)}: Schweitzer's approximation did not settle")


def _check(N, Q, thinking, rho) -> None:
    """Raises ArithmeticError for figures that contradict each other, or are not finite."""
    if not (np.abs(Q.sum(0) + thinking - N) <= 1e-9 * N).all():
        raise ArithmeticError("the solution fails its check: numbers present do not add up to N")
    if rho.max() > 1 + 1e-9:
        raise ArithmeticError("the solution fails its check: X is above a station's capacity")


def _network(stations: Sequence[Station], Z) -> tuple[np.ndarray, Any, np.ndarray]:
    """Demands (stations first), think time, and which of the stations are queues."""
    listed = isinstance(stations, Sequence) and len(stations) > 0
    if not listed or not all(isinstance(s, Station) for s in stations):
        raise ValueError("stations: expected a list of what queue, delay, load_dependent make")
    if len({np.shape(s.D) for s in stations}) > 1:
        raise ValueError("stations differ in their number of classes: give each one D per class")
    D, think = np.array([s.D for s in stations]), valid({"Z": Z})["Z"]
    if think.ndim:
        _one_per_class("Z", think, D.shape[1:])
    if not (D.sum(0) + think > 0).all():
        raise ValueError("stations have no demand and Z is 0: nothing takes any time")
    queues = np.array([s.capacity is not None for s in stations])
    if D.ndim == 1:
        return D, float(think), queues
    if any(s.capacity is not None and len(s.capacity) > 1 for s in stations):
        raise ValueError("stations: with several classes, expected queues of one server")
    return D, np.broadcast_to(think, D.shape[1:]), queues


def _one_per_class(name: str, values: np.ndarray, shape: tuple[int, ...]) -> None:
    if values.shape != shape:
        expected = f"{shape[0]}, one per class" if shape else "a number"
        raise ValueError(f"{name} is {values.tolist()}, expected {expected}")
