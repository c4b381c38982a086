"""A closed system fitted to everything that was measured of it, beside laws of X alone."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nummodel.arguments import FULLEST
from nummodel.errors import InputError
from nummodel.fits import compare, joint
from nummodel.fits._fit import Fit
from nummodel.fits._intervals import shared
from nummodel.fits._problem import quantile
from nummodel.fits._targets import of
from nummodel.models import systems
from nummodel.nomenclature import show

if TYPE_CHECKING:
    import pandas as pd

#: A load at which a closed system is near its ceiling, as a multiple of the users who fill it.
FULL = 10.0
#: Loads at most for which the intervals of new measurements are searched for.
MANY = 25
#: A station whose demand for each server is at least this share of the largest may limit as well.
NEAR = 0.9
#: The level of the intervals by which it is told what limits.
LEVEL = 0.95
#: A utilisation that is off by no more rejects no system: other programs use processors, too.
SHARE = 0.02
#: A given think time is doubted by as many standard errors, and by at least this share of it and of
#: the shortest cycle.
SURELY, SMALL = 5.0, 0.02
#: The step of a difference, as a share of the value.
STEP = 1e-6
#: How far columns may be from the operational laws, or from a system, by errors of measurement.
TOLERANCE = 0.2


@dataclass(frozen=True, eq=False, repr=False)
class Face(Fit):
    """One of the laws of a joint fit with its own points. Estimates, intervals and predictions are
    those of the `whole`, which knows all columns, and with them `others` after X.
    """

    together: Fit = None  # type: ignore[assignment]
    others: tuple[str, ...] = ()

    @property
    def whole(self) -> Fit:
        """The fit of all columns together."""
        return self.together

    @property
    def _top(self) -> tuple[float, float]:
        """The ceiling: a closed system has no peak, if none of its stations slows down."""
        longest = max(self.times().values())
        return np.inf, 1 / longest if longest > 0 else np.inf

    def times(self, values: Mapping[str, Any] | None = None) -> dict[str, float]:
        """The work of each station, per server [s]: the reciprocal of the most it can do. Of
        these `values` of the law, or else of those that were estimated.
        """
        system = self.law.system  # type: ignore[attr-defined]
        at = values or self.values
        return {n: system.work(n, at) / system.most(n, at) for n in system.servers}

    @property
    def dof(self) -> int:
        """Points to spare of all columns together."""
        return self.whole.dof

    @property
    def covariance(self) -> np.ndarray:
        """That of all columns together."""
        return self.whole.covariance

    @property
    def variance(self) -> float:  # type: ignore[override]
        """That of all columns together."""
        return self.whole.variance

    @property
    def _flat(self) -> bool:
        return self.whole._flat

    @property
    def loo_rmse(self) -> float:
        """NaN: a point left out leaves the other columns, so the error would look small."""
        return np.nan

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """As that of a fit. The ends of the interval of "X_max" are as far from the ceiling, as a
        share of it, as the ends of the interval of the curve are from the curve at a load at which
        the system is nearly full.
        """
        if name != "X_max":
            return self.whole.interval(name, level)
        fill = self.X_max * sum(v for q, v in self.values.items() if q[0] in "DZ")
        load = np.rint(min(FULL * max(fill, self.N.max()), systems.networks.MANY / 2))
        far = self.curve([max(load, self.N.max())], level)
        nearer = self.X_max / far.value[0]
        return float(far.low[0] * nearer), float(far.high[0] * nearer)

    def curve(self, N, level: float = 0.95, **_) -> "pd.DataFrame":
        """As that of a fit."""
        return self.whole.curve(N, level, part=1.0)

    def predict(self, N, level: float = 0.95, weight: Any = None, **_) -> "pd.DataFrame":
        """As that of a fit, for a new measurement of this column."""
        return self._predicted(N, level, 1)

    def response(self, N, level: float = 0.95) -> "pd.DataFrame":
        """As `predict`, for R; NaN where R was not measured."""
        import pandas as pd

        if "R" in self.others:
            return self._predicted(N, level, 2 + self.others.index("R"))
        return pd.DataFrame(np.nan, range(len(N)), ["value", "low", "high"])

    def _predicted(self, N, level: float, part: int) -> "pd.DataFrame":
        """Of more than `MANY` loads, intervals of as many are searched for, as each takes time; the
        ratios of their ends to the curve follow between them by interpolation.
        """
        import pandas as pd

        N = np.asarray(N, dtype=float)
        at = N if N.size <= MANY else np.quantile(N, np.linspace(0, 1, MANY), method="nearest")
        value = self.whole.at(at, part=np.full(at.shape, float(part)))
        first = np.flatnonzero(self.whole.known["part"] == part)[0]
        half = np.broadcast_to(self.whole.half, self.whole.N.shape)[first]
        # The error of the part, which all its points have, and that of the rounding at each load.
        error = 1 / self.whole.w[first] - (half / self.whole.X[first]) ** 2 / 3
        weights = 1 / (error + (half / value) ** 2 / 3)
        table = self.whole.predict(at, level, weights, part=float(part))
        if at is N:
            return table
        value = self.whole.at(N, part=np.full(N.shape, float(part)))
        ends = {n: value * np.interp(N, at, table[n] / table["value"]) for n in ("low", "high")}
        return pd.DataFrame({"N": N, "value": value} | ends)


def fit_closed(N: np.ndarray, X: np.ndarray, others: Mapping[str, np.ndarray], **known) -> Face:
    """Fit a closed system to throughputs at numbers of users, and to `others`: response times R [s]
    and utilisations U_name of stations, as far as they were measured.

    The system has a lock, which has one server, and a station for each other utilisation, or
    without any a station called cpu. The number of servers of such a station is found if c_name is
    not `known`, and so is the think time Z. Throughputs alone do not tell one station from another:
    if no number of servers is known either, there is one station, called bottleneck.
    If the lock was not measured, its holder may compute: the utilisation of the processors, cpu,
    then counts the time under the lock as well. This tells if the number of processors is known.
    The result is such a system, if it alone is not rejected (`misses`) or is much the likelier one.
    If both are rejected, what was not measured may be no lock but a pool of several places.
    Raises InputError for measurements that are too few or make no sense.
    """
    face = _fitted(N, X, others, dict(known))
    told = "U_cpu" in others and "U_lock" not in others and "c_cpu" in known
    if not told or "c_lock" in known or face.dof <= 0:
        return face
    computing = _fitted(N, X, others, dict(known), computes="lock")
    if not misses(computing):
        more = compare.log_likelihood(computing.whole) - compare.log_likelihood(face.whole)
        face = computing if misses(face) or 2 * more >= compare.FAR else face
    given = all(f"c_{n[2:]}" in known for n in others if n.startswith("U_"))
    if not given or face.dof <= 1 or not misses(face):
        return face
    several = _fitted(N, X, others, {**known, "c_lock": None})
    low, high = several.interval("c_lock", LEVEL)
    whole = max(2.0, np.ceil(low)) <= high  # so many places has a pool, and no lock
    return several if whole and not misses(several) else face


def _fitted(N, X, others: Mapping[str, np.ndarray], known: dict[str, Any], computes="") -> Face:
    """As `fit_closed`, of one system: that whose station `computes` holds a processor as well, or
    that without such a station.
    """
    nothing = not others and not any(n.startswith("c_") for n in known)
    names = {n[2:]: None for n in (*others, *known) if n[:2] in ("U_", "c_") and n[2:] != "lock"}
    if computes:
        names = {"cpu": None, **names}
    servers: dict[str, Any] = {n: known.pop(f"c_{n}", None) for n in names or ["cpu"]}
    servers["lock"] = known.pop("c_lock", 1)
    if nothing:
        servers = {"bottleneck": None}
    unknown = [f"c_{n}" for n, c in servers.items() if c is None]
    if len(unknown) > 1:
        told = f"{len(unknown)} unknown numbers of servers ({', '.join(unknown)})"
        raise InputError(f"{told}, expected one at most: give others, as in --known {unknown[0]}=4")
    try:
        laws = systems.closed(computes=computes, **servers)
        columns = {n: v for n, v in others.items() if n in laws}
        halves = {n: _rounding(v) for n, v in {"X": X, **columns}.items()}
        whole = joint.measured(laws, {"N": N, "X": X, **columns}, halves, **known)
    except ValueError as wrong:
        raise InputError(str(wrong)) from None
    shares = whole.known["part"] > 1 + ("R" in columns)
    whole = replace(whole, slack=np.where(shares, SHARE, 0.0))  # type: ignore[call-arg]
    own = {field.name: getattr(whole, field.name) for field in fields(Fit)}
    own |= {n: own[n][: len(N)] for n in ("N", "X", "w", "half")}
    own |= {"law": laws["X"], "known": {n: v for n, v in whole.known.items() if n != "part"}}
    return Face(**own, together=whole, others=tuple(n for n in laws if n in columns))


def contradictions(N, X, R=None, Z=None, **U: Any) -> list[str]:
    """What columns of measurements say of each other that cannot be, in sentences.

    N users, throughput X [1/s], response time R [s], think time Z [s], if it is known, and the
    utilisation of each station as a share. N = X (R + Z) holds for any system in which N users take
    turns to think and to wait, up to the errors of measurement, for which `TOLERANCE` allows.

    >>> [what] = contradictions(N=[10, 20], X=[100.0, 200.0], R=[0.1, 0.2])
    >>> what.partition(":")[0]
    'at N = 20, X R = 40 requests are under way, and 20 users can have 20 at most'
    """
    sentences = []
    for name, share in U.items():
        if np.max(share) > FULLEST:
            highest = f"{name} is up to {np.max(share):g}"
            sentences.append(f"{highest}, expected a share of all servers, at most 1")
    N, X = (np.asarray(v, dtype=float) for v in (N, X))
    if Z is not None and R is None and np.max(X * Z / N) > 1 + TOLERANCE:
        worst = int(np.argmax(X * Z / N))
        sentences.append(
            f"at N = {N[worst]:g}, a think time of {Z:.3g} allows a throughput of "
            f"{N[worst] / Z:.4g} at most, and {X[worst]:.4g} was measured: Z may have another unit"
        )
        return sentences
    if R is None:
        return sentences
    R = np.asarray(R, dtype=float)
    under_way = X * R
    worst = int(np.argmax(under_way / N))
    if under_way[worst] > (1 + TOLERANCE) * N[worst]:
        n = f"{N[worst]:g}"
        return [
            *sentences,
            f"at N = {n}, X R = {under_way[worst]:.4g} requests are under way, and {n} users can "
            f"have {n} at most: R or X may count others as well, or have another unit",
        ]
    thinking = np.maximum(N / X - R, 0.0)
    usual = float(np.median(thinking)) if Z is None else float(Z)
    off = X * (R + usual) / N - 1
    worst = int(np.argmax(np.abs(off)))
    if abs(off[worst]) > TOLERANCE:
        told = "its median over all loads" if Z is None else "as given"
        sentences.append(
            f"at N = {N[worst]:g}, users think for N/X - R = {thinking[worst]:.3g} s, and not for "
            f"{usual:.3g} s ({told}): the number of users may have been less or more than N, or "
            "R and X were not measured at the same time"
        )
    return sentences


def other_think_time(N, X, R, Z: float) -> str:
    """What response times say against a given think time Z, which is smaller than what
    `contradictions` finds: how long users think by N/X - R, if that is surely not Z; else nothing.
    """
    cycle = np.asarray(N, dtype=float) / X
    thinking = cycle - R
    usual = float(np.median(thinking))
    error = SURELY * 1.2533 * 1.4826 * np.median(abs(thinking - usual)) / np.sqrt(len(thinking))
    if len(thinking) < 4 or abs(usual - Z) <= max(error, SMALL * Z, SMALL * np.min(cycle)):
        return ""
    return (
        f"by N/X - R, users think for {usual:.4g} s in the median of all rows, and not for "
        f"{Z:.4g} s (as given)"
    )


def _rounding(values: np.ndarray) -> float:
    """Half of the last decimal that is in use."""
    for decimals in range(12):
        if np.allclose(values, np.round(values, decimals), rtol=1e-12, atol=0):
            return 0.5 * 10.0**-decimals
    return 0.0


def misses(fit: Face) -> str:
    """Why a closed system is rejected; nothing for one that is not.

    A test rejects it (`compare.wrong`), or it is farther from a column than `TOLERANCE`, at the
    last load or at half of all loads; from a utilisation, in units of the highest one. A few points
    cannot prove that this is no chance, but such a system does not describe what was measured.
    """
    if rejected := compare.wrong(fit.whole):
        return rejected
    whole = fit.whole
    for part, name in enumerate(("X", *fit.others), 1):
        of_part = whole.known["part"] == part
        N, found, model = whole.N[of_part], whole.X[of_part], whole.at(whole.N)[of_part]
        share = name.startswith("U_")
        off = abs(found - model) / (found.max() if share else np.minimum(found, model))
        last, usual = off[N == N.max()].mean(), np.median(off)
        if max(last, usual) > TOLERANCE:
            where = f"at N = {show(N.max())}" if last > usual else "in the median"
            missed = f"it misses {name} by {show(float(f'{max(last, usual):.2g}'), '%')} {where}"
            return f"{missed}, in units of the highest {name}" if share else missed
    return ""


def farthest(fit: Face) -> float:
    """How far a closed system is from the mean of a column at one load, at most, as a share of it;
    of a utilisation, as a share of its highest mean.
    """
    whole, far = fit.whole, 0.0
    for part, name in enumerate(("X", *fit.others), 1):
        of_part = whole.known["part"] == part
        loads, place = np.unique(whole.N[of_part], return_inverse=True)
        found = np.bincount(place, whole.X[of_part]) / np.bincount(place)
        off = abs(found - whole.at(loads, part=np.full(len(loads), float(part))))
        far = max(far, np.max(off / (found.max() if name.startswith("U_") else found)))
    return float(far)


def _longer(fit: Face, one: str, other: str) -> bool:
    """Whether the demand per server at one station is larger than at another, beyond errors."""

    def apart(values: Mapping[str, Any]) -> float:
        times = fit.times(values)
        return times[one] - times[other]

    far, slopes = apart(fit.values), []
    for quantity in fit.inner:
        step = STEP * fit.values[quantity]
        slopes.append((apart({**fit.values, quantity: fit.values[quantity] + step}) - far) / step)
    error = np.sqrt(slopes @ fit.covariance @ slopes)
    return bool(far > quantile(LEVEL, fit.dof) * error)


def rival(fit: Face) -> str:
    """A system that another station limits, if the points do not exclude it, in a sentence."""

    def longest(values: Mapping[str, Any]) -> str:
        times = fit.times(values)
        return max(times, key=times.__getitem__)

    targets = [of(fit.whole, n) for n in fit.free] if fit.whole.minima else []
    t = max([fit.whole.quantiles(target, shared(LEVEL, 2))[0] for target in targets], default=0)
    for cost, values in fit.whole.minima:
        if cost < t**2 and longest(values) != longest(fit.values):
            most = float(fit.N.max())
            estimates = ", ".join(
                f"{n} = {show(values[n])}"
                if n[0] != "c" or values[n] < most
                else f"{n} > {show(most)}"
                for n in fit.free
            )
            here, there = longest(fit.values), longest(values)
            return (
                f"the measurements do not tell whether {here} limits this system, as the estimates "
                f"say, or {there}, with {estimates}: the utilisation of a station would tell"
            )
    return ""


def limit(fit: Face) -> tuple[str, str] | None:
    """The station that would be full with more users, and why. None if several may be it, and
    where X is all that was measured, or a station is known by neither its servers nor its
    utilisation: stations of other sizes can make the same curves.
    """
    longest = fit.times()
    first, *rest = sorted(longest, key=longest.__getitem__, reverse=True)
    found = fit.law.system.servers[first] is None and first != "lock"  # type: ignore[attr-defined]
    measured = any(n.startswith("U_") for n in fit.others)
    if (
        not fit.others
        or (found and not measured)
        or (rest and longest[rest[0]] > NEAR * longest[first])
    ):
        return None
    if any(not _longer(fit, first, n) for n in rest) or rival(fit):
        return None
    # Two stations of as many servers make the same curves with their names exchanged.
    places = {n: fit.law.system.places(n, fit.values) for n in longest}  # type: ignore[attr-defined]
    alike = [n for n in rest if places[n] == places[first]]
    if f"U_{first}" not in fit.others and any(f"U_{n}" not in fit.others for n in alike):
        return None
    last = float(fit.N.max())
    used = show(float(fit.at([last])[0]) * longest[first], "%")
    return first, f"{used} of it is in use at the last load, {show(last)}, more than of any other"
