"""Forecasts beyond the last load, with intervals that the curves of other systems have calibrated.

A law may meet all measurements and still be wrong beyond them, and its own statistics cannot know.
So forecasts follow the `Trend` of the last points, and no law but a closed system whose stations
are known (`_followed`).
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nummodel.arguments import FULLEST, LARGEST, numbers
from nummodel.errors import InputError
from nummodel.fits._closed import TOLERANCE, Face
from nummodel.fits._followed import follow
from nummodel.fits._problem import quantile
from nummodel.fits._trend import CHANCES, Trend, trend
from nummodel.models.operational import interactive_response
from nummodel.nomenclature import show

if TYPE_CHECKING:
    import pandas as pd

#: On what forecasts were checked; the tables `scaling-curves` and `mysql2026` have the curves.
CHECKED = (
    "Checked on 161 curves of 109 programs on 47 machines; intervals beyond the data were "
    "calibrated on these and may not hold for yours"
)
#: Why intervals reach far down: what fell is X at a load from the third on.
FELL = (
    "The low end is so low because throughput may collapse: on 13 of 161 curves throughput fell to "
    "less than half within one doubling of the load; of the 118 curves that had been flat before, "
    "8 fell so"
)
#: The largest load that is searched for, as a multiple of the last one. Of the later loads that
#: calibrated the intervals, 99 % are nearer than 20 times the last one.
FAR = 16.0


class Outlook(NamedTuple):
    """What is expected beyond the measurements: their trend; the think time Z [s], if it is known,
    without which nothing is expected of response times; and the closed system that is followed.
    """

    trend: Trend
    Z: float | None = None
    followed: Face | None = None

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


def outlook(
    data: Mapping[str, Any] | Outlook,
    known: Mapping[str, float],
    closed: Face | None = None,
) -> Outlook:
    """The outlook of what `forecast` takes, or one that was made already. `closed` is a closed
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
    N, X, R = columns["N"], columns["X"], columns.get("R")
    shares = {n: np.minimum(v, 1.0) for n, v in columns.items() if n.startswith("U_")}
    for name in shares:
        highest = float(np.nanmax(columns[name], initial=0.0))
        if highest > FULLEST:
            raise InputError(f"{name} is {show(highest)}, expected a share of 1 at most")
    Z = None
    if R is not None and np.isfinite(R).any():
        if np.nanmedian(X * R / N) > 1 + TOLERANCE:
            raise InputError("X R is larger than N: expected R in seconds, and N users at most")
        Z = max(float(np.nanmedian(N / X - R)), 0.0)
    if "Z" in known:
        Z = float(_column("Z", known["Z"]))
        shortest = float(np.min(N / X))
        if Z > shortest * (1 + TOLERANCE):
            why = f"N/X is as short as {show(shortest)}, expected a Z that is no longer"
            raise InputError(f"Z is {show(Z)}, but {why}, in the same unit")
    own = trend(N, X, shares.get("U_cpu"))
    others = shares if R is None else shares | {"R": R}
    whole = all(np.isfinite(v).all() for v in others.values())
    return Outlook(own, Z, follow(N, X, others, known, own, closed) if whole else None)


def _column(name: str, values: Any) -> np.ndarray:
    """Positive measurements, of which R and utilisations may be missing; Z may be 0."""
    try:
        found = numbers(name, values)
    except ValueError as wrong:
        raise InputError(str(wrong)) from None
    may_miss = name == "R" or name.startswith("U_")
    good = found >= 0 if may_miss or name == "Z" else found > 0
    good = (good & (found < LARGEST)) | (may_miss & np.isnan(found))
    if not good.all() or found.ndim != (name != "Z"):
        some = "a number of at least 0" if name == "Z" else "a column of positive numbers"
        raise InputError(f"a forecast cannot use {name}, expected {some}")
    return found


def forecast(
    data: Mapping[str, Any] | Outlook, at: Any, level: float = 0.95, **known: float
) -> "pd.DataFrame":
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
    follows a closed system that meets all columns, if there is one (`_followed`). The width of the
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


def chance(
    data: Mapping[str, Any] | Outlook, at: Any, X: float = np.nan, R: float = np.nan, **known: float
) -> np.ndarray:
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
    data: Mapping[str, Any] | Outlook, R: float, level: float = 0.95, **known: float
) -> tuple[float, float, float]:
    """The largest load beyond the measurements at which the mean response time is no more than `R`
    [s], and its interval (low, high). `data` and `known` are those of `forecast`.

    The interval ends where the ends of the interval of the response time reach R for the last time:
    at the last measured load, if the upper end is above R from there on. A load of more than `FAR`
    times the last one is told as infinite. Raises as `forecast` does, and InputError for response
    times that are not known, and for an R that is exceeded at the last load already.
    """
    quantile(level, 1)  # raises ValueError for a level that makes no sense
    seen = outlook(data, known)
    first = float(seen.responses(np.array([seen.trend.N]), np.array([0.5]))[0, 0])
    if not first <= R < np.inf:
        told = f"R = N/X - Z is {show(first)} at the last load, {show(seen.trend.N)}"
        raise InputError(f"no load beyond the measurements: {told}, expected a larger R than this")

    return _passed(seen.responses, R, seen.trend.N, level, last=True)


def smallest_load(
    data: Mapping[str, Any] | Outlook, X: float, level: float = 0.95, **known: float
) -> tuple[float, float, float]:
    """The smallest load beyond the measurements at which a throughput of `X` [1/s] is expected, and
    its interval (low, high). `data` and `known` are those of `forecast`.

    The interval ends where the ends of the interval of the throughput first reach X. A load of more
    than `FAR` times the last one is told as infinite. Raises as `forecast` does, and InputError for
    an X that the last load has already.
    """
    quantile(level, 1)  # raises ValueError for a level that makes no sense
    seen = outlook(data, known)
    if not seen.trend.X < X < np.inf:
        told = f"X is {show(seen.trend.X)} at the last load, {show(seen.trend.N)}"
        raise InputError(f"no load beyond the measurements: {told}, expected a larger X than this")

    return _passed(seen.throughputs, X, seen.trend.N, level, last=False)


def _passed(
    quantiles: Callable, target: float, start: float, level: float, last: bool
) -> tuple[float, float, float]:
    """The loads at which the middle, the upper and the lower end pass a target upwards, for the
    first or for the last time: `start`, if one is above it from there on, and infinite, if it is
    not so up to `FAR` times this load.
    """
    from scipy.optimize import brentq

    N = start * np.geomspace(1 + 1e-9, FAR, 200)

    def load(share: float) -> float:
        def over(logs: Any) -> np.ndarray:
            return quantiles(np.exp(np.atleast_1d(logs)), np.array([share]))[:, 0] - target

        above = over(np.log(N)) > 0
        if last:  # the first load after the last one that is not above
            found = len(N) - int(np.argmin(above[::-1])) if not above.all() else 0
        else:
            found = int(np.argmax(above)) if above.any() else len(N)
        if found in (0, len(N)):
            return start if found == 0 else np.inf
        ends = np.log(N[found - 1 : found + 1])
        return float(np.exp(brentq(lambda logs: float(over(logs)[0]), *ends, xtol=1e-12)))

    return load(0.5), load((1 + level) / 2), load((1 - level) / 2)


def _beyond(data, at, known) -> tuple[np.ndarray, Outlook]:
    """The loads, all of them beyond the measurements, and the outlook there."""
    N, seen = _column("at", np.atleast_1d(at)), outlook(data, known)
    if not (N > seen.trend.N).all():
        first, last = show(float(N.min())), show(seen.trend.N)
        raise InputError(f"no forecast at {first}: expected loads beyond the last one, {last}")
    return N, seen
