"""Least squares before and after the search for estimates.

A `Problem` has the arguments of a fit, checked: the law, the measurements, their weights, and what
is known. A `Solved` problem has the estimates as well; intervals and predictions are built on it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nummodel.arguments import LARGEST, WEIGHTS, numbers, within
from nummodel.errors import InputError
from nummodel.fits import _errors
from nummodel.formula import Formula


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """A law, the measured loads and results, what each square is multiplied by, the kind of
    weights, the half-width of the rounding of each result, the quantities to estimate, and the
    known quantities, which are numbers or columns.
    """

    law: Formula
    N: np.ndarray
    X: np.ndarray
    w: np.ndarray
    weights: str
    half: np.ndarray
    free: tuple[str, ...]
    known: dict[str, Any]

    @cached_property
    def given(self) -> dict[str, np.ndarray]:
        """The loads and the known quantities, as arrays."""
        known = {n: np.atleast_1d(v) for n, v in self.known.items()}
        return known | {self.law.quantities[0]: self.N}

    @cached_property
    def setting(self) -> np.ndarray:
        """The points with the same load and the same columns have the same number, from 0 on."""
        columns = [v for v in self.known.values() if np.ndim(v)]
        rows = np.column_stack([self.N, *columns])
        return np.unique(rows, axis=0, return_inverse=True)[1].ravel()

    @cached_property
    def means(self) -> tuple[np.ndarray, np.ndarray, float]:
        """The mean result and the weight of the points of each `setting`, and the weighted squares
        of the measurements around these means.
        """
        w = np.bincount(self.setting, self.w)
        log = self.weights == "log"
        mean = np.bincount(self.setting, self.w * (np.log(self.X) if log else self.X)) / w
        mean = np.exp(mean) if log else mean
        return mean, w, float(self.w @ _errors.squares(self.weights, self.X, mean[self.setting]))

    @cached_property
    def folded(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """The different loads and their `means`, or the measurements, if few loads were repeated.
        The sum of squares around a curve has two parts: the squares of the measurements around
        these means, and the squares of the means around the curve.
        """
        N = np.unique(self.N)
        if 2 * len(N) > len(self.N) or any(map(np.ndim, self.known.values())):
            return self.N, self.X, self.w, 0.0
        return N, *self.means

    @property
    def dof(self) -> int:
        """Points less estimated quantities, those on a bound included."""
        return len(self.N) - len(self.free)


@dataclass(frozen=True, eq=False, repr=False)
class Solved(Problem):
    """A problem with its estimates; `local` if that of intervals begins only there; and the
    `lead` in log-likelihood over other weights, if its weights were found from the points.
    """

    estimate: dict[str, float]
    local: bool = False
    lead: float = np.inf

    @property
    def values(self) -> dict[str, Any]:
        """Known and estimated quantities together: what the law is called with."""
        return self.known | self.estimate

    @cached_property
    def residuals(self) -> np.ndarray:
        """Measured less fitted, in the unit of X."""
        return self.X - self.at(self.N)

    @cached_property
    def rss(self) -> float:
        """The sum of the squares of `_errors`, as weighted."""
        return float(self.w @ _errors.squares(self.weights, self.X, self.at(self.N)))

    @cached_property
    def variance(self) -> float:
        """Error variance of a measurement of weight 1; NaN without points to spare.

        It is at least that of rounding, of the figures and of floats: the mean square error of a
        figure that is rounded to +-h is h^2/3.
        """
        if self.dof <= 0:
            return np.nan
        return max(self.rss / self.dof, float(np.mean(self.w * self.least)))

    @property
    def least(self) -> np.ndarray:
        """What the square of each error is at least, by rounding of figures and of floats."""
        half = self.half / self.X if _errors.percent(self.weights) else self.half
        return np.maximum(half**2 / 3, _errors.rounding(self.weights, self.X) ** 2)

    @cached_property
    def at_bound(self) -> dict[str, float]:
        """The estimates that sit on a bound of their range, with the bound."""
        return {n: b for n in self.free for b in self.law.range_of(n) if self.estimate[n] == b}

    def at(self, N, **columns) -> np.ndarray:
        """The fitted curve. `columns` are the other measured quantities of the law at these N; if
        they are omitted, those of the measured points are used. Raises ValueError if a column does
        not have one value for each N.
        """
        for n, value in (self.known | columns).items():
            if np.ndim(value) and np.shape(value) != np.shape(N):
                raise ValueError(
                    f"at: {np.size(value)} {n} and {np.size(N)} loads, expected as many"
                )
        load = self.law.quantities[0]
        return self.law.unchecked(**{load: numbers(load, N)}, **self.values | columns)

    @property
    def inner(self) -> tuple[str, ...]:
        """The estimates off their bounds."""
        return tuple(n for n in self.free if n not in self.at_bound)

    def quantiles(self, target: Any, level: float) -> np.ndarray:
        """A number for each row of a target: the interval of that row ends where the square root of
        the cost reaches this number.
        """
        return np.full(len(target.value), quantile(level, self.dof))

    def without_columns(self, what: str) -> None:
        """Raises ValueError if other quantities than the load differ from point to point."""
        columns = [n for n, v in self.known.items() if np.ndim(v)]
        if columns:
            raise ValueError(f"{what}: {', '.join(columns)} is a column of its own, expected none")


def quantile(level: float, dof: int) -> float:
    """Student's t that leaves `1 - level` outside on both sides; NaN without points to spare.

    Raises ValueError for a level that is not between 0 and 1.
    """
    from scipy.special import stdtrit

    if not 0 < level < 1:
        raise ValueError(f"level is {level}, expected a number between 0 and 1, such as 0.95")
    return float(-stdtrit(dof, (1 - level) / 2)) if dof > 0 else np.nan


def problem(law: Formula, data, weights, resolution, times, known) -> Problem:
    """The arguments of `fit.fit`, checked. Raises as that does."""
    load, result = law.quantities[0], law.result
    for q in (load, result):
        if q not in data:
            expected = f"expected {load} and {result}: rename them; the load comes first"
            raise ValueError(f"fit: no column {q} among {', '.join(data)}, {expected}")
    columns = {n: numbers(n, data[n]) for n in (*law.quantities, result) if n in data}
    for n in known:
        if n not in law.quantities[1:]:
            expected = f"expected one of: {', '.join(law.quantities[1:])}"
            raise ValueError(f"fit: {law.__name__} has no {n!r}, {expected}")
        if n in columns:
            raise ValueError(f"fit: {n} is a column and known, expected one of the two")
    several = {"weights": weights, "times": times, "resolution": resolution} | known
    kind = several.pop("weights") if isinstance(weights, str) else "given"
    several = {n: numbers(n, value) for n, value in several.items()}
    count = columns[load].size
    if not columns[load].ndim:
        raise ValueError(f"fit: {load} is a number, expected a column of several")
    for n, values in (columns | several).items():
        if values.shape != (count,) and (n in columns or values.ndim):
            raise ValueError(f"fit: {values.size} {n} and {count} {load}, expected as many")
    N, X = columns.pop(load), columns.pop(result)
    known = {n: within(n, v, *law.range_of(n), empty=True) for n, v in (columns | known).items()}
    if kind not in (*WEIGHTS, "given"):
        raise ValueError(f"weights {weights!r}, expected one of {', '.join(WEIGHTS)}, or an array")
    w = np.ones(count) * several["times"] * several.get("weights", 1.0)
    half = np.zeros(count) + several["resolution"]
    sizes = np.abs(np.append(N, X[X != 0]))
    for good, what in (
        ((N > 0).all(), f"{load} must be positive"),
        (not _errors.percent(kind) or (X > 0).all(), f"{kind} weights need positive {result}"),
        ((X > 0).any(), f"no {result} is positive, expected throughputs"),
        (np.isfinite([N, X]).all(), f"{load} and {result} must be finite"),
        (
            ((sizes > 1 / LARGEST) & (sizes < LARGEST)).all(),
            f"{load} and {result} are too far from 1",
        ),
        (((w > 0) & (w < np.inf)).all(), "weights and times must be finite and positive"),
        (((half >= 0) & (half < np.inf)).all(), "resolution must be finite and not negative"),
    ):
        if not good:
            raise ValueError(f"fit: {what}")
    free = tuple(n for n in law.quantities[1:] if n not in known)
    if not free:
        raise ValueError(f"fit: nothing to estimate, all of {', '.join(law.quantities)} are known")
    known = {n: v if v.ndim else float(v) for n, v in known.items()}
    checked = Problem(law, N, X, w, kind, half, free, known)
    different = checked.setting.max() + 1
    if different < len(free):
        names = [n for n in (load, *columns) if n != "part"]
        raise InputError(
            f"{different} different {', '.join(names)}, "
            f"expected at least {len(free)} to estimate {', '.join(free)}"
        )
    return checked
