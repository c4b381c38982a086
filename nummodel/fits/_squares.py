"""Least squares within bounds: the errors of measurements, and where their sum of squares is least.

The sum of squares that a fit makes small depends on the kind of weights:

- "absolute": errors have the same size everywhere, and the squares are those of X less the curve;
- "relative": errors are in proportion to the curve, which is the mean of X. The squares are those
  of the gamma deviance, whose least sum is where weighted least squares with weights of 1/curve^2
  come to rest (McCullagh and Nelder 1989, chapter 8). Weights of 1/X^2 would favour the points that
  came out low;
- "log": the same, but the curve is the median of X, and the squares are those of ln(X/curve).

`solve` finds minima, of many sets of measurements at once, and `starts` where to begin. A `Region`
has all estimates whose sum of squares is not much larger than the least one, and finds how far a
quantity goes there. A profile interval holds the values of a quantity at which the sum of squares,
made least by all other quantities, is below a limit; so these are its ends (Venzon and Moolgavkar
1988), whether the quantity is an estimate, the height of a curve, or the load of a peak.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nummodel.formula import Formula
from nummodel.functions import Function

#: The relative error that the rounding of a few operations on floats may leave.
ROUNDING = 2.0**-48
#: Gives a quantity and its slopes.
Target = Callable[[np.ndarray], tuple[float, np.ndarray]]
#: Searches for an end of an interval, at most; how far each goes, in radii of the region; and steps
#: from which on a search is doubted.
SEARCHES, REACH, STEPS = 40, 3.0, 25
#: Measurements of a column at most that show where a search may begin.
SOME = 64


class Column(NamedTuple):
    """A measured result, its law, and what it was measured at: the load, and other quantities that
    differ from point to point (`given`).

    `w` is what each square is multiplied by, `half` the half-width of the rounding of each result.
    A point that is off by no more than its `slack` does not speak against the law. `error` is the
    square of the relative error of the column beside rounding, if it was estimated.
    """

    law: Formula
    given: dict[str, np.ndarray]
    X: np.ndarray
    w: np.ndarray
    half: np.ndarray
    slack: float = 0.0
    error: float = np.nan

    @property
    def N(self) -> np.ndarray:
        """The loads."""
        return self.given[self.law.quantities[0]]

    def some(self, which: Any) -> "Column":
        """Some of the points."""
        given = {n: v[which] for n, v in self.given.items()}
        points = {n: getattr(self, n)[which] for n in ("X", "w", "half")}
        return self._replace(given=given, **points)

    @property
    def setting(self) -> np.ndarray:
        """The points with the same load and the same other quantities have the same number."""
        rows = np.column_stack([*self.given.values()])
        return np.unique(rows, axis=0, return_inverse=True)[1].ravel()

    def means(self, kind: str) -> tuple[np.ndarray, np.ndarray, float]:
        """The mean result and the weight of the points of each `setting`, and the weighted squares
        of the measurements around these means.
        """
        setting, log = self.setting, kind == "log"
        w = np.bincount(setting, self.w)
        mean = np.bincount(setting, self.w * (np.log(self.X) if log else self.X)) / w
        mean = np.exp(mean) if log else mean
        return mean, w, float(self.w @ errors(kind, self.X, mean[setting]) ** 2)

    def values(self, known: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
        """What the law is called with: a row for each point, a column for each set of `more`."""
        given = {n: v[:, None] for n, v in self.given.items()}
        every = {**given, **known, **more}
        return {n: every[n] for n in self.law.quantities}


class Problem(NamedTuple):
    """Columns that share quantities: some are `known`, the others are `free`."""

    columns: tuple[Column, ...]
    kind: str
    free: tuple[str, ...]
    known: dict[str, float]

    @property
    def X(self) -> np.ndarray:
        """All measured results, one column after another, in a column."""
        return np.concatenate([c.X for c in self.columns])[:, None]

    @property
    def w(self) -> np.ndarray:
        """What their squares are multiplied by."""
        return np.concatenate([c.w for c in self.columns])[:, None]

    @property
    def ends(self) -> np.ndarray:
        """The lowest and the highest values of the free quantities, a column each."""
        laws = {n: c.law for c in self.columns[::-1] for n in c.law.quantities}
        return np.array([laws[n].range_of(n) for n in self.free], dtype=float).reshape(-1, 2).T

    def curves(self, p: np.ndarray) -> np.ndarray:
        """The fitted results at estimates `p`, a column for each set."""
        more = dict(zip(self.free, p, strict=True))
        found = [c.law.unchecked(**c.values(self.known, more)) for c in self.columns]
        shape = p.shape[1:]
        return np.concatenate(
            [
                np.broadcast_to(f, (len(c.X), *shape))
                for f, c in zip(found, self.columns, strict=True)
            ]
        )

    def slopes(self, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The `curves`, and their slopes by each free quantity."""
        more, rows = dict(zip(self.free, p, strict=True)), [len(c.X) for c in self.columns]
        found = np.zeros((1 + len(self.free), sum(rows), p.shape[1]))
        first = 0
        for c, count in zip(self.columns, rows, strict=True):
            own = tuple(n for n in self.free if n in c.law.quantities)
            computed = c.law.jet(own)(**c.values(self.known, more))
            at = [0, *(1 + self.free.index(n) for n in own)]
            for k, values in zip(at, computed, strict=True):
                found[k, first : first + count] = values
            first += count
        return found[0], found[1:]

    def weighted(
        self, p: np.ndarray, X: np.ndarray, w: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The weighted errors of X at estimates `p`, a column for each set, and their slopes."""
        curve, slopes = self.slopes(p)
        root = np.sqrt(w)
        return root * errors(self.kind, X, curve), root * error_slopes(self.kind, X, curve) * slopes


def percent(kind: str) -> bool:
    """Whether errors are in proportion to the curve."""
    return kind in ("relative", "log")


def errors(kind: str, X: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """The roots of the squares, positive where X is above the curve."""
    if kind == "log":
        return np.log(X / curve)
    if kind == "relative":
        return np.sign(X - curve) * np.sqrt(_gamma(X / curve))
    return X - curve


def _gamma(u: np.ndarray) -> np.ndarray:
    """2 (u - 1 - ln u). Near u = 1 by the series of atanh v with v = (u - 1)/(u + 1), as u - 1 and
    ln u are nearly equal there, and few digits of their difference are left.
    """
    v = (u - 1) / (u + 1)
    odd = v**3 * np.polynomial.Polynomial([1 / 3, 1 / 5, 1 / 7, 1 / 9, 1 / 11, 1 / 13])(v * v)
    return np.where(np.abs(u - 1) < 0.1, 4 * (v * v / (1 - v) - odd), 2 * (u - 1 - np.log(u)))


def error_slopes(kind: str, X: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """The slopes of `errors` by the curve."""
    if not percent(kind):
        return np.full_like(curve, -1.0)
    if kind == "log":
        return -1 / curve
    error = errors(kind, X, curve)
    ratio = np.divide(X / curve - 1, error, out=np.ones_like(curve), where=error != 0)
    return -ratio / curve


def measured(kind: str, curve: float, error: float) -> tuple[float, float, float]:
    """The measurement that has this error: `errors` solved for X; its slope by the curve, and that
    by the error.
    """
    if kind == "log":
        factor = np.exp(error)
        return curve * factor, factor, curve * factor
    if kind == "relative":
        from scipy.special import lambertw

        if abs(error) < 1e-3:  # where few digits of a difference from 1 are left
            factor = 1 + error + error**2 / 3 + error**3 / 36
            return curve * factor, factor, curve * (1 + 2 * error / 3 + error**2 / 12)
        factor = float(-lambertw(-np.exp(-1 - error**2 / 2), -1 if error > 0 else 0).real)
        return curve * factor, factor, curve * error * factor / (factor - 1)
    return curve + error, 1.0, 1.0


def factor(kind: str, X: np.ndarray, curve: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The factor of each column of curves that makes the sum of its squares least."""
    if not percent(kind):
        return np.sum(w * curve * X, axis=0) / np.sum(w * curve**2, axis=0)
    ratio = X / curve
    if kind == "log":
        return np.exp(np.sum(w * np.log(ratio), axis=0) / w.sum())
    return np.sum(w * ratio, axis=0) / w.sum()


def rounding(kind: str, X: np.ndarray) -> np.ndarray:
    """How large the errors may be by rounding of floats alone."""
    size = np.ones_like(X) if kind == "relative" else np.abs(np.log(X) if kind == "log" else X)
    return ROUNDING * size


def solve(
    problem: Problem,
    start: np.ndarray,
    X: Any = None,
    w: Any = None,
    tolerance: float = 1e-9,
    steps: int = 200,
) -> tuple[np.ndarray, np.ndarray]:
    """The minima that the columns of `start` lead to, a column each, and their sums of squares.
    Estimates keep to their range, its ends included.

    Levenberg and Marquardt's method, projected on the allowed ranges (More 1978; Kanzow, Yamashita
    and Fukushima 2004). It stops when a further step would change the errors by less than
    `tolerance` times their norm, or after so many `steps`. Other results X and weights `w` than
    those of the problem have a column for each problem, or one for all.
    """
    X, w = problem.X if X is None else X, problem.w if w is None else w
    low, high = problem.ends[..., None]
    p, on = np.clip(start, low, high), np.arange(start.shape[1])
    damping, least, best = np.full(len(on), 1e-2), np.full(len(on), np.inf), p.copy()
    idle = np.zeros(len(on))  # steps that have made the squares no less: slopes have errors

    def part(v: np.ndarray) -> np.ndarray:
        return v if v.shape[1] == 1 else v[:, on]

    with np.errstate(all="ignore"):
        e, J = problem.weighted(p, X, w)
        rss = np.sum(e * e, axis=0)
        floor = np.sqrt(np.sum(w * (3 * rounding(problem.kind, X)) ** 2, axis=0) + 0 * rss)
        for _ in range(steps):
            step, change = _step(p, e, J, damping, low, high)
            length = np.sqrt(np.sum(change**2, axis=0))
            done = ~(length > tolerance * np.sqrt(rss) + floor[on]) | (damping > 1e12) | (idle > 2)
            best[:, on], least[on] = p, rss
            if done.all():
                break
            on, p, e, J = on[~done], p[:, ~done], e[:, ~done], J[..., ~done]
            rss, damping, idle = rss[~done], damping[~done], idle[~done]
            step, change = step[:, ~done], change[:, ~done]
            further, *after = p + step, *problem.weighted(p + step, part(X), part(w))
            squares = np.sum(after[0] ** 2, axis=0)
            expected = abs(rss - np.sum((e + change) ** 2, axis=0))  # a bound may cut a step off
            damping = _damped(damping, (rss - squares) / expected)
            better = squares <= rss * (1 + 1e-13)
            p, e, J = (
                np.where(better, new, old)
                for new, old in zip((further, *after), (p, e, J), strict=True)
            )
            gained = better & (rss - squares > 1e-13 * rss)
            idle = np.where(gained, 0, idle + better)
            rss = np.where(better, squares, rss)
        else:
            best[:, on], least[on] = p, rss
    return best, np.where(np.isfinite(least), least, np.inf)


def _damped(damping: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """The damping of the next step, by how much of the expected `gain` a step has brought (Madsen,
    Nielsen and Tingleff 2004).
    """
    larger = 10 * np.maximum(damping, 1e-7)
    change = np.maximum(1 - (2 * gain - 1) ** 3, 1 / 20)
    return np.where(gain > 0, np.maximum(damping * change, 1e-13), larger)


def _step(p, e, J, damping, low, high) -> tuple[np.ndarray, np.ndarray]:
    """The damped step that stays within bounds, and what it changes the errors by, if they follow
    their slopes.
    """
    gradient = np.einsum("inb,nb->ib", J, e)
    size = np.sqrt(np.einsum("inb,inb->ib", J, J))
    # A quantity on a bound, with the slope pushing outwards, stays where it is.
    held = np.where(gradient > 0, p <= low, p >= high) | ~(size > 0) | ~np.isfinite(gradient)
    size = np.where(held, 1.0, size)
    unit = np.where(held[:, None], 0.0, J) / size[:, None]
    A = np.einsum("inb,jnb->bij", unit, unit)
    A[:, range(len(p)), range(len(p))] += (damping + held).T
    downhill = np.where(held, 0.0, -gradient / size)
    good = np.isfinite(A).all(axis=(1, 2))
    A[~good] = np.eye(len(p))
    step = np.linalg.solve(A, downhill.T[..., None])[..., 0].T / size
    step = np.clip(p + np.where(good & np.isfinite(step), step, 0.0), low, high) - p
    return step, np.einsum("inb,ib->nb", J, step)


def axes(
    laws: Sequence[Formula], free: tuple[str, ...], N: np.ndarray, X: np.ndarray
) -> dict[str, np.ndarray]:
    """Values of each free quantity from which a search may begin: from a thousandth to a
    thousandfold of its sizes, by half decades, and both ends of its range.
    """
    values, law = {}, laws[0]
    for name in free:
        law = next(law for law in laws if name in law.quantities)
        low, high = law.range_of(name)
        sizes = _sizes(law, name, N, X)
        last = min(1e3 * sizes.max(), high - low)
        first = 1e-3 * min(sizes.min(), last)
        count = min(round(2 * math.log10(last / first)), 60)  # loads may span any decades
        steps = first * (last / first) ** np.linspace(0, 1, 1 + count)
        if low == -np.inf:
            values[name] = np.unique(np.clip([*-steps, 0.0, *steps], None, high))
            continue
        mirrored = high - steps[(steps >= 1e-3 * last) & (steps < last / 2)]
        ends = mirrored if high < np.inf else []
        values[name] = np.sort(np.concatenate([[low], low + steps, ends]))
    if isinstance(law, Function):  # which may have many arguments, or take time
        share = (law.most / math.prod(map(len, values.values()))) ** (1 / max(len(values), 1))
        for n in values if share < 1 else ():
            some = np.linspace(0, len(values[n]) - 1, max(int(share * len(values[n])), 3))
            values[n] = values[n][np.rint(some).astype(int)]
    return values


def _sizes(law: Formula, name: str, N: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Typical sizes of an estimate, by its unit: those of the results, of the loads, or of their
    reciprocals. In any other unit, it is a coefficient of the load or of its square: its sizes are
    then 1 and 1 / N**2 at the largest load.
    """
    unit = law.meaning(name).unit
    if unit == "-" and isinstance(law, Function):  # nobody says
        sizes = [np.abs(measured[measured != 0]) for measured in (X, N)]
        return np.concatenate([[1.0], *sizes, *(1 / s for s in sizes)])
    for other, measured in ((law.result, X), (law.quantities[0], N)):
        theirs = law.meaning(other).unit
        if unit != "-" and unit in (theirs, f"1/{theirs}", theirs.removeprefix("1/")):
            sizes = np.abs(measured[measured != 0])
            return sizes if unit == theirs else 1 / sizes
    return np.array([1.0, N.max() ** -2.0])


def starts(problem: Problem) -> np.ndarray:
    """Where searches may begin, a column each: the points of a mesh that are lower than their
    neighbours, the least first, and then the others in this order; as many as the law `tries`. The
    scale of a law follows in closed form.
    """
    thin = tuple(c.some(slice(None, None, max(1, len(c.X) // SOME))) for c in problem.columns)
    problem, (first, *others) = problem._replace(columns=thin), thin
    law, free = first.law, problem.free
    scale = None if others else next((n for n in free if law.is_scale(n)), None)
    shapes = tuple(n for n in free if n != scale)
    points = law.starts(free, {**first.given, **problem.known}, first.X)
    listed = bool(points)
    shape: tuple[int, ...] = ()
    if not listed:
        lines = axes([c.law for c in thin], shapes, first.N, first.X)
        mesh = np.meshgrid(*lines.values(), indexing="ij")
        points = {n: m.ravel() for n, m in zip(lines, mesh, strict=True)}
        shape = tuple(map(len, lines.values()))
    count = math.prod(shape) if not listed else len(points[free[0]])
    p = np.array([points.get(n, np.ones(count)) for n in free])
    rss, sizes = _misfits(problem, p, scale is not None)
    valley = np.isfinite(rss) & (listed or _valleys(rss.reshape(shape)).ravel())
    best = np.lexsort((rss, ~valley))[: law.tries]
    if scale:
        p[free.index(scale)] = sizes
    return p[:, best]


def _misfits(problem: Problem, p: np.ndarray, scaled: bool) -> tuple[np.ndarray, np.ndarray]:
    """The sum of squares at each column of estimates, and the scale that makes it least."""
    X, w, count = problem.X, problem.w, p.shape[1]
    rss, sizes = np.empty(count), np.ones(count)
    part = max(1, 10**6 // X.size)  # so that what is computed at a time stays small
    for i in range(0, count, part):
        some = slice(i, i + part)
        with np.errstate(all="ignore"):
            curve = problem.curves(p[:, some])
            if scaled:
                sizes[some] = factor(problem.kind, X, curve, w)
            e = errors(problem.kind, X, sizes[some] * curve)
            rss[some] = np.sum(w * e * e, axis=0)
    return np.where(np.isfinite(rss), rss, np.inf), sizes


def _valleys(height: np.ndarray) -> np.ndarray:
    """Which points of a mesh are no higher than their neighbours along each axis."""
    valley = np.ones(height.shape, dtype=bool)
    for axis in range(height.ndim):
        here, there = np.moveaxis(valley, axis, -1), np.moveaxis(height, axis, -1)
        here[..., 1:] &= there[..., 1:] <= there[..., :-1]
        here[..., :-1] &= there[..., :-1] <= there[..., 1:]
    return valley


class Region:
    """The points between `low` and `high` at which the sum of squares is at most `limit` above the
    least one. `residuals` gives the weighted errors and their slopes, a row for each error; `shape`
    such slopes by which the size of the region is judged, where those vanish.
    """

    def __init__(
        self,
        residuals: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
        low: np.ndarray,
        high: np.ndarray,
        least: float,
        limit: float,
        shape: Callable | None = None,
    ):
        self.residuals, self.least, self.limit, self.shape = residuals, least, limit, shape
        self.low, self.high = low, high

    def room(self, p: np.ndarray) -> tuple[float, np.ndarray]:
        """The share of the limit that is left, and its slopes."""
        e, J = self.residuals(p)
        left = (self.least + self.limit - e @ e) / self.limit
        return (left if np.isfinite(left) else -1e9), -2 * (J.T @ e) / self.limit

    def furthest(
        self, target: Target, sign: float, starts: Sequence[np.ndarray], every: bool = False
    ) -> tuple[float, np.ndarray]:
        """The highest value of the target, or the lowest if `sign` is -1, that is reached from the
        first of the `starts`, or from one of the others that is beyond, or `every` other; and where
        that is.
        """
        best, at = self._reached(target, sign, starts[0])
        for start in starts[1:]:
            if every or sign * (target(start)[0] - best) > 1e-7 * abs(best):
                value, p = self._reached(target, sign, start)
                best, at = (value, p) if sign * (value - best) > 0 else (best, at)
        return best, at

    def _reached(self, target: Target, sign: float, p: np.ndarray) -> tuple[float, np.ndarray]:
        """What is reached from `p`. A search that goes wrong or takes long may stop early, so
        another one begins at its end.
        """
        value = target(p)[0]
        for _ in range(SEARCHES):
            further, steps = self._climbed(target, sign, p)
            reached = target(further)[0]
            gain = sign * (reached - value)
            if gain > 0:
                p, value = further, reached
            if steps < STEPS or not gain > 1e-7 * abs(value):
                break
        return value, p

    def _climbed(self, target: Target, sign: float, start: np.ndarray) -> tuple[np.ndarray, float]:
        """Where one search ends, and how many steps it took (without an end, if it went wrong): by
        sequential quadratic programming (Kraft 1988), in coordinates in which the region is nearly
        a ball.
        """
        from scipy.optimize import minimize

        J = (self.shape or self.residuals)(start)[1]
        size = np.linalg.norm(J, axis=0)
        size = np.where((size > 0) & np.isfinite(size), size, 1.0)
        _, s, Vt = np.linalg.svd(np.nan_to_num(J / size), full_matrices=False)
        A = (Vt.T / np.maximum(s, max(1e-8 * s.max(), 1e-300))) / size[:, None]
        A = A * np.sqrt(self.limit)
        value, slopes = target(start)
        unit = float(np.linalg.norm(slopes @ A))
        unit = unit if 0 < unit < np.inf else 1.0
        seen: dict[bytes, tuple] = {}

        def at(z: np.ndarray) -> tuple:
            """What is asked for at z: remembered, as it is asked for in parts."""
            if z.tobytes() not in seen:
                p = np.clip(start + A @ z, self.low, self.high)
                (found, slopes), (room, narrower) = target(p), self.room(p)
                seen.clear()
                rise = sign * (value - found) / unit, -sign * (slopes @ A) / unit
                seen[z.tobytes()] = *rise, room, narrower @ A, p
            return seen[z.tobytes()]

        bounded = np.isfinite(self.low), np.isfinite(self.high)
        M = np.vstack([A[bounded[0]], -A[bounded[1]]])
        b = np.concatenate([(start - self.low)[bounded[0]], (self.high - start)[bounded[1]]])
        norm = np.linalg.norm(M, axis=1)
        M, b = M / norm[:, None], b / norm
        found = minimize(
            lambda z: at(z)[0],
            np.zeros(len(start)),
            jac=lambda z: at(z)[1],
            constraints={
                "type": "ineq",
                "fun": lambda z: np.append(at(z)[2], b + M @ z),
                "jac": lambda z: np.vstack([at(z)[3], M]),
            },
            method="SLSQP",
            bounds=[(-REACH, REACH)] * len(start),
            options={"maxiter": 60, "ftol": 1e-11},
        )
        inside, outside = 0.0, 1.0
        if not np.isfinite(found.x).all():
            return start, np.inf
        while at(outside * found.x)[2] < -1e-7 and outside - inside > 1e-9:
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if at(middle * found.x)[2] > 0 else (inside, middle)
        p, near = at(outside * found.x)[4], 1e-9 * np.linalg.norm(A, axis=1)
        p = np.where(p - self.low < near, self.low, np.where(self.high - p < near, self.high, p))
        ended = found.success and outside == 1 and (abs(found.x) < REACH * (1 - 1e-6)).all()
        return p, (found.nit if ended else np.inf)
