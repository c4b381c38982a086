"""Least squares: the quantities of a formula estimated from measurements, and their errors.

The exact gradient comes from the formula. A bound that binds is found exactly: the fit is made in
the interior and on every face of the allowed ranges, and the best allowed one is taken.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from nummodel.errors import InputError
from nummodel.formula import Formula
from nummodel.nomenclature import quantity

if TYPE_CHECKING:
    import pandas as pd


def fit(law: Formula, data: Mapping[str, Any], weights: Any = "absolute", **known: float) -> "Fit":
    """Estimate the quantities of `law` that are neither columns of `data` nor `known`.

    `data` maps quantity names to columns: the load, which is the law's first quantity, and its
    result. `weights` multiply the squared residuals: "absolute" (all 1: the same error
    everywhere), "relative" (1/X^2: the same percentage everywhere), or an array.

    Raises InputError where there are fewer different loads than quantities to estimate, and
    ValueError for weights that are not positive or figures that are not finite.
    """
    N = np.asarray(data[law.quantities[0]], dtype=float)
    X = np.asarray(data[law.result], dtype=float)
    free = tuple(n for n in law.quantities[1:] if n not in known)
    w = _weights(weights, X)
    if not all(np.isfinite(column).all() for column in (N, X, w)) or not (w > 0).all():
        raise ValueError("fit: N, X and weights must be finite, and weights positive")
    if not free:
        raise ValueError(f"fit: nothing to estimate, all of {', '.join(law.quantities)} are known")
    if len(np.unique(N)) < len(free):
        raise InputError(
            f"{len(np.unique(N))} different {law.quantities[0]}, "
            f"expected at least {len(free)} to estimate {', '.join(free)}"
        )
    unit = np.abs(X).max() or 1.0  # so that the unit of X makes no difference to the search
    known_ = {n: v / unit if law.is_scale(n) else v for n, v in known.items()}
    estimate = _best(law, N, X / unit, w, free, known_)
    estimate = {n: float(v * unit) if law.is_scale(n) else v for n, v in estimate.items()}
    kind = weights if isinstance(weights, str) else "given"
    return Fit(law, N, X, w, kind, free, dict(known), estimate)


@dataclass(frozen=True)
class Fit:
    """A law with its estimates. `weights` is "absolute", "relative" or "given"; `w` the figures."""

    law: Formula
    N: np.ndarray
    X: np.ndarray
    w: np.ndarray
    weights: str
    free: tuple[str, ...]
    known: dict[str, float]
    estimate: dict[str, float]

    @property
    def values(self) -> dict[str, float]:
        """Known and estimated quantities together: what the law is called with."""
        return self.known | self.estimate

    @property
    def dof(self) -> int:
        """Points less estimated quantities, those on a bound included."""
        return len(self.N) - len(self.free)

    @cached_property
    def residuals(self) -> np.ndarray:
        """Measured less fitted, in the unit of X."""
        return self.X - self.at(self.N)

    @property
    def rss(self) -> float:
        """Weighted sum of squared residuals."""
        return float(self.w @ self.residuals**2)

    @cached_property
    def at_bound(self) -> dict[str, float]:
        """The estimates that sit on a bound of their range, with the bound."""
        return {n: b for n in self.free for b in _bounds(n) if self.estimate[n] == b}

    @cached_property
    def identified(self) -> dict[str, bool]:
        """Whether the points determine a quantity: off its bounds, and no flat direction in it."""
        flat = not np.isfinite(self._covariance).all()
        return {n: n not in self.at_bound and not flat for n in self.free}

    def at(self, N) -> np.ndarray:
        """The fitted curve."""
        return self.law(**{self.law.quantities[0]: N}, **self.values)

    def table(self, level: float = 0.95) -> "pd.DataFrame":
        """Estimates: value, stderr, and t interval (low, high), cut at the quantity's bounds.

        NaN where a figure does not exist: no error without points to spare, none on a bound.
        """
        import pandas as pd

        stderr = dict(zip(self._inner, np.sqrt(np.diag(self._covariance)), strict=True))
        rows = {}
        for name in self.free:
            value, error = self.estimate[name], float(stderr.get(name, np.nan))
            low, high = _bounds(name)
            reach = self._t(level) * error
            ends = np.clip([value - reach, value + reach], low, high)
            rows[name] = dict(value=value, stderr=error, low=ends[0], high=ends[1])
        return pd.DataFrame.from_dict(rows, orient="index")

    def curve(self, N, level: float = 0.95) -> "pd.DataFrame":
        """The curve with the interval for its true height (low, high); one row per N."""
        return self._interval(N, level, 0.0)

    def predict(self, N, level: float = 0.95, weight: Any = None) -> "pd.DataFrame":
        """The curve with the interval for a new measurement (low, high); one row per N.

        Its error is that of the points fitted: the same everywhere for absolute weights, the same
        percentage for relative ones. With weights of your own, give those of the new points;
        without them there is no interval (NaN).
        """
        N = np.atleast_1d(np.asarray(N, dtype=float))
        if weight is None:
            given = {"absolute": np.ones(len(N)), "relative": self.at(N) ** -2.0}
            weight = given.get(self.weights, np.full(len(N), np.nan))
        return self._interval(N, level, self._variance / np.asarray(weight, dtype=float))

    @cached_property
    def aicc(self) -> float:
        """Akaike's criterion, corrected for few points; NaN unless n > p + 2.

        Burnham and Anderson (2002), with the variance counted among the parameters. Weights
        enter the likelihood, so fits with different weights can be compared.
        """
        n, k = len(self.N), len(self.free) + 1
        if n <= k + 1:
            return np.nan
        return -2 * self.log_likelihood + 2 * k + 2 * k * (k + 1) / (n - k - 1)

    @property
    def log_likelihood(self) -> float:
        """Of normal errors whose variance is proportional to 1/weight, at its maximum.

        Errors smaller than the rounding of a float count as that: points that a law meets exactly
        do not make it infinitely better than another law that meets them.
        """
        n = len(self.N)
        spread = np.log(2 * np.pi * (self.rss + _rounding(self.X, self.w)) / n)
        return float(-n / 2 * (spread + 1) + np.log(self.w).sum() / 2)

    @cached_property
    def loo_rmse(self) -> float:
        """Root mean square error of each point predicted from the others; NaN unless n > p + 2."""
        if len(self.N) <= len(self.free) + 2:
            return np.nan
        try:
            errors = [self.X[i] - self._without(i).at(self.N[i]) for i in range(len(self.N))]
        except InputError:  # without that point too few different N remain
            return np.nan
        return float(np.sqrt(np.mean(np.square(errors))))

    def peak(self) -> tuple[float, float] | None:
        """N and X of the highest throughput; None for a curve that only rises."""
        from nummodel.scaling import optimum

        best = optimum(self.law)
        if best is None:
            return None
        N = best(**{n: self.values[n] for n in best.quantities})
        return (N, float(self.at(N))) if np.isfinite(N) and N > 1 else None

    def remarks(self) -> list[str]:
        """What a reader of the estimates must know, in sentences."""
        found = []
        if self.dof == 0:
            found.append("no points to spare, so no errors: it passes through the points")
        for name, bound in self.at_bound.items():
            found.append(f"{name} is on its bound {bound:g}: it is not evidenced by these data")
            if name == "sigma" and bound == 0:
                found.append("sigma would be negative: at first X grows faster than N")
        if not np.isfinite(self._covariance).all() and self.dof > 0:
            found.append("the points leave a combination of the estimates open")
        return found

    def _without(self, i: int) -> "Fit":
        keep = np.arange(len(self.N)) != i
        data = {self.law.quantities[0]: self.N[keep], self.law.result: self.X[keep]}
        weights = self.weights if self.weights != "given" else self.w[keep]
        return fit(self.law, data, weights, **self.known)

    @property
    def _variance(self) -> float:
        """Error variance of a measurement with weight 1."""
        return self.rss / self.dof if self.dof > 0 else np.nan

    def _t(self, level: float) -> float:
        from scipy.special import stdtrit

        return float(stdtrit(self.dof, (1 + level) / 2)) if self.dof > 0 else np.nan

    @property
    def _inner(self) -> list[str]:
        return [n for n in self.free if n not in self.at_bound]

    @cached_property
    def _covariance(self) -> np.ndarray:
        """Of the estimates off their bounds; infinite where the points leave a direction flat."""
        J = self._gradient(self.N) * np.sqrt(self.w)[:, None]
        scale = np.linalg.norm(J, axis=0)
        if not (scale > 0).all() or np.linalg.matrix_rank(J / scale) < J.shape[1]:
            return np.full((J.shape[1],) * 2, np.inf)
        R = np.linalg.qr(J / scale, mode="r")
        half = np.linalg.solve(R, np.eye(len(R))) / scale[:, None]
        return self._variance * half @ half.T

    def _gradient(self, N) -> np.ndarray:
        load = {self.law.quantities[0]: N}
        return self.law.gradient(self._inner)(**load, **self.values)

    def _interval(self, N, level: float, extra: Any) -> "pd.DataFrame":
        import pandas as pd

        N = np.atleast_1d(np.asarray(N, dtype=float))
        value, g = self.at(N), self._gradient(N)
        with np.errstate(invalid="ignore"):
            reach = self._t(level) * np.sqrt(
                np.einsum("ij,jk,ik->i", g, self._covariance, g) + extra
            )
        return pd.DataFrame({"N": N, "value": value, "low": value - reach, "high": value + reach})


def choose(fits: Mapping[str, Fit]) -> tuple[str | None, str]:
    """The law that the data speak for by AICc, and why; the simplest within 2 of the best.

    Two is the customary distance below which none has won (Burnham and Anderson 2002, 2.6). None
    if fewer than two laws can be scored: they need three points more than they have estimates.
    """
    if len(fits) == 1:
        return next(iter(fits)), "the only law fitted"
    scores = {name: f.aicc for name, f in fits.items() if np.isfinite(f.aicc)}
    if len(scores) < 2:
        why = "too few points to compare laws: AICc needs three more than a law has estimates"
        return None, why
    best = min(scores, key=scores.__getitem__)
    close = [name for name in scores if scores[name] <= scores[best] + 2]
    chosen = min(close, key=lambda name: (len(fits[name].free), scores[name]))
    why = f"AICc {scores[chosen]:.1f} is the lowest"
    if chosen != best:
        why = f"the simplest of those within 2 of the lowest AICc, {scores[best]:.1f}"
    rivals = [f"{name} {scores[name] - scores[best]:+.1f}" for name in scores if name != best]
    unscored = [name for name in fits if name not in scores]
    why += f"; the others: {', '.join(rivals)}"
    return chosen, why + (f"; too few points for {', '.join(unscored)}" if unscored else "")


def _weights(weights: Any, X: np.ndarray) -> np.ndarray:
    if isinstance(weights, str):
        if weights not in ("absolute", "relative"):
            raise ValueError(f"weights {weights!r}, expected 'absolute', 'relative' or an array")
        with np.errstate(divide="ignore"):
            return np.ones_like(X) if weights == "absolute" else X**-2.0
    return np.broadcast_to(np.asarray(weights, dtype=float), X.shape)


def _bounds(name: str) -> tuple[float, float]:
    return quantity(name).low, quantity(name).high


def _rounding(X: np.ndarray, w: np.ndarray) -> float:
    """The weighted squares that rounding of floats alone may leave."""
    return float(w @ (X * 2.0**-48) ** 2)


def _faces(law: Formula, free: tuple[str, ...]) -> list[dict[str, float]]:
    """Every choice of free quantities held at a finite bound; the most constrained first."""
    ends = [[None, *(b for b in _bounds(n) if np.isfinite(b))] for n in free]
    faces = [
        {n: b for n, b in zip(free, choice, strict=True) if b is not None}
        for choice in product(*ends)
    ]
    faces = [face for face in faces if not any(map(law.is_scale, face))]  # X1 = 0 is no law
    return sorted(faces, key=len, reverse=True)


def _best(law: Formula, N, X, w, free, known) -> dict[str, float]:
    """The allowed estimate with the least squares, over the interior and every face.

    Off a bound it has to be better by more than rounding.
    """
    best, least = {}, np.inf
    for face in _faces(law, free):
        inner = [n for n in free if n not in face]
        for values, rss in _minima(law, N, X, np.sqrt(w), inner, known | face):
            allowed = all(_bounds(n)[0] <= values[n] <= _bounds(n)[1] for n in inner)
            if allowed and rss < least * (1 - 1e-12) - _rounding(X, w):
                best, least = face | values, rss
    if not best:
        raise ValueError(f"no allowed values of {', '.join(free)} give finite {law.result}")
    return {n: float(best[n]) for n in free}


def _minima(law: Formula, N, X, root_w, inner, known) -> Iterator[tuple[dict[str, float], float]]:
    """Minima of the squares, bounds aside, reached from the best points of a coarse grid."""
    from scipy.optimize import least_squares

    load, gradient = {law.quantities[0]: N}, law.gradient(inner)

    def errors(p):
        return root_w * (law(**load, **known, **dict(zip(inner, p, strict=True))) - X)

    def slopes(p):
        return root_w[:, None] * gradient(**load, **known, **dict(zip(inner, p, strict=True)))

    exactly = {"method": "lm", "x_scale": "jac", "xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
    for start in _starts(law, N, X, root_w, inner, known):
        try:
            found = least_squares(errors, start, slopes, **exactly)
        except ValueError:  # it strayed to where the law is not finite
            continue
        yield dict(zip(inner, found.x, strict=True)), 2 * found.cost


def _starts(law: Formula, N, X, root_w, inner, known, count: int = 2) -> np.ndarray:
    """The best points of a logarithmic grid over the allowed ranges, a scale in closed form."""
    scale = next((n for n in inner if law.is_scale(n)), None)
    shapes = [n for n in inner if n != scale]
    axes = []
    for low, high in map(_bounds, shapes):
        steps = np.logspace(-12, 3, 31) if np.isinf(high) else np.logspace(-6, 0, 13) * (high - low)
        axes.append(low + np.append(0.0, steps))
    grid = dict(zip(shapes, (g.ravel()[:, None] for g in np.meshgrid(*axes)), strict=True))
    curve = law(**{law.quantities[0]: N}, **known, **grid, **({scale: 1.0} if scale else {}))
    curve = np.atleast_2d(curve) * root_w
    with np.errstate(all="ignore"):
        size = (curve @ (root_w * X)) / np.sum(curve**2, axis=1) if scale else np.ones(len(curve))
        misfit = np.sum((size[:, None] * curve - root_w * X) ** 2, axis=1)
    best = np.argsort(np.where(np.isfinite(misfit), misfit, np.inf))[:count]
    grid |= {scale: size[:, None]} if scale else {}
    return np.array([[grid[n][i, 0] for n in inner] for i in best])
