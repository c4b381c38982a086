"""The stations of a closed system, and its throughputs: of many systems together, or of one.

Slopes of X by the demand D of a station follow from the mean numbers present, d ln X(N)/d ln D =
Q(N-1) - Q(N), and those by Z from the users who think (de Souza e Silva and Muntz 1988).
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from nummodel.arguments import count
from nummodel.models import _many, networks
from nummodel.models.networks import Station
from nummodel.nomenclature import Quantity

#: Users times systems, and times servers, up to which systems are solved together: some hundred
#: megabytes, and about as long as one by one.
TOGETHER, WORK = 10**7, 10**8
#: Users up to which systems with a computing holder are solved together: speeds that change with
#: each of many more users take longer so.
FEW = 4000
#: Speeds that differ by a smaller share are the same: floats do not tell them apart.
ALIKE = 1e-12


def of_station(letter: str, name: str, unit: str, meaning: str, *ends: float) -> Quantity:
    """A quantity of the station `name`."""
    return Quantity(rf"{letter}_\mathrm{{{name}}}", unit, meaning.format(name), *ends)


@np.errstate(all="ignore")
def _with_holder(D: Any, L: Any, c: Any, n: np.ndarray) -> np.ndarray:
    """Throughputs of n = 1, 2, .. customers (rows) who compute for D, wait for a lock and hold it
    for L, computing, on c processors, on which those who run share the time equally; a column for
    each system, if D, L or c are arrays.

    If there is a processor for each customer, the number of customers who are not at the lock has a
    Poisson distribution of mean D/L, of which only the values from 0 to n are possible; `w` are
    these probabilities before they are divided by their sum. With fewer processors, all who run
    have a share s of a processor. Each state then lasts 1/s times as long, and is 1/s times as
    likely.
    """
    from scipy.special import gammaln, xlogy

    D, L, c = np.broadcast_arrays(D, L, c)
    rows = (-1, *(1,) * D.ndim)
    k, n = np.append(0.0, n).reshape(rows), n.reshape(rows)
    held_for = np.where(L > 0, L, 1.0)
    w = xlogy(k, D / held_for) - gammaln(k + 1)  # logarithms
    held = np.logaddexp.accumulate(w + np.log(np.maximum(1.0, (k + 1) / c)))  # one more runs
    free = w + np.log(np.maximum(1.0, k / c))
    slowed = np.logaddexp(held[:-1], free[1:])
    X = np.exp(np.logaddexp.accumulate(w)[:-1] - slowed) / held_for
    X = np.where(L > 0, X, np.minimum(n, c) / D)
    return np.where(abs(X / X[-1] - 1) < ALIKE, X[-1], X)


class System:
    """The stations of a closed system, and the quantities that describe them."""

    def __init__(self, servers: Mapping[str, int | None], threads, slows, sleeps, spins, computes):
        first, inside = next(iter(servers), ""), spins or computes
        for name in filter(None, (threads, slows, sleeps, spins, computes)):
            if name not in servers:
                raise ValueError(f"closed: no station {name!r} among {', '.join(servers)}")
        if not servers or inside == first or (inside and servers[inside] != 1):
            what = "one server may spin or compute"
            raise ValueError(f"closed: expected stations such as cpu=4, lock=1; {what}")
        if computes and (threads or slows or sleeps or spins):
            raise ValueError("closed: expected nothing else beside a lock whose holder computes")
        self.servers, self.first, self.computes = dict(servers), first, computes
        self.threads, self.slows, self.sleeps, self.spins = threads, slows, sleeps, spins
        #: The lock that is one station together with the processors that its holder needs.
        self.inside = inside
        self.demands = tuple(f"D_{name}" for name in servers)
        self.own: dict[str, Quantity] = {}
        for name, c in servers.items():
            self._add("D", name, "s", "demand at {}")
            if c is None:
                self._add("c", name, "-", "servers of {}", 1.0)
            else:
                count(f"c_{name}", c, most=networks.MANY)
            if name == threads:
                self._add("h", name, "-", "what a second thread adds to a server of {}", 0.0, 1.0)
            if name == slows:
                self._add("b", name, "-", "share by which each waiter slows {}")
            if name == sleeps:
                self._add("w", name, "s", "time to wake up a waiter of {}")
        self.names = (*self.own, "Z")
        other = [name for name in servers if servers[name] != 1 or not self.is_plain(name)]
        simple = [name for name in servers if name not in other]
        one = other if len(other) == 1 and other != [sleeps] else []
        #: Quantities by which the slopes of X follow from the mean numbers of customers.
        self.exact = (*(f"D_{name}" for name in (*simple, *([] if inside else one))), "Z")
        # X, R and U ask for the same.
        self._remembered = lru_cache(maxsize=8)(self._solved)
        self._once = lru_cache(maxsize=8)(self._different)

    def _add(self, letter: str, name: str, unit: str, meaning: str, *ends: float) -> None:
        self.own[f"{letter}_{name}"] = of_station(letter, name, unit, meaning, *ends)

    def is_plain(self, name: str) -> bool:
        """Whether c customers at the station of c servers are served as fast as one customer is by
        each server alone: no threads, no slowing, no waking up, no lock whose holder needs another.
        """
        alone = name not in (self.threads, self.slows, self.sleeps)
        return alone and not (self.inside and name in (self.inside, self.first))

    def by_work(self, name: str) -> bool:
        """Whether the station is in use for the `work` of X transactions in each second."""
        return self.is_plain(name) or bool(self.computes and name == self.first)

    def places(self, name: str, values: Mapping[str, Any]) -> Any:
        """The number of customers that a station can serve at the same time."""
        c = self._count(name, values)
        return 2 * c if name == self.threads else c

    def most(self, name: str, values: Mapping[str, Any]) -> Any:
        """The highest speed of a station that does not slow down, in units of one server alone."""
        return self._count(name, values) * (1 + values.get(f"h_{name}", 0.0))

    def work(self, name: str, values: Mapping[str, Any]) -> Any:
        """The time for which a transaction keeps servers of a station busy [s]: its demand, and at
        the processors also that at a lock whose holder computes.
        """
        inside = values[f"D_{self.computes}"] if self.computes and name == self.first else 0.0
        return values[f"D_{name}"] + inside

    def _count(self, name: str, values: Mapping[str, Any]) -> Any:
        return values.get(f"c_{name}", self.servers[name])

    def _speed(self, name: str, values: Mapping[str, Any], n: np.ndarray) -> np.ndarray:
        """With n customers there, in units of one server alone; a column for each system, if the
        values are arrays.
        """
        n = n[:, None] if np.ndim(values["Z"]) else n
        c = self._count(name, values)
        speed = np.minimum(n, c)
        if name == self.threads:
            speed = speed + values[f"h_{name}"] * np.clip(n - c, 0, c)
        if name == self.slows:
            speed = speed / (1 + values[f"b_{name}"] * np.maximum(n - c, 0))
        if name == self.sleeps:
            speed = speed / (1 + (n > c) * values[f"w_{name}"] / values[f"D_{name}"])
        return np.broadcast_to(speed, np.broadcast_shapes(n.shape, np.shape(values["Z"])))

    def network(self, values: Mapping[str, float], most: int) -> dict[str, Station]:
        """For up to `most` users. Processors and a lock whose holder needs one are one station."""
        n, stations = np.arange(1.0, most + 1), {}
        for name, c in self.servers.items():
            D = values[f"D_{name}"]
            if c and self.is_plain(name):
                stations[name] = networks.queue(D, c)
            else:
                stations[name] = networks.load_dependent(D, self._speed(name, values, n))
        if self.spins:  # all who are there run; if they are more than processors, the more slowly
            computing, lock = networks.delay(values[f"D_{self.first}"]), stations.pop(self.spins)
            X = networks.solve([computing, lock], n).X
            speed = X / X[0] * self._speed(self.first, values, n) / n
            stations[self.first] = networks.load_dependent(1 / X[0], speed)
        if self.computes:
            D, L = values[f"D_{self.first}"], stations.pop(self.computes).D
            X = _with_holder(D, L, self._count(self.first, values), n)
            stations[self.first] = networks.load_dependent(1 / X[0], X / X[0])
        return stations

    def different(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The different columns of `values`, sorted, and which of them each column is."""
        return self._once(values.shape, values.tobytes())

    def _different(self, shape: tuple[int, int], values: bytes) -> tuple[np.ndarray, np.ndarray]:
        """As `different`, from the bytes of the array."""
        systems = np.frombuffer(values).reshape(shape)
        if (systems == systems[:, :1]).all():  # takes less time than to sort them
            return systems[:, :1], np.zeros(shape[1], dtype=int)
        systems, place = np.unique(systems, axis=1, return_inverse=True)
        return systems, place.ravel()

    def solved(
        self, systems: np.ndarray, n: tuple[int, ...]
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """X at each population (rows) of each system, a column of quantities in the order of their
        `names`, and the slopes of X by the `exact` ones; NaN where they cannot be computed.
        """
        return self._remembered(systems.shape, np.ascontiguousarray(systems).tobytes(), n)

    def _solved(self, shape: tuple[int, int], systems: bytes, n: tuple[int, ...]):
        """As `solved`, from the bytes of the array, which can be remembered."""
        values = dict(zip(self.names, np.frombuffer(systems).reshape(shape), strict=True))
        X, size = np.full((len(n), shape[1]), np.nan), max(n) * shape[1]
        slopes = {q: X.copy() for q in self.exact}
        servers = max(np.max(self.places(name, values)) for name in self.servers)
        alone = self.spins or (self.computes and max(n) > FEW)
        if size < TOGETHER and size * min(servers, max(n)) < WORK and not alone:
            X, slopes = self._together(values, np.array(n))
        for j in np.flatnonzero(np.isnan(X).any(axis=0)):
            own = {q: float(v[j]) for q, v in values.items()}
            with suppress(ValueError, ArithmeticError):  # what a search may try, and none solves
                X[:, j], of_X = self._alone(own, np.array(n))
                for q, slope in of_X.items():
                    slopes[q][:, j] = slope
        return X, slopes

    def _together(self, values: dict[str, np.ndarray], n: np.ndarray) -> tuple[np.ndarray, dict]:
        """As `solved`. Each array of `values` has one number for each system."""
        all_n = np.arange(1.0, n.max() + 1)
        names = [n for n in self.servers if not self.computes or n not in (self.first, self.inside)]
        speeds = [self._speed(name, values, all_n) for name in names]
        demands = [values[f"D_{name}"] for name in names]
        if self.computes:
            D, L = values[f"D_{self.first}"], values[f"D_{self.computes}"]
            together = _with_holder(D, L, self._count(self.first, values), all_n)
            speeds, demands = [*speeds, together * (D + L)], [*demands, D + L]
        X = _many.throughputs(np.array(demands), speeds, values["Z"])
        present = {"Z": X}  # mean number of customers who spend time D or Z, over this time
        for q in self.exact:
            if self.servers.get(q[2:]) == 1 and self.is_plain(q[2:]):
                present[q] = _many.per_second(X, values[q])
        elsewhere = sum(values[q] * Q for q, Q in present.items())
        for q in set(self.exact) - set(present):  # one at most: all others are there
            D = np.where(values[q] > 0, values[q], 1.0)
            present[q] = np.where(values[q] > 0, (all_n[:, None] - elsewhere) / D, X)
        slopes = {q: -X * np.diff(Q, axis=0, prepend=0.0) for q, Q in present.items()}
        return X[n - 1], {q: slope[n - 1] for q, slope in slopes.items() if q in self.exact}

    def _alone(self, values: dict[str, float], n: np.ndarray) -> tuple[np.ndarray, dict]:
        """As `solved`, of one system by its network."""
        stations = self.network(values, n.max())
        solution = networks.solve([*stations.values()], np.append(n, n - 1), values["Z"])
        present = {f"D_{name}": Q for name, Q in zip(stations, solution.Q, strict=True)}
        present["Z"] = values["Z"] * solution.X
        X, slopes = solution.X[: n.size], {}
        for q in self.exact:
            Q = present[q] / values[q] if values[q] > 0 else solution.X
            slopes[q] = X * (Q[n.size :] - Q[: n.size])
        return X, slopes

    def share_in_use(self, name: str, values: Mapping[str, float], n) -> np.ndarray:
        """The mean share of its servers, or of their threads, that a station has in use.

        k customers are there with a probability in proportion to f(k) G(n - k): f is the product of
        D/speed up to k, and G, the normalising constant of the other stations, that of 1/X.
        """
        places, Z = self.places(name, values), values["Z"]
        stations = self.network(values, max(n))
        k = np.arange(max(n) + 1)
        station, others = stations[name], [s for o, s in stations.items() if o != name]
        if not others and Z == 0:
            return np.minimum(n, places) / places
        capacity = np.asarray(station.capacity)
        speed = capacity[np.minimum(k[1:], len(capacity)) - 1]
        f = np.append(0.0, np.cumsum(np.log(station.D / speed)))
        X = networks.solve(others or [networks.delay(0.0)], k[1:], Z).X
        G = -np.append(0.0, np.cumsum(np.log(X)))
        shares = []
        for all_of_them in n:
            log_p = f[: all_of_them + 1] + G[all_of_them::-1]
            p = np.exp(log_p - log_p.max())
            shares.append(p @ np.minimum(k[: all_of_them + 1], places) / places / p.sum())
        return np.array(shares)
