"""Least squares before and after the search.

A `Problem` is what the caller of a fit gives: the law, the measurements, their weights, and what is
known. It has been checked. A `Solved` problem has the estimates as well; intervals and predictions
are built on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from nummodel.errors import InputError
from nummodel.formula import Formula
from nummodel.nomenclature import quantity, range_of

#: Ways in which the error of a measurement may depend on its size; an array is another.
KINDS = ("absolute", "relative", "log")


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """A law, its load and result, how often each point counts, the kind of weights, the half-width
    of rounding of each result, what is left to estimate, and what is known: numbers, and columns.
    """

    law: Formula
    N: np.ndarray
    X: np.ndarray
    times: np.ndarray
    weights: str
    half: np.ndarray
    free: tuple[str, ...]
    known: dict[str, Any]

    @cached_property
    def given(self) -> dict[str, np.ndarray]:
        """What a search of the estimates is told: the loads, and what is known."""
        known = {n: np.atleast_1d(v) for n, v in self.known.items()}
        return known | {self.law.quantities[0]: self.N}

    @cached_property
    def w(self) -> np.ndarray:
        """What the squared residuals are multiplied by."""
        return self.times * (self.X**-2.0 if self.weights == "relative" else 1.0)

    @cached_property
    def folded(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Loads, results and weights in which the measurements at one load are their mean, and what
        this leaves out: the squares of the measurements around their means. That sum is the same
        for every curve.
        """
        N, place = np.unique(self.N, return_inverse=True)
        if 2 * len(N) > len(self.N) or any(map(np.ndim, self.known.values())):
            return self.N, self.X, self.w, 0.0
        w = np.bincount(place, self.w)
        X = np.log(self.X) if self.log else self.X
        mean = np.bincount(place, self.w * X) / w
        left = float(self.w @ (X - mean[place]) ** 2)
        return N, np.exp(mean) if self.log else mean, w, left

    @property
    def dof(self) -> int:
        """Points less estimated quantities, those on a bound included."""
        return len(self.N) - len(self.free)

    @property
    def log(self) -> bool:
        """Whether residuals are those of logarithms."""
        return self.weights == "log"


@dataclass(frozen=True, eq=False, repr=False)
class Solved(Problem):
    """A problem with its estimates; `local` if their search began at a start that was given."""

    estimate: dict[str, float]
    local: bool = False

    @property
    def values(self) -> dict[str, Any]:
        """Known and estimated quantities together: what the law is called with."""
        return self.known | self.estimate

    @cached_property
    def residuals(self) -> np.ndarray:
        """Measured less fitted, in the unit of X."""
        return self.X - self.at(self.N)

    @cached_property
    def errors(self) -> np.ndarray:
        """The residuals as weighted: in the unit of X, or those of logarithms."""
        return np.log(self.X / self.at(self.N)) if self.log else self.residuals

    @cached_property
    def rss(self) -> float:
        """What the fit made small: the weighted sum of squared residuals."""
        return float(self.w @ self.errors**2)

    @cached_property
    def variance(self) -> float:
        """Error variance of a measurement of weight 1; NaN without points to spare.

        At least that of rounding, of the figures and of floats: what is rounded to +-h is off by
        h^2/3 in the mean square.
        """
        if self.dof <= 0:
            return np.nan
        half = self.half / self.X if self.log else self.half
        least = rounding(self.X, self.w, self.log) / len(self.X)
        return max(self.rss / self.dof, float(np.mean(self.w * half**2 / 3)), least)

    @cached_property
    def at_bound(self) -> dict[str, float]:
        """The estimates that sit on a bound of their range, with the bound."""
        return {n: b for n in self.free for b in quantity(n)[3:] if self.estimate[n] == b}

    def at(self, N, **columns) -> np.ndarray:
        """The fitted curve; with what else was measured of the law, `columns` at these N, which are
        those of the points if left out. Raises ValueError where they are not as many.
        """
        for n, value in (self.known | columns).items():
            if np.ndim(value) and np.shape(value) != np.shape(N):
                raise ValueError(
                    f"at: {np.size(value)} {n} and {np.size(N)} loads, expected as many"
                )
        return self.law(**{self.law.quantities[0]: N}, **self.values | columns)

    @property
    def inner(self) -> tuple[str, ...]:
        """The estimates off their bounds."""
        return tuple(n for n in self.free if n not in self.at_bound)

    def without_columns(self, what: str) -> None:
        """Raises ValueError if other quantities than the load differ from point to point."""
        columns = [n for n, v in self.known.items() if np.ndim(v)]
        if columns:
            raise ValueError(f"{what}: {', '.join(columns)} is a column of its own, expected none")


def problem(law: Formula, data, weights, resolution, times, known) -> Problem:
    """The arguments of `fit.fit` as figures that fit together. Raises as that does."""
    load = law.quantities[0]
    for q in (load, law.result):
        if q not in data:
            found, names = ", ".join(data), f"{load} and {law.result}"
            raise ValueError(f"fit: no column {q} among {found}, expected {names}: rename them")
    N, X = (_column(data, q) for q in (load, law.result))
    if N.shape != X.shape:
        raise ValueError(f"fit: {N.size} {load} and {X.size} {law.result}, expected as many")
    if not (N > 0).all():
        raise ValueError(f"fit: {load} must be positive")
    columns = {n: _column(data, n) for n in law.quantities[1:] if n in data}
    for n in known.keys() & columns.keys():
        raise ValueError(f"fit: {n} is a column and known, expected one of the two")
    known = columns | known
    for n, value in known.items():
        _check(law, n, value, N.shape)
    kind = weights if isinstance(weights, str) else "given"
    if kind not in (*KINDS, "given"):
        raise ValueError(f"weights {weights!r}, expected one of {', '.join(KINDS)}, or an array")
    if kind in ("relative", "log") and not (X > 0).all():
        raise ValueError(f"fit: {kind} weights need positive {law.result}")
    if not (X > 0).any():
        raise ValueError(f"fit: no {law.result} is positive, expected throughputs")
    own = 1.0 if kind in KINDS else weights
    counts = _spread("weights", own, X) * _spread("times", times, X)
    if not all(np.isfinite(column).all() for column in (N, X, counts)) or not (counts > 0).all():
        raise ValueError("fit: N, X, weights and times must be finite, weights and times positive")
    half = _spread("resolution", resolution, X)
    if not ((half >= 0) & np.isfinite(half)).all():
        raise ValueError("fit: resolution must be finite and not negative")
    free = tuple(n for n in law.quantities[1:] if n not in known)
    if not free:
        raise ValueError(f"fit: nothing to estimate, all of {', '.join(law.quantities)} are known")
    different = len(np.unique(np.column_stack([N, *columns.values()]), axis=0))
    if different < len(free):
        raise InputError(
            f"{different} different {', '.join([load, *columns])}, "
            f"expected at least {len(free)} to estimate {', '.join(free)}"
        )
    return Problem(law, N, X, counts, kind, half, free, known)


def check_start(start: Mapping[str, Any], free: tuple[str, ...]) -> None:
    """Raises ValueError unless `start` has a number in its range for each free quantity."""
    if set(start) != set(free):
        raise ValueError(f"fit: start has {', '.join(start)}, expected {', '.join(free)}")
    for n, value in start.items():
        low, high = quantity(n)[3:]
        if not (isinstance(value, Real) and low <= float(value) <= high):
            raise ValueError(f"fit: {n} starts at {value}, expected a number{range_of(n)}")


def _column(data: Mapping[str, Any], name: str) -> np.ndarray:
    values = np.asarray(data[name], dtype=float)
    if values.ndim != 1:
        raise ValueError(f"fit: {name} is {data[name]}, expected a column of numbers")
    return values


def _spread(what: str, value: Any, X: np.ndarray) -> np.ndarray:
    """A number for each point, from one for all or as many."""
    if np.shape(value) not in ((), X.shape):
        raise ValueError(f"fit: {np.size(value)} {what} and {X.size} points, expected as many")
    return np.broadcast_to(np.asarray(value, dtype=float), X.shape)


def _check(law: Formula, name: str, value: Any, shape: tuple[int, ...]) -> None:
    """What is known of a quantity: of the law, in its range, a number or one for each point."""
    if name not in law.quantities[1:]:
        expected, said = ", ".join(law.quantities[1:]), law.__name__  # type: ignore[attr-defined]
        raise ValueError(f"fit: {said} has no {name!r}, expected one of: {expected}")
    if np.shape(value) not in ((), shape):
        load = law.quantities[0]
        raise ValueError(f"fit: {np.size(value)} {name} and {shape[0]} {load}, expected as many")
    low, high = quantity(name)[3:]
    if not (np.isfinite(value) & (low <= value) & (value <= high)).all():
        raise ValueError(f"fit: {name} is {value}, expected {low:g} to {high:g}")


def rounding(X: np.ndarray, w: np.ndarray, log: bool) -> float:
    """The weighted squares that rounding of floats alone may leave."""
    return float(w @ ((np.log(X) if log else X) * 2.0**-48) ** 2)
