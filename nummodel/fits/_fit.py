"""Fits: the quantities of a formula estimated from measurements, and what the estimates are worth.

Intervals are profile intervals (see `_intervals`): they respect bounds. A quantity on a bound has a
one-sided interval and no standard error.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nummodel.arguments import LARGEST, within
from nummodel.errors import InputError
from nummodel.fits import _errors, _intervals, _peaks, _targets
from nummodel.fits._functions import Bounds, Function, law_of
from nummodel.fits._leastsquares import Batch, solve
from nummodel.fits._problem import Solved, problem
from nummodel.fits._search import in_unit, minima, scale_of, search, unit_of
from nummodel.formula import Formula

if TYPE_CHECKING:
    import pandas as pd

#: Loads at most for which the interval of a new measurement is searched for; fewer of many points.
MANY = 100


def fit(
    model: Formula | Callable,
    data: Mapping[str, Any],
    weights: Any = "absolute",
    resolution: Any = 0.0,
    times: Any = 1.0,
    start: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    units: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **known: float,
) -> "Fit":
    """Estimate the quantities of `model` that are neither columns of `data` nor `known`.

    `data` maps quantity names to columns: the load (the law's first quantity), the law's result,
    and any other quantity of the law that was measured. The search begins at the points of a coarse
    mesh; if `start` has a first value for every estimate, the search begins only there, and the
    search for intervals only at the estimates. `weights` say how the error of a measurement depends
    on its size:

    - "absolute": the same everywhere, as in every published USL fit;
    - "relative": the same percentage everywhere, and the curve is the mean of the measurements;
    - "log": the same percentage everywhere, by residuals of ln X, and the curve is their median;
    - "auto": "absolute" or "log", whichever makes the measurements more likely; the `weights` of
      the fit say which, and its `lead` by how much;
    - an array: the factor of each squared residual.

    `times` is how often each measurement counts, such as the number of runs whose mean it is.
    `resolution` is the half-width of the rounding of X, a number or an array: errors are taken to
    be at least as large as rounding makes them.

    Loads are positive, and so is at least one result. A function is given its loads as floats. It
    may take time, if it takes one number for each argument and no arrays: its intervals
    are searched from the estimates only.

    Raises InputError if there are fewer different loads than quantities to estimate, or if the best
    estimates give a result that cannot be; and ValueError for any other argument that makes no
    sense.
    """
    law = law_of(model, data, known, bounds, units, labels)
    if isinstance(weights, str) and weights == "auto":
        rest = {"resolution": resolution, "times": times, "start": start, **known}
        absolute = fit(law, data, "absolute", **rest)
        if not (absolute.X > 0).all():
            return absolute
        log = fit(law, data, "log", **rest)
        lead = _restricted(log) - _restricted(absolute)
        return replace(log if lead > 0 else absolute, lead=abs(lead))
    checked = problem(law, data, weights, resolution, times, known)
    if start is not None:
        if set(start) != set(checked.free):
            names, expected = ", ".join(start), ", ".join(checked.free)
            raise ValueError(f"fit: start has {names}, expected {expected}")
        for name, value in start.items():
            within(name, value, *law.range_of(name))
    given = {field.name: getattr(checked, field.name) for field in fields(checked)}
    local = start is not None or (isinstance(law, Function) and law.slow)
    result = Fit(**given, estimate=search(checked, start), local=local)
    try:
        law(**{law.quantities[0]: result.N}, **result.values)
    except ArithmeticError as impossible:
        raise InputError(str(impossible)) from None
    return result


class Estimate(NamedTuple):
    """The value of a quantity, its standard error, its interval, and whether it is identified."""

    value: float
    stderr: float
    low: float
    high: float
    identified: bool


class Fit(Solved):
    """A law, the measurements that it was fitted to, its estimates and their intervals."""

    def __repr__(self) -> str:
        estimates = ", ".join(f"{name}={value:.4g}" for name, value in self.estimate.items())
        points = f"{len(self.N)} points, {self.weights} weights"
        return f"<Fit of {self.law.__name__}: {estimates}; {points}>"

    def _repr_html_(self) -> str:
        """In a notebook: the estimates, and the curve where the load is all that it takes."""
        table = self.table().to_html(float_format="{:.4g}".format)
        if any(map(np.ndim, self.known.values())):
            return table
        from nummodel import plot
        from nummodel.nomenclature import label

        x, y = (label(n, self.law.meaning(n)) for n in (self.law.quantities[0], self.law.result))
        return table + plot.fitted(self, x, y, alt=repr(self).strip("<>")).html()

    @property
    def whole(self) -> "Fit":
        """The fit of all columns that were fitted together."""
        return self

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Profile interval of an estimate, of "N_opt" (the peak's load) or of "X_max" (the highest
        throughput at any N >= 1). An end is infinite if the data do not bound it, and NaN without
        points to spare. Raises ValueError for what the law lacks, and for an X_max that follows
        from two estimates none of which is a scale.
        """
        movers = _targets.movers(self, name)
        if len(movers) == 1:  # what follows one estimate alone, and may go up and down with it
            low, high = np.minimum(self.interval(movers[0], level), 1e30)
            values = np.linspace(low, high, 17)[: None if low <= high else 0]
            moved = [replace(self, estimate=self.estimate | {movers[0]: v}) for v in values]
            ends = [max(_peaks.top(fit)[name == "X_max"], 0.0) for fit in moved]
            return min(ends, default=np.nan), max(ends, default=np.nan)
        low, high = _intervals.interval(self, _targets.of(self, name), level)
        return float(low[0]), float(high[0])

    def estimates(self, level: float = 0.95) -> dict[str, Estimate]:
        """Of each estimate: value, standard error, profile interval, and whether it is identified.

        NaN where a figure does not exist: no error without points to spare, no standard error on a
        bound. `identified` is false on a bound, for an interval that is as wide as the range, and
        without points to spare.
        """
        if level not in self._estimates:
            stderr = dict(zip(self.inner, np.sqrt(np.diag(self.covariance)), strict=True))
            estimates = {}
            for name in self.free:
                low, high = self.interval(name, level)
                open_ = (
                    not np.isfinite(high) or (low, high) == self.law.range_of(name) or self._flat
                )
                identified = bool(name not in self.at_bound and not open_)
                error = float(stderr.get(name, np.nan))
                estimates[name] = Estimate(self.estimate[name], error, low, high, identified)
            self._estimates[level] = estimates
        return dict(self._estimates[level])

    @cached_property
    def _estimates(self) -> dict[float, dict[str, Estimate]]:
        """The `estimates` so far, by level: their intervals are most of the work of a fit."""
        return {}

    def table(self, level: float = 0.95) -> "pd.DataFrame":
        """The `estimates`, a row each."""
        import pandas as pd

        rows = {name: e._asdict() for name, e in self.estimates(level).items()}
        return pd.DataFrame.from_dict(rows, orient="index")

    def _loads(self, what: str, N: Any, columns: Mapping[str, Any]) -> tuple[np.ndarray, dict]:
        """The loads at which `what` is computed, and the `columns` there, which may be numbers.
        Raises ValueError unless loads are positive, and each column of the fit has values there.
        """
        N = np.atleast_1d(np.asarray(N, dtype=float))
        if not (N > 0).all():
            raise ValueError(f"{what}: {self.law.quantities[0]} must be positive")
        missing = [n for n, v in self.known.items() if np.ndim(v) and n not in columns]
        if missing:
            raise ValueError(f"{what}: {', '.join(missing)} is a column, expected its values there")
        return N, {n: np.zeros(N.shape) + v for n, v in columns.items()}

    def curve(self, N, level: float = 0.95, **columns) -> "pd.DataFrame":
        """The curve with the profile interval for its true height (low, high); one row per N. Other
        columns of the fit need values there.
        """
        import pandas as pd

        N, columns = self._loads("curve", N, columns)
        low, high = _intervals.interval(self, _targets.height(self, N, columns), level)
        return pd.DataFrame({"N": N, "value": self.at(N, **columns), "low": low, "high": high})

    def predict(self, N, level: float = 0.95, weight: Any = None, **columns) -> "pd.DataFrame":
        """The curve with the interval for a new measurement (low, high); one row per N.

        A new measurement is assumed to scatter as much as the fitted points. If the weights of
        these points were given as an array, also give the `weight` of each new point; without it,
        the interval is NaN. A value is in the interval if the fit with this value as one more point
        is not much worse: its sum of squares grows by less than the F threshold. For a straight
        line this interval is exact. Its lower end is never below zero. Other columns of the fit
        need values at the new points.

        Of more than `MANY` loads, the intervals of as many are searched for, and those between
        follow by interpolation, unless weights or columns were given.
        """
        import pandas as pd

        N, columns = self._loads("predict", N, columns)
        at, place = np.unique(N, return_inverse=True)
        many = int(np.clip(10**5 // len(self.folded[0]), 20, MANY))
        if weight is not None or columns:
            at, place = N, np.arange(len(N))
        elif len(at) > many:
            share = np.linspace(0, 1, many // 2)
            even = np.searchsorted(at, at[0] * (at[-1] / at[0]) ** share).clip(0, len(at) - 1)
            at = np.unique(np.append(at[even], np.quantile(at, share, method="nearest")))
        curve, value = self.at(at, **columns), self.at(N, **columns)
        if weight is None:
            weight = np.nan if self.weights == "given" else 1.0
        weight = np.broadcast_to(np.asarray(weight, dtype=float), at.shape)
        target = _targets.observation(self, at, weight, columns)
        low, high = _intervals.interval(self, target, level)
        if len(at) < len(np.unique(N)):
            low, high = (value * np.interp(np.log(N), np.log(at), e / curve) for e in (low, high))
        else:
            low, high = low[place], high[place]
        return pd.DataFrame({"N": N, "value": value, "low": low, "high": high})

    def peak(self) -> tuple[float, float] | None:
        """N and X of the highest throughput at any N >= 1; None for a curve that goes on rising, or
        to a ceiling that is higher. Raises ValueError for a law without N.
        """
        N, X = self._top
        return (N, X) if np.isfinite(N) else None

    @property
    def X_max(self) -> float:
        """The highest throughput of the curve at any N >= 1; infinite if it has neither peak nor
        ceiling.
        """
        return self._top[1]

    @cached_property
    def _top(self) -> tuple[float, float]:
        """What `_peaks.top` finds, once for all who ask."""
        return _peaks.top(self)

    def load_for(self, X: float, level: float = 0.95) -> tuple[float, float, float]:
        """The load at which the curve first reaches `X`, and its interval (low, high).

        The load is infinite if the curve never gets there. The interval holds the loads at which
        `X` lies in the interval of the curve around the estimates, on its way up: low is infinite
        if the data exclude `X` at every load, high if they do not ensure it at any. Both are NaN
        without points to spare. Loads are searched from 1, or the first load if that is smaller,
        to a thousand times the last. Raises ValueError unless `X` is positive and finite.
        """
        if not 0 < X < np.inf:
            raise ValueError(f"load_for: X is {X}, expected a positive number")
        load, low, high = _intervals.load(self, X, level)
        return float(load), float(low), float(high)

    @cached_property
    def loo_rmse(self) -> float:
        """Root mean square error of each point predicted from the others; NaN unless n > p + 2."""
        n = len(self.N)
        counts = np.bincount(self.setting)
        remaining = len(counts) - (counts == 1).any()  # without a point that is alone at its load
        if n <= len(self.free) + 2 or remaining < len(self.free):
            return np.nan
        # Of many points, the error of those that hardly move the curve follows from their leverage.
        leverage = np.sum(np.linalg.qr(self._slopes)[0] ** 2, axis=1) if n > 200 else np.ones(n)
        errors = self.residuals / np.where(leverage < 0.05, 1 - leverage, 1.0)
        omitted = np.flatnonzero(leverage >= 0.05)
        times = np.ones((len(omitted), n))
        times[np.arange(len(omitted)), omitted] = 0
        estimates = refit(self, np.tile(self.X, (len(omitted), 1)), times)
        values = dict(zip(self.free, estimates.T, strict=True))
        values |= {n: v[omitted] for n, v in self.known.items() if np.ndim(v)}
        errors[omitted] = self.X[omitted] - self.at(self.N[omitted], **values)
        return float(np.sqrt(np.mean(errors**2)))

    @cached_property
    def _slopes(self) -> np.ndarray:
        """The `slopes` by the `inner` estimates."""
        return self.slopes(self.inner)

    def slopes(self, names: tuple[str, ...]) -> np.ndarray:
        """Of the weighted residuals, a column for each of these estimates."""
        J = self.law.gradient(names)(**{self.law.quantities[0]: self.N}, **self.values)
        J = J / self.at(self.N)[:, None] if _errors.percent(self.weights) else J
        return J * np.sqrt(self.w)[:, None]

    @cached_property
    def minima(self) -> list[tuple[float, dict[str, Any]]]:
        """Where searches from all over the allowed ranges end, the lowest first: by how much F of
        `_intervals.cost` is higher there than at the estimates, and the values of the law. Nothing
        for a search that began at one place only, or without points to spare.
        """
        if self.local or self.dof <= 0:
            return []
        found = minima(self)
        cost, order = (found.rss - self.rss) / self.variance, np.argsort(found.rss)
        named = [dict(zip(self.free, row.tolist(), strict=True)) for row in found.estimate]
        return [(float(cost[k]), self.known | named[k]) for k in order]

    @cached_property
    def _flat(self) -> bool:
        """Whether some combination of the estimates moves none of the points."""
        if not self.inner:
            return False
        scale = np.abs(self._slopes).max(axis=0)
        return not (scale > 0).all() or np.linalg.matrix_rank(self._slopes / scale) < len(scale)

    @cached_property
    def root(self) -> np.ndarray:
        """A root of the covariance without the `variance`: `covariance` is `variance` times `root`
        times its transpose. The product of slopes and `root` keeps digits that the covariance has
        lost where two estimates nearly trade off. Infinite where the covariance is.
        """
        if self._flat:
            return np.full((len(self.inner),) * 2, np.inf)
        scale = np.abs(self._slopes).max(axis=0)  # so that no square is taken of what is large
        R = np.linalg.qr(self._slopes / scale, mode="r")
        return np.linalg.inv(R) / scale[:, None]

    @cached_property
    def covariance(self) -> np.ndarray:
        """Of the `inner` estimates; infinite where the points leave a combination of them open."""
        if self._flat:
            return self.root
        return self.variance * self.root @ self.root.T


def _restricted(fit: Fit) -> float:
    """The logarithm of the restricted likelihood, by which fits of the same quantities with
    different weights can be compared: it counts only errors that no estimate can follow (Patterson
    and Thompson 1971). Zero where the estimates leave no error to count.
    """
    if fit.dof <= 0:
        return 0.0
    R = np.linalg.qr(fit.slopes(fit.free), mode="r")
    jacobian = np.log(fit.at(fit.N)).sum() if _errors.percent(fit.weights) else 0.0
    of_curves = np.log(np.maximum(np.abs(np.diag(R)), 1 / LARGEST)).sum()
    return float(-fit.dof / 2 * np.log(max(fit.rss, fit.w @ fit.least)) - of_curves - jacobian)


def refit(base: Fit, X: np.ndarray, times: Any = 1.0) -> np.ndarray:
    """Estimates for other X at the same loads, a row for each row of `X`. Each search begins at the
    estimates of `base`. `times` is how often each measurement counts.
    """
    law, unit = base.law, unit_of(base.law, base.X)
    X, known, start = X / unit, in_unit(law, base.given, unit), in_unit(law, base.estimate, unit)
    batch = Batch(law, base.free, known, X, times * base.w, base.weights)
    estimate = solve(batch, np.array([start[n] for n in base.free])).estimate
    scale = scale_of(law, law.quantities[1:])
    return estimate * [unit if n == scale else 1.0 for n in base.free]
