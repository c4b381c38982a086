"""Whole systems as laws: what is measured of users who think, compute, and wait for each other.

`closed` makes the laws of a system in which each of N users thinks for Z seconds and then sends a
request that visits every station; `arrivals` those of a system that requests reach at a rate,
however many wait there. Values are those of `networks`; slopes are those of `_stations`, as far as
these are exact, and else differences.
"""

from collections.abc import Callable, Mapping
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from nummodel.arguments import LARGEST, aligned, count, within
from nummodel.formula import Formula
from nummodel.models import networks
from nummodel.models._stations import System, of_station
from nummodel.models.queueing import mmc_waiting

#: Shares of its capacity to which a station may be in use at the highest throughput measured.
SHARES = (0.03, 0.3, 0.6, 0.85, 0.97)
#: The step of a difference, as a share of the value; and the least step, which for a time is a
#: share of all times of the system together.
STEP, LEAST = 1e-4, 1e-6
#: Numbers of servers, and the like, from which a search begins: combinations, and servers at most.
STARTS, SERVERS = 100, 1024


def closed(
    threads: str = "",
    slows: str = "",
    sleeps: str = "",
    spins: str = "",
    computes: str = "",
    **servers: int | None,
) -> dict[str, Formula]:
    """The laws of a closed system: of "X", of "R" without think time, and of each "U_name".

    `servers` gives each station its number of servers, or None for a number to be found: the laws
    have a demand D_name [s], and then a number c_name. Of the station that is named by

    - `threads`, each server has two hardware threads, the second of which adds a share h_name of a
      server; U is the share of all these threads that run;
    - `slows`, each waiter makes service longer by a share b_name;
    - `sleeps`, service takes w_name [s] longer while somebody waits, who has to be woken up;
    - `spins`, the holder and the waiters each keep a processor busy; the first station has these;
    - `computes`, the holder keeps one busy, and waiters sleep: U of the first station counts the
      time under the lock as well. X is exact without think time; with it, it was up to 2.2 % off
      in 240 systems, and 0.8 % at most in 95 % of them.

    Raises ValueError for what is no system.

    >>> laws = closed(cpu=4, lock=1)
    >>> round(laws["X"](N=600, D_cpu=0.03, D_lock=0.005, Z=1.0), 1)
    133.3
    """
    system = System(servers, threads, slows, sleeps, spins, computes)
    results = ["X", "R", *(f"U_{name}" for name in servers if name != system.inside)]
    return {result: Measured(system, result) for result in results}


def _cubic(t: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights of four values, at -1, 0, 1 and 2, for the value at t from 0 to 1, and for its slope
    (Catmull and Rom 1974). If 0 is the `first` of all, a straight line leads to the value at -1.
    """
    weights = np.array([-t + 2 * t**2 - t**3, 2 - 5 * t**2 + 3 * t**3, t + 4 * t**2 - 3 * t**3])
    rises = np.array([-1 + 4 * t - 3 * t**2, -10 * t + 9 * t**2, 1 + 8 * t - 9 * t**2])
    both = np.array([weights, rises]) / 2
    last = np.array([t**3 - t**2, 3 * t**2 - 2 * t]) / 2
    both = np.concatenate([both, last[:, None]], axis=1)
    before = np.where(first, both[:, 0], 0.0)
    both[:, 0] -= before
    both[:, 1] += 2 * before
    both[:, 2] -= before
    return both[0], both[1]


def arrivals(**servers: int) -> dict[str, Formula]:
    """The laws of an open system: of "R" and of each "U_name", at an arrival rate lamda [1/s].

    A load generator that sends requests at a rate, whoever still waits, makes such a load. Each
    station then behaves as if it were alone (Jackson 1957). R is infinite where a station is full.
    Raises ValueError for what is no system.

    >>> round(arrivals(cpu=4, lock=1)["R"](lamda=100.0, D_cpu=0.03, D_lock=0.005), 4)
    0.0553
    """
    if not servers:
        raise ValueError("arrivals: expected stations such as cpu=4, lock=1")
    servers = {name: count(f"c_{name}", c, most=networks.MANY) for name, c in servers.items()}
    own = {f"D_{name}": of_station("D", name, "s", "demand at {}") for name in servers}

    def response(lamda, **demands):
        waits = [mmc_waiting(lamda, demands[f"D_{name}"], c) for name, c in servers.items()]
        return sum(waits, sum(demands.values()))

    doc = "Response time of an open system."
    laws = {"R": Formula.made("R", response, ["lamda", *own], "open_R", doc, own)}
    for name, c in servers.items():

        def in_use(lamda, c=c, **demand):
            return lamda * sum(demand.values()) / c

        result, doc = f"U_{name}", "Utilisation in an open system."
        meanings = own | {result: of_station("U", name, "-", "utilisation of {}", 0.0, 1.0)}
        quantities = ["lamda", f"D_{name}"]
        laws[result] = Formula.made(result, in_use, quantities, f"open_{result}", doc, meanings)
    return laws


class Measured(Formula):
    """A result of a closed system as a law of N, of the quantities of its stations, and of Z."""

    _plain = _symbolic = bends = False
    tries = 24  # where many numbers of servers give nearly the same curve, their starts are alike

    def __init__(self, system: System, result: str):
        self.system = system
        if system.computes:
            self.tries = 8  # a fit knows the number of processors, and then few starts do

        def law(**values):
            return self.jet(())(**values)[0]

        law.__name__ = law.__qualname__ = f"closed_{result}"
        law.__doc__ = "What is measured of a closed system, by the exact solution of its network."
        own = system.own
        if result.startswith("U_"):
            own = own | {result: of_station("U", result[2:], "-", "utilisation of {}", 0.0, 1.0)}
        super().__init__(result, law, ("N", *system.names), self._checked, own)

    def _checked(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, if they make sense."""
        checked = {}
        for n, value in values.items():
            low, high = (1.0, networks.MANY - 1) if n == "N" else self.range_of(n)
            checked[n] = within(n, value, low, min(high, LARGEST), empty=True)
        aligned(checked)
        return checked

    def _values(self, systems: np.ndarray, n: tuple[int, ...]) -> np.ndarray:
        """The result at each whole population (rows) of each system (columns)."""
        X = self.system.solved(systems, n)[0]
        values = dict(zip(self.system.names, systems, strict=True))
        if self.result == "X":
            return X
        if self.result == "R":
            return np.array(n)[:, None] / X - values["Z"]
        name = self.result[2:]
        if self.system.by_work(name):
            return X * self.system.work(name, values) / self.system.places(name, values)
        shares = np.full(X.shape, np.nan)
        for j in np.flatnonzero(~np.isnan(X).any(axis=0)):
            own = {q: float(v[j]) for q, v in values.items()}
            shares[:, j] = self.system.share_in_use(name, own, n)
        return shares

    def _slope(self, q: str, systems: np.ndarray, n: tuple[int, ...]) -> np.ndarray:
        """Of the result by the quantity `q`, as `_values`."""
        at, station = self.system.names.index(q), self.result[2:]
        if q in self.system.exact and (not station or self.system.by_work(station)):
            X, slopes = self.system.solved(systems, n)
            if self.result == "X":
                return slopes[q]
            if self.result == "R":
                return -np.array(n)[:, None] / X**2 * slopes[q] - (q == "Z")
            values = dict(zip(self.system.names, systems, strict=True))
            own = X if q == f"D_{station}" else 0.0
            served = slopes[q] * self.system.work(station, values) + own
            return served / self.system.places(station, values)
        cycle = systems[[q[0] in "DZ" for q in self.system.names]].sum(axis=0)
        unit = cycle if q[0] in "DZw" else 1.0  # of a quantity that is zero, or nearly
        step = np.maximum(STEP * systems[at], LEAST * unit)
        lower = np.where(systems[at] > step, systems[at] - step, systems[at])
        both = np.hstack([systems, systems])
        both[at] = np.append(lower, lower + 2 * step)
        found, count = self._values(both, n), systems.shape[1]
        return (found[:, count:] - found[:, :count]) / (2 * step)

    def _tables(self, systems: np.ndarray, n: tuple[int, ...], names: list[str]) -> list:
        """The result, and its slopes by `names`, as `_values`. A number of servers between two
        whole ones has a result between those of whole ones that together are as fast, by cubic
        interpolation, so that no slope jumps.
        """
        name = next((q for q in self.system.names if self._between(q, systems, names)), "")
        if not name:
            return [self._values(systems, n), *(self._slope(q, systems, n) for q in names)]
        demand = f"D_{name[2:]}"
        c, D = systems[self.system.names.index(name)], systems[self.system.names.index(demand)]
        below = np.maximum(np.floor(c), 1.0)
        weights, rises = _cubic(c - below, below == 1)
        servers = np.array([np.maximum(below + i, 1.0) for i in (-1, 0, 1, 2)])
        four, share = np.tile(systems, 4), servers / c
        four[self.system.names.index(name)] = servers.ravel()
        four[self.system.names.index(demand)] = (share * D).ravel()
        others = [q for q in dict.fromkeys([*names, demand]) if q != name]
        tables = self._tables(four, n, others)
        at = np.reshape(tables, (len(tables), len(n), 4, -1)).swapaxes(1, 2).copy()
        found = dict(zip(others, np.einsum("is,qins->qns", weights, at[1:]), strict=True))
        by_demand = at[1 + others.index(demand)]
        found[demand] = np.einsum("is,ins->ns", weights * share, by_demand)
        found[name] = np.einsum("is,ins->ns", rises, at[0]) - D / c * found[demand]
        return [np.einsum("is,ins->ns", weights, at[0]), *(found[q] for q in names)]

    def _between(self, name: str, systems: np.ndarray, names: list[str]) -> bool:
        """Whether a number of servers is not whole, or a slope by it is asked for."""
        values = systems[self.system.names.index(name)]
        return name[0] == "c" and (name in names or bool((values != np.floor(values)).any()))

    def _rows(self, systems: np.ndarray, place: np.ndarray, N: np.ndarray, names) -> np.ndarray:
        """The result, and its slopes by `names`, of the system in column `place` at load N. A mean
        number of users is between two numbers of users.
        """
        below = np.maximum(np.floor(N), 1).astype(int)
        needs_next = "N" in names or (N != below).any()
        whole = np.unique(np.append(below, below + 1) if needs_next else below)
        n, at = tuple(whole.tolist()), np.searchsorted(whole, below)
        tables = self._tables(systems, n, [q for q in names if q != "N"])
        found = np.array([table[at, place] for table in tables])
        slopes = {"N": np.zeros(N.shape)}
        if needs_next:
            rise = np.array([table[at + 1, place] for table in tables]) - found
            found, slopes["N"] = found + (N - below) * rise, rise[0]
        slopes |= zip([q for q in names if q != "N"], found[1:], strict=True)
        return np.array([found[0], *(slopes[q] for q in names)])

    @cache  # noqa: B019
    def jet(self, names: tuple[str, ...], second: bool = False) -> Callable:
        """As `Formula.jet`, but second derivatives are 0: a search is then Gauss and Newton's."""

        def computed(**values: Any) -> list:
            arrays = np.broadcast_arrays(*(np.asarray(values[n], float) for n in self.quantities))
            table = np.array([a.ravel() for a in arrays])
            found = np.empty((len(names) + 1, table.shape[1]))
            times = [q[0] in "DZ" for q in self.system.names]
            possible = np.isfinite(table).all(axis=0) & (table[1:] >= 0).all(axis=0)
            possible &= (table[1:][times].sum(axis=0) > 0) & (table[0] < networks.MANY)
            found[:, ~possible] = np.nan
            if possible.any():
                N, rest = table[0, possible], table[1:, possible]
                systems, place = self.system.different(rest)
                found[:, possible] = self._rows(systems, place, N, names)
            return [
                *found.reshape(len(found), *arrays[0].shape),
                *[0.0] * (second * len(names) * (len(names) + 1) // 2),
            ]

        return computed

    @cache  # noqa: B019
    def is_scale(self, name: str) -> bool:
        """Twice a demand does not make twice the result."""
        return False

    def starts(self, free, known, measured) -> dict[str, np.ndarray]:
        """Each station as the one that is full at the highest throughput, the others less so."""
        N = np.broadcast_to(known["N"], measured.shape)
        if self.result.startswith("U_"):
            return {}
        X = measured if self.result == "X" else N / (measured + known.get("Z", 0.0))
        highest, cycle = X.max(), (N / X)[np.argmin(N)]  # the cycle of a user who hardly waits
        known = {q: float(np.ravel(v)[0]) for q, v in known.items() if q in self.system.names}
        found = {q: self._likely(q, N.max()) for q in free if q[0] in "chb"}
        most = max(2, int(STARTS ** (1 / max(len(found), 1))))
        for q, some in found.items():
            chosen = np.linspace(0, len(some) - 1, min(len(some), most))
            found[q] = some[np.rint(chosen).astype(int)]
        points = []
        for values in map(dict, product(*([(q, v) for v in some] for q, some in found.items()))):
            c = {q: self.system.places(q[2:], known | values) for q in self.system.demands}
            for full, share in product(c, SHARES):
                at = {q: c[q] / highest * (1.0 if q == full else share) for q in c}
                at = {q: known.get(q, D) for q, D in at.items()}
                waking = {f"w_{self.system.sleeps}": 0.3 * at.get(f"D_{self.system.sleeps}", 0.0)}
                thinking = {"Z": max(cycle - sum(at.values()), 0.01 * cycle)}
                points.append(values | at | waking | thinking)
        once = np.unique([[point[q] for q in free] for point in points], axis=0)
        return dict(zip(free, once.T, strict=True))

    def _likely(self, name: str, most: float) -> np.ndarray:
        """Values of a quantity that is no time, for up to `most` users."""
        if name[0] == "c":
            return 2.0 ** np.arange(1 + np.ceil(np.log2(np.clip(most, 2, SERVERS))))
        return np.array([0.3] if name[0] == "h" else [0.01, 0.3])
