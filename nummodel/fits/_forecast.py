"""Forecasts beyond the last load, with intervals that the curves of other systems have calibrated.

A law may meet all measurements and still be wrong beyond them, and its own statistics cannot know.
So the middle of a forecast goes on as the last points do and bends to a ceiling (`Trend`), and its
interval is as wide as the errors of such forecasts for the curves of many systems: 125 of 15
sources, and 36 of database servers. `benchmarks/forecast.py` computes `SPREAD` from these curves,
and leaves each source out in turn to see how well that works. The other constants are round numbers
set by hand. No law is followed but a closed system whose stations are known, and that meets the
measurements (`follow`): the width of the interval remains the same.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nummodel.arguments import FULLEST, LARGEST, numbers
from nummodel.errors import InputError
from nummodel.fits import closed
from nummodel.fits._estimates import Fit, quantile
from nummodel.models.operational import interactive_response
from nummodel.nomenclature import show

if TYPE_CHECKING:
    import pandas as pd

#: How sharply the middle bends: N / (1 + (N/b)^q)^(1/q), with two straight lines for large q.
BEND = 3.0
#: The steepest slope that goes on: a little less than in proportion to N.
STEEPEST = 0.999
#: What is left of a fall with each doubling of the load.
FALLING = 0.5
#: The shares of errors that lie below the quantiles in `SPREAD`. The middle is taken for the
#: median, though a little more than half of all errors lie below it.
SHARES = (0.025, 0.05, 0.1, 0.25, 0.75, 0.9, 0.95, 0.975)
#: For each share, the error of ln X in units of `distance`: a constant, and its slopes by the
#: quantities of `Trend.traits`.
SPREAD = (
    (-0.768, 0.434, -0.345, 0.225, -2.060),
    (-0.248, -0.081, -0.544, -0.138, -1.726),
    (-0.076, -0.247, -0.477, -0.119, -0.480),
    (-0.030, -0.153, -0.212, -0.046, -0.023),
    (-0.010, 0.274, 0.230, 0.044, -1.026),
    (0.004, 0.506, 0.230, 0.182, -1.430),
    (0.011, 0.616, 0.458, 0.484, -1.582),
    (0.094, 0.652, 0.396, 0.538, -1.755),
)
#: By this share, throughput may exceed what the utilisation of the processors leaves room for.
SPARE = 0.06
#: So many doublings are added to the distance of a load, as even at the last one an interval has
#: the errors of two measurements, the last one and the new one.
NEAREST = 0.15
#: The points of a slope span at least this factor of loads.
SPAN = 1.5
#: The probabilities at which the distribution of a forecast is computed; between them it is a line.
CHANCES = np.concatenate([[1e-4, 1e-3], np.linspace(0.005, 0.995, 199), [0.999, 0.9999]])
#: The largest load that is searched for, as a multiple of the last one. Of the later loads that
#: calibrated the intervals, 99 % are nearer than 20 times the last one.
FURTHEST = 16.0
#: No system is followed that misses the last third of the measured throughputs by more than the
#: first share on average, or one of them by more than the second share.
AVERAGE, WORST = 0.05, 0.1
#: There are at least so many more loads than stations: with as few loads as estimates, a system
#: meets any throughputs, and then R = N/X - Z says hardly more than X does.
MORE = 3
#: Multiples of the last load at which the interval of the system has to be the narrower one.
AHEAD = np.array([2.0, 16.0])


class Trend(NamedTuple):
    """How the last points rise: the last load N and throughput X (the geometric mean of its
    measurements), the slope of ln X by ln N there, the load `since` which it was found, and the
    slope before; the highest X for each N so far; and what X would be if the processors were full,
    and each transaction needed as much of them as at the last load (infinite, if not known).
    """

    N: float
    X: float
    slope: float
    since: float
    before: float
    each: float
    room: float = np.inf

    @property
    def _slopes(self) -> np.ndarray:
        """The last two, as far as slopes may be steep."""
        return np.clip([self.slope, self.before], -1.0, 1.1)

    @property
    def taken(self) -> float:
        """The slope that goes on: the smaller one of the last two, or a fall."""
        slope, before = self._slopes
        return float(min(slope, before, STEEPEST) if slope > 0 else slope)

    @property
    def traits(self) -> np.ndarray:
        """What the errors of forecasts depend on: 1, the rise, the fall, the change of the slope,
        and by how much a rise is steeper than 0.8.
        """
        s, change = self.taken, abs(np.subtract(*self._slopes))
        return np.array([1.0, max(s, 0.0), max(-s, 0.0), change, max(s - 0.8, 0.0)])

    def middle(self, N: np.ndarray) -> np.ndarray:
        """The forecast of ln X."""
        ahead, s = np.log(N / self.N), self.taken
        if s <= 0:
            left = (1 - FALLING ** (ahead / np.log(2))) / (1 - FALLING)
            return np.log(self.X) + s * FALLING * np.log(2) * left
        c = 1 / max(s, 1e-3) - 1  # (N/b)^q at the last load
        bent = np.log((1 + c * np.exp(BEND * ahead)) / (1 + c)) / BEND
        return np.log(self.X) + ahead - bent

    @property
    def end(self) -> float:
        """X in the end, as N grows for ever: the ceiling of a rise, or the floor of a fall."""
        s = self.taken
        if s <= 0:
            return float(self.X * 2 ** (s * FALLING / (1 - FALLING)))
        return float(min(self.X * (1 - s) ** (-1 / BEND), self.room))

    def spread(self, shares: np.ndarray, constants: Any = SPREAD) -> np.ndarray:
        """What is added to the middle for each unit of `distance`, for each share. Between the
        `SHARES`, and beyond them, quantiles follow those of the normal distribution.
        """
        from scipy.special import ndtri

        offs = np.asarray(constants) @ self.traits
        half = len(SHARES) // 2
        offs = np.concatenate([np.minimum(offs[:half], 0), [0.0], np.maximum(offs[half:], 0)])
        known, z = ndtri(np.insert(SHARES, half, 0.5)), ndtri(shares)
        beyond = np.maximum(np.maximum(z / known[-1], z / known[0]), 1)
        return np.interp(z, known, np.sort(offs)) * beyond

    def quantiles(
        self, N: np.ndarray, shares: np.ndarray, constants: Any = SPREAD, law: Any = None
    ) -> np.ndarray:
        """The quantiles of ln X: a row for each load, a column for each share. They lie around the
        middle, or around the ln X of a `law` that is followed. X is not expected to be more in
        proportion to N than it was, nor more than processors have room for. Above the middle, the
        part of the distribution beyond these bounds is removed, and for `SPARE` more, as
        utilisations have errors; below the middle, nothing changes.
        """
        root, line = distance(np.log2(N / self.N)), np.log(self.each * N)
        most, shares = np.minimum(line, np.log(self.room * (1 + SPARE))), np.asarray(shares)
        if law is None:
            middle = np.minimum(np.minimum(self.middle(N), line), np.log(self.room))
        else:
            middle = np.minimum(law, most)
        room = (most - middle) / root
        left = np.interp(room, self.spread(CHANCES, constants), CHANCES, right=1.0)
        above = 0.5 + (shares - 0.5) * (2 * np.maximum(left, 0.5)[:, None] - 1)
        taken = np.clip(np.where(shares > 0.5, above, shares), 1e-300, 1 - 1e-16)
        return middle[:, None] + root[:, None] * self.spread(taken, constants)


def distance(doublings: np.ndarray) -> np.ndarray:
    """The factor by which errors of forecasts grow with doublings of the last load. The square root
    is that of a random walk; NEAREST keeps errors close to the last load above 0.
    """
    return np.sqrt(doublings + NEAREST)


def trend(N: np.ndarray, X: np.ndarray, U: np.ndarray | None = None) -> Trend:
    """The trend of throughputs X at loads N, and of the utilisation U of the processors.

    A slope is that of a straight line through the logarithms of the last points: of those from half
    of the last load on, and at least as many as span a factor of `SPAN`. The slope before is found
    in the same way from the points up to where that line begins. Raises InputError for less than
    three loads.
    """
    loads, x = _means(N, np.log(X))
    if len(loads) < 3:
        told = f"and there are {len(loads)}"
        raise InputError(f"a forecast needs three different loads at least, {told}")
    logs = np.log(loads)
    first, slope = _line(logs, x, len(logs) - 1)
    before = _line(logs, x, first)[1] if first else slope
    each, room = float(np.exp(np.max(x - logs))), np.inf
    busy = np.array([]) if U is None else U[(loads[-1] == N) & np.isfinite(U)]
    if len(busy):
        room = max(np.exp(x[-1]) / max(busy.mean(), 1e-9), np.exp(x.max()))
    last, since = float(loads[-1]), float(loads[first])
    return Trend(last, float(np.exp(x[-1])), slope, since, before, each, float(room))


def _means(N: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different loads, and the mean of the values at each."""
    loads, place = np.unique(N, return_inverse=True)
    return loads, np.bincount(place, values) / np.bincount(place)


def _line(logs: np.ndarray, x: np.ndarray, last: int) -> tuple[int, float]:
    """Where the straight line begins that ends at the `last` point, and its slope."""
    half = int(np.searchsorted(logs, logs[last] - 1.01 * np.log(2)))
    wide = int(np.searchsorted(logs, logs[last] - np.log(SPAN), side="right")) - 1
    first = max(min(half, wide), 0)
    along = logs[first : last + 1] - logs[first : last + 1].mean()
    return first, float(along @ x[first : last + 1] / (along @ along))


def _counted(others: Mapping[str, np.ndarray], known: Mapping[str, float]) -> bool:
    """Whether the numbers of servers of all stations are known. A station has a utilisation among
    the `others`, or is called cpu; the lock has one server, and so has a device (`fit_closed`).
    """
    stations = {n[2:] for n in (*others, *known) if n.startswith(("U_", "c_"))} - {"lock"}
    counted = ["c_cpu" in known if n == "cpu" else f"U_{n}" in others for n in stations]
    return bool(counted) and all(counted)


def follow(
    N: np.ndarray,
    X: np.ndarray,
    others: Mapping[str, np.ndarray],
    known: Mapping[str, float],
    trend: Trend,
    fitted: Fit | None = None,
) -> Fit | None:
    """The closed system that a forecast follows: of known stations, rejected by no test, near the
    last throughputs, and determined more narrowly than the trend. None without such a system, and
    where a fall is seen, as no closed system falls. `fitted` is the fit to these columns, if there
    is one already.

    Measurements hardly tell how many servers a station has, so no system is followed unless these
    numbers are known. A system that meets the measurements may still be wrong beyond them.
    """
    if not _counted(others, known):
        return None
    try:
        found = fitted or closed.fit_closed(N, X, others, **known)
    except InputError:
        return None
    if any(n.startswith("c_") for n in found.free):
        return None
    loads, missed = _means(N, np.log(X / found.at(N)))
    last = missed[2 * len(loads) // 3 :]
    near = abs(last.mean()) <= AVERAGE and abs(last).max() <= WORST
    few = len(loads) < len(closed.times(found)) + MORE
    if few or not near or closed.falls(found) or closed.misses(found):
        return None
    at, ends = AHEAD * trend.N, np.array([(1 - closed.LEVEL) / 2, (1 + closed.LEVEL) / 2])
    narrower = width(found, at) < np.diff(trend.quantiles(at, ends))[:, 0]
    return found if narrower.all() else None


def width(found: Fit, N: np.ndarray) -> np.ndarray:
    """That of the interval of ln X on the curve of a closed system, by the slopes of the curve."""
    J = found.slopes_at(N)
    variance = np.einsum("ij,jk,ik->i", J, found.covariance, J)
    return 2 * quantile(closed.LEVEL, found.dof) * np.sqrt(np.abs(variance)) / found.at(N)


class Outlook(NamedTuple):
    """What is expected beyond the measurements: their trend; the think time Z [s], if it is known,
    without which nothing is expected of response times; and the closed system that is followed.
    """

    trend: Trend
    Z: float | None = None
    followed: Fit | None = None

    def throughputs(self, N: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Throughputs that are not reached with these probabilities: a row for each load, a column
        for each share.
        """
        law = np.log(self.followed.at(N)) if self.followed else None
        return np.exp(self.trend.quantiles(N, shares, law=law))

    def responses(self, N: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """The same of mean response times. Raises InputError without Z."""
        if self.Z is None:
            raise InputError("response times are not known: expected a column R, or a think time Z")
        X = self.throughputs(N, 1 - shares)
        return np.maximum(interactive_response.unchecked(N=N[:, None], X=X, Z=self.Z), 0.0)


#: What forecasts take: columns, or the outlook that they give.
Data = Mapping[str, Any] | Outlook


def outlook(data: Data, known: Mapping[str, float], fitted: Fit | None = None) -> Outlook:
    """The outlook of what `forecast` takes, or one that was made already. `fitted` is a closed
    system that was fitted to the same columns. Raises InputError as `forecast` does.
    """
    if isinstance(data, Outlook):
        return data
    wrong = [n for n in known if n != "Z" and not n.startswith("c_")]
    if wrong:
        raise InputError(f"a forecast takes no {wrong[0]}, expected Z, or servers such as c_cpu")
    names = ["N", "X", "R", *(n for n in data if n.startswith("U_"))]
    columns = {n: _column(n, data[n]) for n in names if n in data}
    if not {"N", "X"} <= set(columns) or len({v.shape for v in columns.values()}) > 1:
        raise InputError("a forecast needs columns N and X, and as many values in each column")
    N, X = columns.pop("N"), columns.pop("X")
    Z = _thinking(N, X, columns.get("R"), known)
    own = trend(N, X, columns.get("U_cpu"))
    whole = all(np.isfinite(v).all() for v in columns.values())
    return Outlook(own, Z, follow(N, X, columns, known, own, fitted) if whole else None)


def _column(name: str, values: Any) -> np.ndarray:
    """Positive measurements, of which R and utilisations may be missing or 0; Z may be 0, too.
    Errors may have put a utilisation above 1.
    """
    try:
        found = numbers(name, values)
    except ValueError as wrong:
        raise InputError(str(wrong)) from None
    share = name.startswith("U_")
    may_miss = share or name == "R"
    good = found >= 0 if may_miss or name == "Z" else found > 0
    good = (good & (found < LARGEST)) | (may_miss & np.isnan(found))
    if not good.all() or found.ndim != (name != "Z"):
        some = "a number of at least 0" if name == "Z" else "a column of positive numbers"
        raise InputError(f"a forecast cannot use {name}, expected {some}")
    if share and (found > FULLEST).any():
        raise InputError(f"{name} is {show(np.nanmax(found))}, expected a share of 1 at most")
    return np.minimum(found, 1.0) if share else found


def _thinking(N: np.ndarray, X: np.ndarray, R: Any, known: Mapping[str, float]) -> float | None:
    """The think time Z [s], as it is known or follows from response times; None without these.
    Raises InputError for one that contradicts the rest.
    """
    Z = float(_column("Z", known["Z"])) if "Z" in known else None
    if Z is not None and Z > (shortest := np.min(N / X)) * (1 + closed.TOLERANCE):
        why = f"N/X is as short as {show(shortest)}, expected a Z that is no longer"
        raise InputError(f"Z is {show(Z)}, but {why}, in the same unit")
    if R is None or np.isnan(R).all():
        return Z
    if np.nanmedian(X * R / N) > 1 + closed.TOLERANCE:
        raise InputError("X R is larger than N: expected R in seconds, and N users at most")
    return max(float(np.nanmedian(N / X - R)), 0.0) if Z is None else Z


def forecast(data: Data, at: Any, level: float = 0.95, **known: float) -> "pd.DataFrame":
    """Throughput, and mean response time where it is known, at loads beyond the measurements.

    `data` maps N to loads, X to throughputs [1/s] and, where they were measured, R to mean response
    times [s] and U_name to the utilisation of a station, as a share of all its servers; that of the
    processors is U_cpu. There are at least three different loads. No forecast exceeds the highest X
    for each N so far, nor by more than `SPARE` what U_cpu leaves room for, if a transaction needs
    as much as before. `known` may have the think time Z [s], which otherwise follows from R, and
    numbers of servers, such as c_cpu. The columns of the table are N, X and its interval (low,
    high) and, with R or Z, also R, R_low and R_high. Nothing is said of percentiles of response
    times.

    The middle continues the last points. If the number of servers of every station is known, it
    follows a closed system that meets all columns, if there is one (`follow`). The width of the
    interval is always that of forecasts that followed no law.

    A measurement at such a load lies in the interval with the probability `level`, if the system
    is like those whose curves calibrated it; no more than that is known.

    Raises ValueError for a level that is not between 0 and 1, and InputError for loads that are not
    beyond the last one, and for columns that make no sense.

    >>> table = forecast({"N": [1, 2, 4, 8], "X": [100, 195, 370, 650]}, at=[16])
    >>> bool(500 < table.low[0] < table.X[0] < table.high[0] < 1600)
    True
    """
    import pandas as pd

    quantile(level, 1)  # raises ValueError for a level that makes no sense
    N, seen = _beyond(data, at, known)
    shares = np.array([(1 - level) / 2, 0.5, (1 + level) / 2])
    low, X, high = seen.throughputs(N, shares).T
    table = pd.DataFrame({"N": N, "X": X, "low": low, "high": high})
    if seen.Z is None:
        return table
    low, R, high = seen.responses(N, shares).T
    return table.assign(R=R, R_low=low, R_high=high)


def chance(data: Data, at: Any, X: float = np.nan, R: float = np.nan, **known: float) -> np.ndarray:
    """The probability, at each load, that the throughput is `X` or more, or that the mean response
    time is `R` or less. `data`, `at` and `known` are those of `forecast`.

    Raises ValueError unless one of X and R is given, and InputError as `forecast` does, and for a
    response time that is neither measured nor follows from a think time.

    >>> bool(chance({"N": [1, 2, 4, 8], "X": [100, 195, 370, 650]}, at=[16], X=650)[0] > 0.9)
    True
    """
    if np.ndim(X) or np.ndim(R) or np.isnan(X) == np.isnan(R):
        raise ValueError("chance: expected one X or one R")
    N, seen = _beyond(data, at, known)
    if np.isnan(R):
        found = seen.throughputs(N, CHANCES)
        return np.array([1 - np.interp(X, row, CHANCES, 0, 1) for row in found])
    return np.array([np.interp(R, row, CHANCES, 0, 1) for row in seen.responses(N, CHANCES)])


def largest_load(
    data: Data, R: float, level: float = 0.95, **known: float
) -> tuple[float, float, float]:
    """The largest load beyond the measurements at which the mean response time is no more than `R`
    [s], and its interval (low, high). `data` and `known` are those of `forecast`.

    The interval ends where the ends of the interval of the response time reach R for the last time:
    at the last measured load, if the upper end is above R from there on. A load of more than
    `FURTHEST` times the last one is told as infinite. Raises as `forecast` does, and InputError for
    response times that are not known, and for an R that is exceeded at the last load already.
    """
    return _load(outlook(data, known), "R", R, level)


def smallest_load(
    data: Data, X: float, level: float = 0.95, **known: float
) -> tuple[float, float, float]:
    """The smallest load beyond the measurements at which a throughput of `X` [1/s] is expected, and
    its interval (low, high). `data` and `known` are those of `forecast`.

    The interval ends where the ends of the interval of the throughput first reach X. A load of more
    than `FURTHEST` times the last one is told as infinite. Raises as `forecast` does, and
    InputError for an X that the last load has already.
    """
    return _load(outlook(data, known), "X", X, level)


def _load(seen: Outlook, name: str, target: float, level: float) -> tuple[float, float, float]:
    """The loads at which the middle, the upper and the lower end of X pass a target upwards for the
    first time, or those of R for the last time: the last measured load, if one is above it from
    there on, and infinite, if it is not so up to `FURTHEST` times this load.
    """
    from scipy.optimize import brentq

    quantile(level, 1)  # raises ValueError for a level that makes no sense
    of_R, last = name == "R", seen.trend.N
    quantiles, told = (seen.responses, "R = N/X - Z") if of_R else (seen.throughputs, "X")
    now = float(quantiles(np.array([last]), np.array([0.5]))[0, 0]) if of_R else seen.trend.X
    if (target < now if of_R else target <= now) or not target < np.inf:
        told = f"{told} is {show(now)} at the last load, {show(last)}, expected a larger {name}"
        raise InputError(f"no load beyond the measurements: {told} than this")
    logs = np.log(last * np.geomspace(1 + 1e-9, FURTHEST, 200))

    def load(share: float) -> float:
        def over(logs: np.ndarray) -> np.ndarray:
            return quantiles(np.exp(logs), np.array([share]))[:, 0] - target

        above = over(logs) > 0
        if of_R:  # the first load after the last one that is not above
            found = max(np.flatnonzero(~above), default=-1) + 1
        else:
            found = min(np.flatnonzero(above), default=len(logs))
        if found in (0, len(logs)):
            return np.inf if found else last
        ends = logs[found - 1], logs[found]
        return float(np.exp(brentq(lambda log: over(np.array([log]))[0], *ends, xtol=1e-12)))

    return load(0.5), load((1 + level) / 2), load((1 - level) / 2)


def _beyond(data, at, known) -> tuple[np.ndarray, Outlook]:
    """The loads, all of them beyond the measurements, and the outlook there."""
    N, seen = _column("at", np.atleast_1d(at)), outlook(data, known)
    if not (N > seen.trend.N).all():
        first, last = show(float(N.min())), show(seen.trend.N)
        raise InputError(f"no forecast at {first}: expected loads beyond the last one, {last}")
    return N, seen
