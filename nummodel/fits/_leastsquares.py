"""Least squares within bounds, for many sets of measurements at once.

Levenberg-Marquardt with the formula's exact derivatives, projected on the allowed ranges (More
1978; Kanzow, Yamashita and Fukushima 2004). One problem or ten thousand go through the same arrays:
a bootstrap, a profile and a coverage study are one call each.
"""

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

from nummodel.fits._problem import Problem, rounding
from nummodel.formula import Formula
from nummodel.nomenclature import quantity


class Solution(NamedTuple):
    """Estimates, one row a problem and one column a free quantity, and weighted squares left."""

    estimate: np.ndarray
    rss: np.ndarray


def solve(
    law: Formula,
    free: tuple[str, ...],
    known: Mapping[str, np.ndarray],
    X: np.ndarray,
    w: np.ndarray,
    start: np.ndarray,
    log: bool = False,
    tolerance: float = 1e-10,
) -> Solution:
    """Minimise sum(w (X - law)^2) or, if `log`, sum(w (ln X - ln law)^2), problem by problem.

    `X` has a row for each problem; `w`, `start` and what `known` holds (the load among it) have a
    shape that fits those rows. Every estimate keeps to the range of its quantity, ends included.
    It ends with a step of `tolerance` in units of the errors that are left.
    """
    X = np.log(X) if log else X
    rows = len(X)
    root_w = np.broadcast_to(np.sqrt(w), X.shape)
    low, high = (np.array([[getattr(quantity(n), end)] for n in free]) for end in ("low", "high"))
    given = {n: np.broadcast_to(v, (rows, np.shape(v)[-1])) for n, v in known.items()}
    pairs = [(i, j) for i in range(len(free)) for j in range(i + 1)]

    def squares(p, at):
        """Squares left, half their gradient, half their Hessian by pairs: what the slopes make of
        it, and what the second derivatives add.
        """
        values = {n: v[at] for n, v in given.items()}
        values |= {n: q[:, None] for n, q in zip(free, p, strict=True)}
        value, *found = law.jet(free, second=True)(**values)
        unit = root_w[at] / value if log else root_w[at]
        J, bends = [unit * d for d in found[: len(free)]], [unit * d for d in found[len(free) :]]
        r = root_w[at] * ((np.log(value) if log else value) - X[at])
        if log:  # as d2(ln f) = d2(f) / f - d(ln f) d(ln f)
            relative = [slope / value for slope in found]
            bends = [b - J[i] * relative[j] for b, (i, j) in zip(bends, pairs, strict=True)]
        slopes = np.array([_dot(J[i], J[j]) for i, j in pairs])
        added = np.array([_dot(bend, r) for bend in bends])
        return _dot(r, r), np.array([_dot(slope, r) for slope in J]), slopes, added

    left = np.arange(rows)  # the problems that are not solved yet
    if not free:
        with np.errstate(all="ignore"):
            return Solution(np.empty((rows, 0)), squares(np.empty((0, rows)), left)[0])
    # Quantities come first and problems second, so that each step works on whole rows.
    p = np.clip(np.broadcast_to(start, (rows, len(free))).T.astype(float), low, high)
    best, least = p.copy(), np.empty(rows)
    with np.errstate(all="ignore"):
        rss, *shape = squares(p, left)
        damping = np.full(rows, 1e-4)
        rounding = 1e-14 * np.sqrt(_dot(root_w * X, root_w * X))
        for _ in range(200):
            step, length = _step(p, shape, damping, low, high)
            new_rss, *new = squares(p + step, left)
            better = new_rss <= rss * (1 + 1e-13)
            end = (length <= tolerance * np.sqrt(rss) + rounding[left]) | (damping > 1e15)
            p = np.where(better, p + step, p)
            rss = np.where(better, new_rss, rss)
            shape = [np.where(better, now, old) for now, old in zip(new, shape, strict=True)]
            damping = np.where(
                better, np.maximum(damping / 20, 1e-13), 10 * np.maximum(damping, 1e-7)
            )
            if end.any():
                best[:, left[end]], least[left[end]] = p[:, end], rss[end]
                on = np.flatnonzero(~end)
                left, p, rss, damping = left[on], p[:, on], rss[on], damping[on]
                shape = [part[:, on] for part in shape]
            if not len(left):
                break
        best[:, left], least[left] = p, rss
    return Solution(best.T, np.where(np.isfinite(least), least, np.inf))


def search(problem: Problem, start: Mapping[str, float] | None = None) -> dict[str, float]:
    """The estimates of a problem: the best of the minima that the best points of a coarse grid
    lead to, or the one that `start` leads to. Raises ValueError if the law is finite nowhere in the
    allowed ranges.
    """
    law, free, w, log = problem.law, problem.free, problem.w, problem.log
    unit = unit_of(law, problem.X)
    X, load = problem.X / unit, law.quantities[0]
    given = in_unit(law, problem.given, unit) | {load: problem.N}
    if start is None:
        found = descend(law, free, given, X[None], w, log, grid(law, free, given, X), count=4)
    else:
        scaled = in_unit(law, start, unit)
        found = solve(law, free, given, X[None], w, np.array([scaled[n] for n in free]), log)
    values, least = found.estimate[0], found.rss[0]
    if not np.isfinite(least):
        raise ValueError(f"no allowed values of {', '.join(free)} give finite {law.result}")
    # What differs from a bound by rounding alone is on it.
    allowance = least * (1 + 1e-12) + rounding(X, w, log)
    for i, name in enumerate(free):
        for bound in quantity(name)[3:]:
            if law.is_scale(name) or not np.isfinite(bound) or values[i] == bound:
                continue
            rest = tuple(n for n in free if n != name)
            fixed = given | {name: np.array([bound])}
            held = solve(law, rest, fixed, X[None], w, np.delete(values, i), log)
            if held.rss[0] <= allowance:
                values = np.insert(held.estimate[0], i, bound)
    return {
        n: float(v) for n, v in in_unit(law, dict(zip(free, values, strict=True)), 1 / unit).items()
    }


def grid(law: Formula, free: tuple[str, ...], given: Mapping[str, Any], X) -> dict[str, np.ndarray]:
    """A coarse mesh over the quantities that shape the curve: from what moves none of the points by
    more than a thousandth to what moves each of them a thousandfold, by half decades; and both ends
    of their ranges. Where slopes do not tell, a thousandth to the thousandfold of what was measured
    in that unit.
    """
    shapes = tuple(n for n in free if not law.is_scale(n))
    lowest = {n: np.float64(quantity(n).low) for n in shapes}
    some = dict(given) | {n: np.ones(1) for n in free if law.is_scale(n)} | lowest
    slopes: Any = ()
    if shapes:
        with np.errstate(all="ignore"):
            slopes = np.abs(law.gradient(shapes)(**some) / law.unchecked(**some)[:, None])
    axes = []
    for name, slope in zip(shapes, np.transpose(slopes), strict=True):
        low, high = quantity(name)[3:]
        moved = slope[np.isfinite(slope) & (slope > 0)]
        if not len(moved):  # as where a curve vanishes there
            moved = 1 / _sizes(law, name, given[law.quantities[0]], X)
        first, last = 1e-3 / moved.max(), min(1e3 / moved.min(), high - low)
        count = np.clip(round(2 * np.log10(last / first)), 1, 60)  # loads may span any decades
        steps = np.geomspace(first, last, 1 + count)
        mirrored = high - steps[(steps >= 1e-3 * last) & (steps < last / 2)]
        axes.append(np.concatenate([[low], low + steps, mirrored[::-1] if high < np.inf else []]))
        axes[-1].sort()
    return dict(zip(shapes, np.meshgrid(*axes, indexing="ij"), strict=True))


def _sizes(law: Formula, name: str, N: np.ndarray, X: np.ndarray) -> np.ndarray:
    """What a quantity is to be compared with, by its unit: the load, the result, the reciprocal of
    one of them. What has another unit, or none, bends the curve with the load or with its square.
    """
    unit = quantity(name).unit
    for other, measured in ((law.result, X), (law.quantities[0], N)):
        theirs = quantity(other).unit
        if unit != "-" and unit in (theirs, f"1/{theirs}", theirs.removeprefix("1/")):
            sizes = np.abs(measured[measured != 0])
            return sizes if unit == theirs else 1 / sizes
    return np.array([1.0, N.max() ** -2.0])


def descend(
    law: Formula, free, given, X, w, log: bool, points, count: int, here=None, tolerance=1e-10
) -> Solution:
    """For each row of X the best of the minima that the `count` cheapest valleys of a mesh of
    `points` lead to, and `here`, a row of free quantities for each row of X. Either may be None.
    """
    rows, size = len(X), len(free)
    begin = [] if here is None else [here[:, None]]
    begin += [] if points is None else [_cheapest(law, free, given, points, X, w, log, count)]
    times = sum(part.shape[1] for part in begin)
    X, w = (np.repeat(np.broadcast_to(v, X.shape), times, axis=0) for v in (X, w))
    given = {n: np.repeat(v, times, axis=0) if np.ndim(v) == 2 else v for n, v in given.items()}
    start = np.concatenate(begin, axis=1).reshape(rows * times, size)
    found = solve(law, free, given, X, w, start, log, tolerance)
    rss = found.rss.reshape(rows, times)
    best = np.arange(rows) * times + np.argmin(rss, axis=1)
    return Solution(found.estimate[best], found.rss[best])


def _cheapest(law: Formula, free, given, points, X, w, log: bool, count: int) -> np.ndarray:
    """The `count` of the points that leave the least squares, of those that leave less than their
    neighbours in the mesh; an array by row of X, point and free quantity. A scale among these is
    found in closed form.
    """
    # Where to begin is as well seen from some of many measurements; the last may be a new one.
    part = max(1, X.shape[1] // 64)
    if part > 1:
        some = np.append(np.arange(0, X.shape[1] - 1, part), -1)
        w = np.broadcast_to(w, X.shape)[:, some] * np.where(some < 0, 1, part)
        given = {n: v[..., some] if v.shape[-1] == X.shape[1] else v for n, v in given.items()}
        X = X[:, some]
    scale = next((n for n in free if law.is_scale(n)), None)
    shapes = [n for n in free if n != scale]
    values = {n: np.atleast_2d(v)[:, None] for n, v in given.items()}
    values |= {scale: np.ones(1)} if scale else {}
    X, w = X[:, None], np.atleast_2d(w)[:, None]

    def misfit(part):
        """Squares left at some of the points, and the scale of each."""
        curve = law.unchecked(**values, **{n: points[n].ravel()[part, None] for n in shapes})
        with np.errstate(all="ignore"):
            if log:
                errors = np.log(X / curve)
                weight = np.broadcast_to(w, errors.shape)
                size = np.average(errors, axis=-1, weights=weight) if scale else np.zeros(1)
                return np.sum(w * (errors - size[..., None]) ** 2, axis=-1), np.exp(size)
            fit = np.sum(w * curve * X, axis=-1) / np.sum(w * curve**2, axis=-1)
            size = fit if scale else np.ones(1)
            return np.sum(w * (size[..., None] * curve - X) ** 2, axis=-1), size

    mesh = points[shapes[0]].shape if shapes else (1,)
    step = max(1, 10**6 // X.size)  # so that what is computed at a time stays small
    parts = [misfit(slice(i, i + step)) for i in range(0, prod(mesh), step)]
    left = np.concatenate([rss for rss, _ in parts], axis=1)
    left = np.where(np.isfinite(left), left, np.inf)
    valley = _valleys(left.reshape(-1, *mesh)).reshape(left.shape)
    best = np.argsort(np.where(valley, left, np.inf), axis=1)[:, :count]
    found = {n: points[n].ravel()[best] for n in shapes}
    if scale:
        sizes = np.concatenate([size for _, size in parts], axis=1)
        found[scale] = np.take_along_axis(sizes, best, axis=1)
    return np.stack([found[n] for n in free], axis=-1) if free else np.empty((len(X), 1, 0))


def _valleys(left: np.ndarray) -> np.ndarray:
    """Which points of a mesh are no higher than their neighbours along each axis but the first."""
    valley = np.ones(left.shape, dtype=bool)
    for axis in range(1, left.ndim):
        here, there = np.moveaxis(valley, axis, -1), np.moveaxis(left, axis, -1)
        here[..., 1:] &= there[..., 1:] <= there[..., :-1]
        here[..., :-1] &= there[..., :-1] <= there[..., 1:]
    return valley


def unit_of(law: Formula, X: np.ndarray) -> float:
    """What X is measured in for a search, so that its unit makes no difference: its size, if the
    law has a factor that can take it.
    """
    return np.abs(X).max() if any(law.is_scale(n) for n in law.quantities) else 1.0


def in_unit(law: Formula, values: Mapping[str, Any], unit: float) -> dict[str, Any]:
    """Values of a law's quantities when X is measured in units of `unit`."""
    return {n: v / unit if law.is_scale(n) else v for n, v in values.items()}


def _step(p, shape, damping, low, high) -> tuple[np.ndarray, np.ndarray]:
    """The damped step that stays within bounds, and its length in the unit of the errors."""
    gradient, slopes, added = shape
    count = len(p)
    pairs = {(i, j): i * (i + 1) // 2 + j for i in range(count) for j in range(i + 1)}
    diagonal = np.array([slopes[pairs[i, i]] for i in range(count)])
    # A quantity on a bound, with the slope pushing outwards, stays where it is.
    held = np.where(gradient > 0, p <= low, p >= high)
    held |= ~(diagonal > 0) | ~np.isfinite(gradient)
    scale = np.sqrt(np.where(held, 1.0, diagonal))

    def to_least(hessian):
        A = {
            (i, j): np.where(held[i] | held[j], float(i == j), hessian[k] / scale[i] / scale[j])
            for (i, j), k in pairs.items()
        }
        A |= {(i, i): A[i, i] + damping for i in range(count)}
        return -_solved(A, np.where(held, 0.0, gradient / scale)) / scale

    step = to_least(slopes + added)
    turned = ~np.isfinite(step).all(axis=0)  # no minimum there: the slopes alone always have one
    if turned.any():
        step[:, turned] = to_least(slopes)[:, turned]
    step = np.clip(p + np.where(np.isfinite(step), step, 0.0), low, high) - p
    return step, np.sqrt(np.sum((scale * step) ** 2, axis=0))


def _solved(A: dict, b: np.ndarray) -> np.ndarray:
    """Solutions of many small positive definite systems, by Cholesky's factors.

    `A[i, j]`, i >= j, and `b[i]` hold an entry of all systems each. LAPACK would take them one by
    one.
    """
    n = len(b)
    L: dict[tuple[int, int], np.ndarray] = {}
    for i in range(n):
        for j in range(i + 1):
            rest = A[i, j] - sum(L[i, k] * L[j, k] for k in range(j))
            L[i, j] = np.sqrt(rest) if i == j else rest / L[j, j]
    x = b.copy()
    for i in range(n):
        x[i] = (x[i] - sum(L[i, k] * x[k] for k in range(i))) / L[i, i]
    for i in reversed(range(n)):
        x[i] = (x[i] - sum(L[k, i] * x[k] for k in range(i + 1, n))) / L[i, i]
    return x


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("bn,bn->b", a, b)
