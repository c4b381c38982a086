"""What the estimates of a fit are worth: errors, intervals, predictions, peaks.

Intervals are profile intervals (see `Region`): they respect bounds. A quantity on a bound has a
one-sided interval and no standard error.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nummodel.arguments import numbers
from nummodel.fits._squares import (
    Column,
    Problem,
    Region,
    errors,
    measured,
    percent,
    rounding,
    solve,
)
from nummodel.formula import STEP, Formula
from nummodel.models import networks, scaling
from nummodel.models.systems import Measured

if TYPE_CHECKING:
    import pandas as pd

#: Loads at most for which intervals are searched for; between them the ends follow.
MANY = 40
#: An end this many times beyond the estimate, or the measurements, is as good as infinite.
FAR = 1e9
#: How many times the last load a function is searched for its peak that may take time for each N.
NEAR = 100
#: A load at which a closed system is near its ceiling, as a multiple of the users who fill it.
FULL = 10.0
#: How far beside a peak the slopes of a curve are taken, as a share of the load.
BESIDE = 1e-3


class Estimate(NamedTuple):
    """The value of a quantity, its standard error, its interval, and whether it is identified."""

    value: float
    stderr: float
    low: float
    high: float
    identified: bool


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """Laws, the measurements that they were fitted to, their estimates and the intervals of these.

    `others` are further minima, the lowest first: their sums of squares, and the estimates there.
    `lead` is the lead in log-likelihood over other weights, if the weights were found from the
    points. Where several columns were fitted together, `N`, `X` and what else is of one column are
    those of the first, and methods take another one by its name.
    """

    problem: Problem
    estimate: dict[str, float]
    others: tuple[tuple[float, dict[str, float]], ...] = ()
    lead: float = np.inf

    def __repr__(self) -> str:
        estimates = ", ".join(f"{name}={value:.4g}" for name, value in self.estimate.items())
        points = f"{len(self.N)} points, {self.weights} weights"
        return f"<Fit of {self.law.__name__}: {estimates}; {points}>"

    def _repr_html_(self) -> str:
        """In a notebook: the estimates, and the curve where the load is all that it takes."""
        table = self.table().to_html(float_format="{:.4g}".format)
        if len(self.columns[0].given) > 1:
            return table
        from nummodel import plot
        from nummodel.nomenclature import label

        x, y = (label(n, self.law.meaning(n)) for n in (self.law.quantities[0], self.law.result))
        return table + plot.fitted(self, x, y, alt=repr(self).strip("<>")).html()

    columns = property(lambda self: self.problem.columns, doc="The columns, a `Column` each.")
    weights = property(lambda self: self.problem.kind, doc="The kind of weights.")
    free = property(lambda self: self.problem.free, doc="The names of the estimates.")
    known = property(lambda self: self.problem.known, doc="What is known as a number.")
    law = property(lambda self: self.columns[0].law, doc="The law of the first column.")
    N = property(lambda self: self.columns[0].N, doc="The loads of the first column.")
    X = property(lambda self: self.columns[0].X, doc="The results of the first column.")
    w = property(lambda self: self.columns[0].w, doc="The weights of the first column.")
    half = property(lambda self: self.columns[0].half, doc="The half-widths of their rounding.")
    all_w = property(lambda self: self.problem.w[:, 0], doc="The weights of all columns.")

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(c.law.result for c in self.columns)

    @cached_property
    def part(self) -> np.ndarray:
        """The place of the column of each point."""
        return np.repeat(np.arange(len(self.columns)), [len(c.X) for c in self.columns])

    @property
    def dof(self) -> int:
        """Points less estimated quantities, those on a bound included."""
        return len(self.part) - len(self.free)

    @property
    def values(self) -> dict[str, Any]:
        """Known and estimated quantities together: what the law is called with."""
        return self.known | self.estimate

    @property
    def _p(self) -> np.ndarray:
        return np.array([self.estimate[n] for n in self.free])

    @cached_property
    def means(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Those of the first column (see `Column.means`)."""
        return self.columns[0].means(self.weights)

    @cached_property
    def setting(self) -> np.ndarray:
        """The points of a column with the same load and other quantities have the same number."""
        each, first = [], 0
        for c in self.columns:
            each.append(first + c.setting)
            first = int(each[-1].max()) + 1
        return np.concatenate(each)

    @cached_property
    def scatter(self) -> float:
        """The weighted squares of the measurements around the means of each `setting`."""
        return sum(c.means(self.weights)[2] for c in self.columns)

    @cached_property
    def all_curves(self) -> np.ndarray:
        """The fitted results of all points."""
        return self.problem.curves(self._p[:, None])[:, 0]

    @cached_property
    def errors(self) -> np.ndarray:
        """The weighted errors of all points."""
        X = self.problem.X[:, 0]
        return np.sqrt(self.all_w) * errors(self.weights, X, self.all_curves)

    @property
    def rss(self) -> float:
        """The sum of the squares of the weighted errors."""
        return float(self.errors @ self.errors)

    def _weighted(self, halves: list[np.ndarray]) -> np.ndarray:
        """Half-widths of all points as weighted errors, from those of each column."""
        half = np.concatenate(halves)
        half = half / self.problem.X[:, 0] if percent(self.weights) else half
        return np.sqrt(self.all_w) * half

    @cached_property
    def least(self) -> np.ndarray:
        """What the weighted square of each error is at least, by rounding of figures and floats."""
        own = self._weighted([c.half for c in self.columns]) ** 2 / 3
        floats = rounding(self.weights, self.problem.X[:, 0])
        return np.maximum(own, self.all_w * floats**2)

    @cached_property
    def forgiven(self) -> np.ndarray:
        """The largest error of each point, weighted, that does not count against the law: half a
        unit of the point's last digit, or the slack of its column if that is larger.
        """
        return self._weighted([np.maximum(c.half, c.slack) for c in self.columns])

    @cached_property
    def variance(self) -> float:
        """Error variance of a measurement of weight 1; NaN without points to spare. It is at least
        that of rounding: the mean square error of a figure that is rounded to +-h is h^2/3.
        """
        return max(self.rss / self.dof, float(np.mean(self.least))) if self.dof > 0 else np.nan

    @property
    def residuals(self) -> np.ndarray:
        """Measured less fitted, in the unit of X."""
        return self.X - self.at(**self.columns[0].given)

    @cached_property
    def at_bound(self) -> dict[str, float]:
        """The estimates that sit on a bound of their range, with the bound."""
        ends = zip(self.free, self.problem.ends.T, strict=True)
        return {n: float(b) for n, both in ends for b in both if self.estimate[n] == b}

    @property
    def inner(self) -> tuple[str, ...]:
        """The estimates off their bounds."""
        return tuple(n for n in self.free if n not in self.at_bound)

    def column(self, which: int | str = 0) -> int:
        """The place of a column, by its name. Raises ValueError for one that is not there."""
        if isinstance(which, str):
            if which not in self.results:
                expected = f"expected one of: {', '.join(self.results)}"
                raise ValueError(f"no column {which} was fitted, {expected}")
            return self.results.index(which)
        return which

    def at(self, N: Any = None, column: int | str = 0, **columns: Any) -> np.ndarray:
        """The fitted curve of a column. `columns` are the other measured quantities of the law at
        these N; if they are omitted, those of the measured points are used. Raises ValueError if a
        column does not have one value for each N.
        """
        of = self.columns[self.column(column)]
        load = of.law.quantities[0]
        N = columns.pop(load) if load in columns else N
        given = {n: v for n, v in of.given.items() if n != load} | columns
        for n, value in given.items():
            if np.ndim(value) and np.shape(value) != np.shape(N):
                told = f"{np.size(value)} {n} and {np.size(N)} loads"
                raise ValueError(f"at: {told}, expected as many")
        every = {**self.values, **given, load: numbers(load, N)}
        return of.law.unchecked(**{n: every[n] for n in of.law.quantities})

    def slopes_at(self, N: np.ndarray, column: int | str = 0) -> np.ndarray:
        """The slopes of a fitted curve by the `inner` estimates, a row for each N."""
        law = self.columns[self.column(column)].law
        own = tuple(n for n in self.inner if n in law.quantities)
        every = {**self.values, law.quantities[0]: N}
        found = law.gradient(own)(**{n: every[n] for n in law.quantities})
        slopes = np.zeros((len(N), len(self.inner)))
        slopes[:, [self.inner.index(n) for n in own]] = found
        return slopes

    @cached_property
    def slopes(self) -> np.ndarray:
        """The slopes of the weighted errors of all points by the `inner` estimates."""
        curve, J = self.problem.slopes(self._p[:, None])
        inner = [self.free.index(n) for n in self.inner]
        unit = np.sqrt(self.all_w) / (curve[:, 0] if percent(self.weights) else 1.0)
        return J[inner, :, 0].T * unit[:, None]

    @cached_property
    def flat(self) -> bool:
        """Whether some combination of the estimates moves none of the points."""
        if not self.inner:
            return False
        scale = np.abs(self.slopes).max(axis=0)
        return not (scale > 0).all() or np.linalg.matrix_rank(self.slopes / scale) < len(scale)

    @cached_property
    def root(self) -> np.ndarray:
        """A root of the covariance without the `variance`: `covariance` is `variance` times `root`
        times its transpose. The product of slopes and `root` keeps digits that the covariance has
        lost where two estimates nearly trade off. Infinite where the covariance is.
        """
        if self.flat:
            return np.full((len(self.inner),) * 2, np.inf)
        scale = np.abs(self.slopes).max(axis=0)  # so that no square is taken of what is large
        R = np.linalg.qr(self.slopes / scale, mode="r")
        return np.linalg.inv(R) / scale[:, None]

    @cached_property
    def covariance(self) -> np.ndarray:
        """Of the `inner` estimates; infinite where the points leave a combination of them open."""
        return self.root if self.flat else self.variance * self.root @ self.root.T

    def quantile(
        self, level: float, moved: np.ndarray, new: int = -1, weight: float = 1.0
    ) -> float:
        """The interval of what has slopes `moved` by the `inner` estimates ends where the root of
        its cost, in units of the `variance`, is this number; a measurement of column `new` adds its
        own error. NaN without points to spare.

        Of one column this is Student's t. Of several, the error of each is known from its own
        residuals only: column j contributes a share w_j of the variance, and has nu_j residuals to
        spare. So t has 1/sum(w_j^2/nu_j) degrees of freedom (Satterthwaite 1946), and as the
        weights themselves are estimates, the variance is larger by 4 sum(w_j (1 - w_j)/nu_j) (Meier
        1953).
        """
        if self.dof <= 0 or len(self.columns) == 1 or self.flat:
            return quantile(level, self.dof)
        Q, R = np.linalg.qr(self.slopes)
        spare = np.bincount(self.part) - np.bincount(self.part, np.sum(Q**2, axis=1))
        spare = np.maximum(spare, 0.5)
        carried = Q @ np.linalg.pinv(R.T) @ moved  # what the error of each point moves it by
        shares = np.bincount(self.part, carried**2)
        if new >= 0:
            shares[new] += 1 / weight
        total = shares.sum()  # 0 on a bound
        shares = shares / total if total > 0 else np.full(len(shares), 1 / len(shares))
        larger = 1 + 4 * np.sum(shares * (1 - shares) / spare)
        return quantile(level, 1 / np.sum(shares**2 / spare)) * float(np.sqrt(larger))

    def _ends(
        self,
        target: Callable[[np.ndarray], tuple[float, np.ndarray]],
        level: float,
        root: Any = False,
        new: int = -1,
        weight: float = 1.0,
        name: str = "",
    ) -> tuple[float, float]:
        """The lowest and the highest value of a `target` that the points allow. An estimate has a
        `name`: its ends are corners, from which a search for those of other targets may begin.

        The target is a function of the estimates (square roots of those in `root`) and, if `new`
        names a column, of the error of a new measurement there. It returns its value and slopes.

        Beyond an end the sum of squares may fall again, around another minimum. Errors of
        measurement decide which of the two is the lower one. So the interval holds both, unless the
        points exclude one; each is then allowed its share of the misses (Bonferroni).
        """
        quantile(level, 1)  # raises ValueError for a level that makes no sense
        if not self.dof > 0 or np.isnan(weight):
            return np.nan, np.nan
        if not name and not isinstance(self.law, Measured):
            self.estimates(level)  # whose ends are corners of the region
        with np.errstate(all="ignore"):
            here, inner = _folded(self._p, root), [self.free.index(n) for n in self.inner]
            moved = target(here)[1][inner]

            def limit(level: float) -> float:
                return self.quantile(level, moved, new, weight) ** 2 * self.variance

            def minima(level: float) -> list[np.ndarray]:
                most = self.rss + limit(level)
                return [
                    _folded(np.array([*p.values()]), root) for rss, p in self.others if rss < most
                ]

            low, high = self._furthest(target, [here], limit(level), root, name)
            beyond = [u for u in minima(shared(level, 2)) if _out(target(u)[0], low, high)]
            level = shared(level, 1 + len(beyond))
            if not (others := minima(level)):
                return low, high
            return self._furthest(target, [here, *others], limit(level), root, name)

    def _furthest(
        self, target: Callable, starts: list[np.ndarray], limit: float, root: Any, name: str
    ) -> tuple[float, float]:
        """As `_ends`, where the sum of squares is at most `limit` above the least one; an end is
        infinite where that leaves an estimate open.
        """
        X, w, rooted = self.problem.X, self.problem.w, bool(np.any(root))

        def residuals(u: np.ndarray, limit: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
            p = np.where(root, u[:-1] ** 2, u[:-1])
            e, J = self.problem.weighted(p[:, None], X, w)
            # The slope by a root vanishes at 0, where the region is as wide as a step by the limit.
            least = limit**0.25 / np.sqrt(np.linalg.norm(J[..., 0], axis=1) + 1e-300)
            slopes = np.zeros((len(e) + 1, len(u)))
            slopes[:-1, :-1] = J[..., 0].T * np.where(root, np.maximum(2 * u[:-1], least), 1.0)
            slopes[-1, -1] = 1.0
            return np.append(e, u[-1]), slopes

        low, high = (_folded(end, root) for end in self.problem.ends)
        low[-1], high[-1] = -np.inf, np.inf
        shape = partial(residuals, limit=limit) if rooted else None
        region, ends = Region(residuals, low, high, self.rss, limit, shape), []
        corners = [] if name else [_folded(p, root) for p in self._corners.values()]
        for sign in (-1, 1):
            if name and self._open(name, sign, limit):
                ends.append(sign * np.inf)
                continue
            every = rooted or len(starts) > 1
            value, at = region.furthest(target, sign, [*starts, *corners], every)
            if name:
                self._corners[name, sign] = at[:-1]
                value = value if abs(value) < self._far(name) else sign * np.inf
            ends.append(value)
        return ends[0], ends[1]

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Profile interval of an estimate, of "N_opt" (the peak's load) or of "X_max" (the highest
        throughput at any N >= 1). An end is infinite if the data do not bound it, and NaN without
        points to spare. Raises ValueError for what the law lacks.
        """
        if name in self.free:
            i = self.free.index(name)
            one = np.eye(len(self.free) + 1)[i]
            return self._ends(lambda u: (float(u[i]), one), level, name=name)
        if name not in ("N_opt", "X_max"):
            raise ValueError(f"{self.law.__name__} has no {name}")
        if name == "X_max" and isinstance(self.law, Measured):
            return self._full(level)
        return self._of_peak(name, level)

    def _of_peak(self, name: str, level: float) -> tuple[float, float]:
        """The interval of "N_opt" or "X_max", by a formula of it: of a power that is finite."""
        load = name == "N_opt"
        formula = scaling.PEAKS.get(self.law.body, (None, None))[not load]
        if not formula or not set(formula.quantities) & set(self.free):
            told = f"{self.law.__name__} has no {name} with an interval"
            raise ValueError(f"{told}: no formula of it is known, or nothing in it is estimated")
        power = -1
        if load:  # what is below the first load, or else what may be infinite
            power = 2 if self._top[0] <= 1 else -2
        root = np.array([not load and n == "kappa" for n in self.free])
        ends = np.array(self._ends(partial(self._of_formula, formula, power, root), level, root))
        with np.errstate(divide="ignore"):
            low, high = np.sort(np.maximum(ends, 0.0) ** (1 / power)).tolist()
        far, least = (FAR * self.N.max(), 1.0) if load else (FAR * self.X.max(), 0.0)
        return max(low, least), max(high if high <= far else np.inf, least)

    def _far(self, name: str) -> float:
        """A value of an estimate that is as good as infinite."""
        return FAR * max(abs(self.estimate[name]), 1.0)

    def _open(self, name: str, sign: int, limit: float) -> bool:
        """Whether the points leave an estimate open on a side without a bound: whether they allow
        what is as good as infinite.
        """
        i, p = self.free.index(name), self._p
        if np.isfinite(self.problem.ends[(sign + 1) // 2, i]):
            return False
        far = sign * self._far(name)
        rest = tuple(n for n in self.free if n != name)
        held = self.problem._replace(free=rest, known={**self.known, name: far})
        rss = solve(held, np.delete(p, i)[:, None], tolerance=1e-3, steps=25)[1][0]
        return bool(rss - self.rss < limit)

    def _of_formula(
        self, formula: Formula, power: int, root: np.ndarray, u: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """A power of what a formula gives of estimates, and its slopes."""

        def value(u: np.ndarray) -> Any:
            every = {**self.known, **dict(zip(self.free, np.where(root, u * u, u), strict=True))}
            return formula.body(**{n: every[n] for n in formula.quantities}) ** power

        slopes = [np.imag(value(u[:-1] + 1j * STEP * one)) / STEP for one in np.eye(len(u) - 1)]
        return np.nan_to_num(float(value(u[:-1]))), np.nan_to_num(np.append(slopes, 0.0))

    def _full(self, level: float) -> tuple[float, float]:
        """The interval of the ceiling of a closed system: as far from the ceiling, as a share of
        it, as the interval of the curve is at a load at which the system is nearly full.
        """
        fill = self.X_max * sum(v for q, v in self.values.items() if q[0] in "DZ")
        load = np.rint(min(FULL * max(fill, self.N.max()), networks.MANY / 2))
        _, (value,), (low,), (high,) = self._band("curve", max(load, self.N.max()), level, 0, {})
        return self.X_max / value * low, self.X_max / value * high

    def estimates(self, level: float = 0.95) -> dict[str, Estimate]:
        """Of each estimate: value, standard error, profile interval, and whether it is identified.

        NaN where a figure does not exist: no error without points to spare, no standard error on a
        bound. `identified` is false on a bound, for an interval that is as wide as the range, and
        without points to spare.
        """
        if level not in self._estimates:
            stderr = dict(zip(self.inner, np.sqrt(np.diag(self.covariance)), strict=True))
            ends = dict(zip(self.free, self.problem.ends.T.tolist(), strict=True))
            estimates = {}
            for name in self.free:
                low, high = self.interval(name, level)
                open_ = not np.isfinite(high) or [low, high] == ends[name] or self.flat
                identified = bool(name not in self.at_bound and not open_)
                error = float(stderr.get(name, np.nan))
                estimates[name] = Estimate(self.estimate[name], error, low, high, identified)
            self._estimates[level] = estimates
        return dict(self._estimates[level])

    @cached_property
    def _estimates(self) -> dict[float, dict[str, Estimate]]:
        """The `estimates` so far, by level: their intervals are most of the work of a fit."""
        return {}

    @cached_property
    def _corners(self) -> dict[tuple[str, int], np.ndarray]:
        """All estimates at each end of an interval that was found last."""
        return {}

    def table(self, level: float = 0.95) -> "pd.DataFrame":
        """The `estimates`, a row each."""
        import pandas as pd

        rows = {name: e._asdict() for name, e in self.estimates(level).items()}
        return pd.DataFrame.from_dict(rows, orient="index")

    def curve(
        self, N: Any, level: float = 0.95, column: int | str = 0, **columns: Any
    ) -> "pd.DataFrame":
        """The curve with the profile interval for its true height (low, high); one row per N. Other
        columns of the fit need values there.
        """
        N, value, low, high = self._band("curve", N, level, self.column(column), columns)
        return _rows(N=N, value=value, low=low, high=high)

    def predict(
        self,
        N: Any,
        level: float = 0.95,
        weight: Any = None,
        column: int | str = 0,
        **columns: Any,
    ) -> "pd.DataFrame":
        """The curve with the interval for a new measurement (low, high); one row per N.

        A new measurement is assumed to scatter as much as the fitted points. If the weights of
        these points were given as an array, also give the `weight` of each new point; without it,
        the interval is NaN. A value is in the interval if the fit with this value as one more point
        is not much worse: its sum of squares grows by less than the F threshold. For a straight
        line this interval is exact. Its lower end is never below zero. Other columns of the fit
        need values at the new points.
        """
        if weight is None:
            weight = np.nan if self.weights == "given" else 1.0
        N, value, low, high = self._band("predict", N, level, self.column(column), columns, weight)
        return _rows(N=N, value=value, low=np.maximum(low, 0.0), high=high)

    def _band(
        self, what: str, N: Any, level: float, column: int, columns: dict, weight: Any = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Each N, the curve there, and both ends: of a new measurement with this weight, or of the
        curve itself. Of more than `MANY` loads, the intervals of as many are searched for, and the
        ratios of their ends to the curve follow between them, unless weights or columns were given.
        """
        of, N = self.columns[column], np.atleast_1d(np.asarray(N, dtype=float))
        self._askable(what, N, of, columns)
        columns = {n: np.zeros(N.shape) + v for n, v in columns.items()}
        value = self.at(N, column, **columns)
        at, new = N, column if weight is not None else -1
        weights = np.asarray(1.0 if weight is None else weight, dtype=float)
        if len(N) and not columns and not weights.ndim:
            at = _some(np.unique(N))
        curve, weights = self.at(at, column, **columns), np.broadcast_to(weights, at.shape)
        if np.isfinite(of.error) and new >= 0:
            weights = 1 / (of.error + (of.half[0] / curve) ** 2 / 3)
        ends = np.empty((len(at), 2))
        for i, (n, each) in enumerate(zip(at, weights, strict=True)):
            given = {**self.known, of.law.quantities[0]: n} | {q: v[i] for q, v in columns.items()}
            height = self._height(of, given, each**-0.5 if new >= 0 else 0.0)
            ends[i] = self._ends(height, level, new=new, weight=each)
        if at is not N:
            between = _between(np.log(at), ends / curve[:, None], np.log(N))
            ends = value[:, None] * between
        return N, value, ends[:, 0], ends[:, 1]

    def _askable(self, what: str, N: np.ndarray, of: Column, columns: Mapping[str, Any]) -> None:
        """Raises ValueError unless loads are positive, and each column has values there."""
        load = of.law.quantities[0]
        if not (N > 0).all():
            raise ValueError(f"{what}: {load} must be positive")
        missing = [n for n in of.given if n != load and n not in columns]
        if missing:
            raise ValueError(f"{what}: {', '.join(missing)} is a column, expected its values there")

    def _height(
        self, of: Column, given: Mapping[str, Any], beside: float
    ) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        """The height of a curve, or a measurement whose error is as large as `beside`, as a target
        of `_ends`.
        """
        own = tuple(n for n in self.free if n in of.law.quantities)
        jet, places = of.law.jet(own), [self.free.index(n) for n in own]

        def height(u: np.ndarray) -> tuple[float, np.ndarray]:
            every = {**given, **dict(zip(self.free, u[:-1], strict=True))}
            curve, *found = jet(**{q: every[q] for q in of.law.quantities})
            X, by_curve, by_error = measured(self.weights, float(curve), u[-1] * beside)
            slopes = np.zeros(len(u))
            slopes[places] = by_curve * np.array(found, dtype=float)
            slopes[-1] = by_error * beside
            return X, slopes

        return height

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

    @property
    def first(self) -> float:
        """The load from which on a peak is searched: 1, or the first one of another quantity than N
        if that is smaller.
        """
        return 1.0 if self.law.quantities[0] == "N" else min(1.0, float(self.N.min()))

    @cached_property
    def _top(self) -> tuple[float, float]:
        """Load and height of the peak. If no load reaches it, the load is infinite, and the height
        is that of the ceiling, or infinite as well.
        """
        if columns := [n for n in self.columns[0].given if n != self.law.quantities[0]]:
            raise ValueError(f"peak: {', '.join(columns)} is a column of its own, expected none")
        if isinstance(self.law, Measured):  # none of its stations slows down
            longest = max(self.law.system.times(self.values).values())
            return np.inf, 1 / longest if longest > 0 else np.inf
        if self.law.body in scaling.PEAKS:
            optimum, ceiling = scaling.PEAKS[self.law.body]
            N = float(optimum.at(self.values)) if optimum else np.inf
            if N < np.inf:
                return max(N, 1.0), float(self.at(max(N, 1.0)))
            N = np.inf  # also of a level curve, which has none
            return N, float(ceiling.at(self.values)) if ceiling else self._flat_top()
        if self.law.quantities[0] != "N" and self.law.quantities[0] not in self.law.own:
            raise ValueError(f"{self.law.__name__} has no N, so no peak")
        return self._highest(self.values)

    def _flat_top(self) -> float:
        """The ceiling of a law that rises for ever, but for one quantity at its end."""
        X = self.at(np.array([FAR, 2 * FAR]))
        return float(X[0]) if X[0] == X[1] else np.inf

    def _highest(self, values: Mapping[str, Any]) -> tuple[float, float]:
        """The load and the height of the highest result by numbers: of algebra up to N = 1e30, or a
        billion times the last load, and more closely up to a thousand times; of another function up
        to `NEAR` times the last load, and its height is NaN if it rises there.
        """
        from scipy.optimize import minimize_scalar

        load, last, first = self.law.quantities[0], self.N.max(), np.log(self.first)

        def at(log_N: Any) -> np.ndarray:
            return self.law.unchecked(**{**values, load: np.exp(log_N)})

        if self.law.algebraic:
            near, far = np.log(max(1e3 * last, 1e3)), np.log(max(FAR * last, 1e30))
            log_N = np.union1d(np.linspace(first, far, 101), np.linspace(first, near, 401))
        else:
            log_N = np.linspace(first, np.log(max(NEAR * last, NEAR)), 201)
        X = np.broadcast_to(at(log_N), log_N.shape)
        log_N, X = log_N[np.isfinite(X)], X[np.isfinite(X)]
        if not len(X):
            return np.inf, -np.inf
        best = int(np.argmax(X))
        if X[best] <= X[-1] * (1 + 1e-9):  # it rises as far as it goes, or is level there
            level = X[-1] <= X[-2] * (1 + 1e-9) if len(X) > 1 else True
            return np.inf, float(X[-1]) if level else np.inf if self.law.algebraic else np.nan
        if best == 0:
            return float(np.exp(log_N[0])), float(X[0])
        between = log_N[best - 1], log_N[best + 1]
        found = minimize_scalar(lambda n: -at(n), bounds=between, options={"xatol": 1e-12})
        N, X_N = (found.x, -found.fun) if -found.fun > X[best] else (log_N[best], X[best])
        return float(np.exp(N)), float(X_N)

    def load_for(self, X: float, level: float = 0.95) -> tuple[float, float, float]:
        """The load at which the curve first reaches `X`, and its interval (low, high).

        The load is infinite if the curve never gets there. The interval holds the loads at which
        `X` lies in the interval of the curve around the estimates, on its way up: low is infinite
        if the data exclude `X` at every load, high if they do not ensure it at any. Both are NaN
        without points to spare. Loads are searched from 1, or the first load if that is smaller,
        to a thousand times the last; to `NEAR` times the last for a function that is no algebra.
        Raises ValueError unless `X` is positive and finite.
        """
        if not 0 < X < np.inf:
            raise ValueError(f"load_for: X is {X}, expected a positive number")
        lowest = min(1.0, self.N.min())
        far = (1e3 if self.law.algebraic else NEAR) * self.N.max()
        highest = max(min(self._top[0], far), 2 * lowest)
        load = _first(lambda N: float(self.at(N)) - X * (1 - 1e-12), lowest, highest)
        if not self.dof > 0:
            return load, np.nan, np.nan

        def end(which: int, first: float, last: float) -> float:
            return _first(
                lambda N: self._band("load_for", N, level, 0, {})[which][0] - X, first, last
            )

        low = end(3, lowest, load if np.isfinite(load) else far)
        return load, low, end(2, load, far) if np.isfinite(load) else np.inf

    @cached_property
    def loo_rmse(self) -> float:
        """Root mean square error of each point predicted from the others; NaN unless n > p + 2, and
        for several columns: a point left out leaves the other ones, so the error would look small.
        """
        n, of = len(self.N), self.columns[0]
        counts = np.bincount(of.setting)
        remaining = len(counts) - (counts == 1).any()  # without a point that is alone at its load
        if len(self.columns) > 1 or n <= len(self.free) + 2 or remaining < len(self.free):
            return np.nan
        # Of many points, the error of those that hardly move the curve follows from their leverage.
        leverage = np.sum(np.linalg.qr(self.slopes)[0] ** 2, axis=1) if n > 200 else np.ones(n)
        errors = self.residuals / np.where(leverage < 0.05, 1 - leverage, 1.0)
        omitted = np.flatnonzero(leverage >= 0.05)
        w = np.tile(self.problem.w, (1, len(omitted)))
        w[omitted, np.arange(len(omitted))] = 0.0
        p = solve(self.problem, np.tile(self._p[:, None], (1, len(omitted))), w=w)[0]
        curves = self.problem.curves(p)[omitted, np.arange(len(omitted))]
        errors[omitted] = self.X[omitted] - curves
        return float(np.sqrt(np.mean(errors**2)))


def _rows(**columns: np.ndarray) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(columns)


def _folded(p: np.ndarray, root: Any) -> np.ndarray:
    """Estimates, those in `root` by their root, and no error of a new measurement."""
    return np.append(np.where(root, np.sqrt(abs(p)), p), 0.0)


def _out(value: float, low: float, high: float) -> bool:
    """Whether a number lies outside an interval; NaN does not."""
    return value < low or value > high


def _some(loads: np.ndarray) -> np.ndarray:
    """About `MANY` of these loads, evenly by their size and by their rank."""
    if len(loads) <= MANY:
        return loads
    even = np.linspace(0, 1, MANY // 2)
    places = np.searchsorted(loads, loads[0] * (loads[-1] / loads[0]) ** even)
    ranks = np.rint(even * (len(loads) - 1)).astype(int)
    return np.unique(loads[np.append(places.clip(0, len(loads) - 1), ranks)])


def _between(at: np.ndarray, ends: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Rows of ends at other places: a cubic between those that are known."""
    from scipy.interpolate import CubicSpline

    if len(at) == len(np.unique(x)) or not np.isfinite(ends).all():
        return np.column_stack([np.interp(x, at, end) for end in ends.T])
    return CubicSpline(at, ends)(x)


def _first(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that rises to a maximum first reaches 0; infinite if it does not."""
    from scipy.optimize import brentq, minimize_scalar

    N, values = np.geomspace(low, high, 24), []
    for n in N:  # far loads may take long, and need not be asked for
        values.append(function(n))
        if values[-1] >= 0:
            return float(brentq(function, N[len(values) - 2], n, xtol=1e-12 * n)) if n > low else n
    best = int(np.argmax(values))
    if not 0 < best < len(N) - 1:
        return np.inf
    top = minimize_scalar(lambda n: -function(n), bounds=(N[best - 1], N[best + 1]))
    return float(brentq(function, N[best - 1], top.x)) if top.fun <= 0 else np.inf


def quantile(level: float, dof: float) -> float:
    """Student's t that leaves `1 - level` outside on both sides; NaN without points to spare.

    Raises ValueError for a level that is not between 0 and 1.
    """
    from scipy.special import stdtrit

    if not 0 < level < 1:
        raise ValueError(f"level is {level}, expected a number between 0 and 1, such as 0.95")
    return float(-stdtrit(dof, (1 - level) / 2)) if dof > 0 else np.nan


def shared(level: float, count: int) -> float:
    """The level of each of several minima that together miss the truth as often as this says."""
    return min(1 - (1 - level) / count, float(np.nextafter(1.0, 0.0)))
