"""Least squares within bounds, for many sets of measurements at once.

Levenberg-Marquardt with the formula's exact derivatives, projected on the allowed ranges (More
1978; Kanzow, Yamashita and Fukushima 2004). One problem or ten thousand go through the same arrays:
a bootstrap, a profile and a coverage study are one call each.
"""

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

from nummodel.fits import _errors
from nummodel.fits._problem import Problem
from nummodel.formula import Formula
from nummodel.nomenclature import quantity


class Batch(NamedTuple):
    """Problems of one law with the same free quantities, solved together: minimise the sum of w
    times the squares of the errors, which are those of `_errors` for this `kind` of weights.

    `X` has a row for each problem. The weights `w`, and what is `known`, the load among it, have as
    many rows, or are the same for all problems.
    """

    law: Formula
    free: tuple[str, ...]
    known: Mapping[str, np.ndarray]
    X: np.ndarray
    w: np.ndarray
    kind: str = "absolute"


class Solution(NamedTuple):
    """Estimates, a row for each problem and a column for each free quantity, and the residual sum
    of squares of each problem.
    """

    estimate: np.ndarray
    rss: np.ndarray


def solve(batch: Batch, start: np.ndarray, tolerance: float = 1e-10) -> Solution:
    """The minimum of each problem that `start`, a row of free quantities for each or one for all,
    leads to. Every estimate keeps to the range of its quantity, ends included.

    The search stops when a step is below `tolerance` times the norm of the residuals.
    """
    law, free, known, X, w, kind = batch
    rows, count = len(X), len(free)
    w = np.broadcast_to(w, X.shape)
    root_w, percent = np.sqrt(w), _errors.percent(kind)
    squared_slopes = {"log": 1, "relative": 2}.get(kind, 0)
    known = {n: np.broadcast_to(v, (rows, v.shape[-1])) for n, v in known.items()}
    pairs = [(i, j) for i in range(count) for j in range(i + 1)]

    def expansion(p, at):
        """At values `p` of the problems `at`: the residual sum of squares, half its gradient, and
        half the lower triangle of its Hessian in two parts, which the slopes and the second
        derivatives of the law make.
        """
        values = {n: v[at] for n, v in known.items()}
        values |= {n: q[:, None] for n, q in zip(free, p, strict=True)}
        value, *derivatives = law.jet(free, second=True)(**values)
        unit = root_w[at] / value if percent else root_w[at]
        slopes, bends = [unit * d for d in derivatives[:count]], derivatives[count:]
        pull = root_w[at] * _errors.slope(kind, X[at], value)
        gradient = np.array([_dot(slope, pull) for slope in slopes])
        hessian = np.zeros((2, count, count, len(at)))
        for (i, j), bend in zip(pairs, bends, strict=True):
            bend = unit * bend
            if percent:  # as d2(ln f) = d2(f) / f - d(ln f) d(ln f), and once more
                bend = bend - squared_slopes * slopes[i] * (derivatives[j] / value)
            hessian[:, i, j] = _dot(slopes[i], slopes[j]), _dot(bend, pull)
        return _dot(w[at], _errors.squares(kind, X[at], value)), gradient, hessian

    unsolved = np.arange(rows)
    # Quantities come first and problems last, so that each step works on whole rows.
    p = np.broadcast_to(start, (rows, count)).T.astype(float)
    best, least = p.copy(), np.empty(rows)
    with np.errstate(all="ignore"):
        if not free:
            return Solution(best.T, expansion(p, unsolved)[0])
        low, high = np.array([quantity(n)[3:] for n in free]).T[:, :, None]
        p = np.clip(p, low, high)
        rss, gradient, hessian = expansion(p, unsolved)
        damping = np.full(rows, 1e-4)
        rounding = np.sqrt(_dot(w, (3 * _errors.rounding(kind, X)) ** 2))
        for _ in range(200):
            step, length = _step(p, gradient, hessian, damping, low, high)
            new_rss, new_gradient, new_hessian = expansion(p + step, unsolved)
            better = new_rss <= rss * (1 + 1e-13)
            end = (length <= tolerance * np.sqrt(rss) + rounding[unsolved]) | (damping > 1e15)
            p = np.where(better, p + step, p)
            rss = np.where(better, new_rss, rss)
            gradient = np.where(better, new_gradient, gradient)
            hessian = np.where(better, new_hessian, hessian)
            smaller, larger = np.maximum(damping / 20, 1e-13), 10 * np.maximum(damping, 1e-7)
            damping = np.where(better, smaller, larger)
            if end.any():
                best[:, unsolved[end]], least[unsolved[end]] = p[:, end], rss[end]
                on = np.flatnonzero(~end)
                unsolved, p, rss, damping = unsolved[on], p[:, on], rss[on], damping[on]
                gradient, hessian = gradient[:, on], hessian[..., on]
            if not len(unsolved):
                break
        best[:, unsolved], least[unsolved] = p, rss
    return Solution(best.T, np.where(np.isfinite(least), least, np.inf))


def _step(p, gradient, hessian, damping, low, high) -> tuple[np.ndarray, np.ndarray]:
    """The damped step that stays within bounds, and its length in the unit of the residuals."""
    from_slopes, from_bends = hessian
    one = np.eye(len(p))[:, :, None]
    diagonal = np.einsum("iib->ib", from_slopes)
    # A quantity on a bound, with the slope pushing outwards, stays where it is.
    held = np.where(gradient > 0, p <= low, p >= high)
    held |= ~(diagonal > 0) | ~np.isfinite(gradient)
    scale = np.sqrt(np.where(held, 1.0, diagonal))

    def to_least(hessian):
        A = np.where(held[:, None] | held, one, hessian / scale[:, None] / scale) + damping * one
        return -_solved(A, np.where(held, 0.0, gradient / scale)) / scale

    step = to_least(from_slopes + from_bends)
    no_minimum = ~np.isfinite(step).all(axis=0)  # the slopes alone always have one
    if no_minimum.any():
        step[:, no_minimum] = to_least(from_slopes)[:, no_minimum]
    step = np.clip(p + np.where(np.isfinite(step), step, 0.0), low, high) - p
    return step, np.sqrt(np.sum((scale * step) ** 2, axis=0))


def _solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solutions of many small positive definite systems, by Cholesky's factors.

    `A[i, j]`, i >= j, and `b[i]` hold an entry of all systems each. LAPACK would take them one by
    one.
    """
    n, L, x = len(b), np.zeros_like(A), b.copy()
    for i in range(n):
        for j in range(i + 1):
            rest = A[i, j] - sum(L[i, k] * L[j, k] for k in range(j))
            L[i, j] = np.sqrt(rest) if i == j else rest / L[j, j]
    for i in range(n):
        x[i] = (x[i] - sum(L[i, k] * x[k] for k in range(i))) / L[i, i]
    for i in reversed(range(n)):
        x[i] = (x[i] - sum(L[k, i] * x[k] for k in range(i + 1, n))) / L[i, i]
    return x


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("bn,bn->b", a, b)


def search(problem: Problem, start: Mapping[str, float] | None = None) -> dict[str, float]:
    """The estimates of a problem: the best of the minima that the best points of a coarse mesh
    lead to, or the one that `start` leads to. Raises ValueError if the law is finite nowhere in the
    allowed ranges.
    """
    law, free, unit = problem.law, problem.free, unit_of(problem.law, problem.X)
    X, known = problem.X / unit, in_unit(law, problem.given, unit)
    batch = Batch(law, free, known, X[None], problem.w, problem.weights)
    if start is None:
        solution = descend(batch, axes(law, free, problem.N, X), count=4)
    else:
        solution = solve(batch, np.array([in_unit(law, start, unit)[n] for n in free]))
    values, rss = solution.estimate[0], solution.rss[0]
    if not np.isfinite(rss):
        raise ValueError(f"no allowed values of {', '.join(free)} give finite {law.result}")
    # What differs from a bound by rounding alone is on it.
    allowance = rss * (1 + 1e-12) + problem.w @ _errors.rounding(problem.weights, X) ** 2
    for i, name in enumerate(free):
        for bound in quantity(name)[3:]:
            if law.is_scale(name) or not np.isfinite(bound) or values[i] == bound:
                continue
            others = tuple(n for n in free if n != name)
            held = batch._replace(free=others, known=known | {name: np.array([bound])})
            on_bound = solve(held, np.delete(values, i))
            if on_bound.rss[0] <= allowance:
                values = np.insert(on_bound.estimate[0], i, bound)
    estimate = in_unit(law, dict(zip(free, values, strict=True)), 1 / unit)
    return {n: float(value) for n, value in estimate.items()}


def unit_of(law: Formula, X: np.ndarray) -> float:
    """The unit of X for a search, so that its own unit makes no difference: its size, if the law
    has a scale that can take the unit.
    """
    return np.abs(X).max() if scale_of(law, law.quantities[1:]) else 1.0


def in_unit(law: Formula, values: Mapping[str, Any], unit: float) -> dict[str, Any]:
    """Values of the quantities of a law when X is measured in units of `unit`."""
    scale = scale_of(law, law.quantities[1:])
    return {n: v / unit if n == scale else v for n, v in values.items()}


def scale_of(law: Formula, free: tuple[str, ...]) -> str | None:
    """The first of the quantities `free` that the law is a multiple of."""
    return next((n for n in free if law.is_scale(n)), None)


def descend(
    batch: Batch,
    axes: Mapping[str, np.ndarray] | None,
    count: int,
    start: np.ndarray | None = None,
    tolerance: float = 1e-10,
) -> Solution:
    """For each problem the best of the minima that its `start` and the `count` cheapest valleys of
    a mesh with the `axes` lead to. Either may be None.
    """
    starts = [] if start is None else [start[:, None]]
    if axes is not None and batch.free:
        starts.append(_cheapest(batch, axes, count))
    tried = np.concatenate(starts, axis=1)
    rows, times, size = tried.shape
    X, w = (np.repeat(np.broadcast_to(v, batch.X.shape), times, axis=0) for v in batch[3:5])
    known = {n: np.repeat(v, times if v.ndim == 2 else 1, axis=0) for n, v in batch.known.items()}
    tries = batch._replace(known=known, X=X, w=w)
    estimate, rss = solve(tries, tried.reshape(rows * times, size), tolerance)
    best = np.arange(rows) * times + np.argmin(rss.reshape(rows, times), axis=1)
    return Solution(estimate[best], rss[best])


def axes(
    law: Formula, free: tuple[str, ...], N: np.ndarray, X: np.ndarray
) -> dict[str, np.ndarray]:
    """Values of each free quantity from which a search may begin: from a thousandth to a
    thousandfold of its sizes, by half decades, and both ends of its range.
    """
    values = {}
    for name in free:
        low, high = quantity(name)[3:]
        sizes = _sizes(law, name, N, X)
        first, last = 1e-3 * sizes.min(), min(1e3 * sizes.max(), high - low)
        count = np.clip(round(2 * np.log10(last / first)), 1, 60)  # loads may span any decades
        steps = np.geomspace(first, last, 1 + count)
        mirrored = high - steps[(steps >= 1e-3 * last) & (steps < last / 2)]
        ends = mirrored if high < np.inf else []
        values[name] = np.sort(np.concatenate([[low], low + steps, ends]))
    return values


def _sizes(law: Formula, name: str, N: np.ndarray, X: np.ndarray) -> np.ndarray:
    """What a quantity may be compared with, by its unit: the results, the loads, or the reciprocals
    of one of them. A quantity of another unit, or of none, bends the curve with the load, or with
    its square.
    """
    unit = quantity(name).unit
    for other, measured in ((law.result, X), (law.quantities[0], N)):
        theirs = quantity(other).unit
        if unit != "-" and unit in (theirs, f"1/{theirs}", theirs.removeprefix("1/")):
            sizes = np.abs(measured[measured != 0])
            return sizes if unit == theirs else 1 / sizes
    return np.array([1.0, N.max() ** -2.0])


def mesh(axes: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The points of the mesh with these axes, in one row each."""
    points = np.meshgrid(*axes.values(), indexing="ij")
    return {n: p.ravel() for n, p in zip(axes, points, strict=True)}


def _cheapest(batch: Batch, axes: Mapping[str, np.ndarray], count: int) -> np.ndarray:
    """The `count` points of a mesh with the least residual sum of squares, of those with less than
    their neighbours in the mesh; an array by problem, point and free quantity. The scale of the law
    follows in closed form.
    """
    law, free, known, X, w, kind = batch
    part = max(1, X.shape[1] // 64)
    if part > 1:  # some of many measurements show as well where to begin; the last may be new
        some = np.append(np.arange(0, X.shape[1] - 1, part), -1)
        w = np.broadcast_to(w, X.shape)[:, some] * np.where(some < 0, 1, part)
        known = {n: v[..., some] if v.shape[-1] == X.shape[1] else v for n, v in known.items()}
        X = X[:, some]
    scale = scale_of(law, free)
    axes = {n: axes[n] for n in free if n != scale}
    points, shape = mesh(axes), tuple(map(len, axes.values()))
    values = {n: np.atleast_2d(v)[:, None] for n, v in known.items()}
    values |= {scale: np.ones(1)} if scale else {}
    X, w = X[:, None], np.atleast_2d(w)[:, None]

    def misfit(part):
        """The residual sums of squares at some of the points, and the scale of each."""
        curve = law.unchecked(**values, **{n: p[part, None] for n, p in points.items()})
        with np.errstate(all="ignore"):
            size = _errors.factor(kind, X, curve, w) if scale else np.ones(1)
            squares = _errors.squares(kind, X, size[..., None] * curve)
            return np.sum(w * squares, axis=-1), size

    step = max(1, 10**6 // X.size)  # so that what is computed at a time stays small
    parts = [misfit(slice(i, i + step)) for i in range(0, prod(shape), step)]
    rss = np.concatenate([rss for rss, _ in parts], axis=1)
    rss = np.where(np.isfinite(rss), rss, np.inf)
    valley = _valleys(rss.reshape(-1, *shape)).reshape(rss.shape)
    best = np.argsort(np.where(valley, rss, np.inf), axis=1)[:, :count]
    start = {n: p[best] for n, p in points.items()}
    if scale:
        sizes = np.concatenate([size for _, size in parts], axis=1)
        start[scale] = np.take_along_axis(sizes, best, axis=1)
    return np.array([start[n] for n in free]).transpose(1, 2, 0)


def _valleys(height: np.ndarray) -> np.ndarray:
    """Which points of a mesh are no higher than their neighbours along each axis but the first."""
    valley = np.ones(height.shape, dtype=bool)
    for axis in range(1, height.ndim):
        here, there = np.moveaxis(valley, axis, -1), np.moveaxis(height, axis, -1)
        here[..., 1:] &= there[..., 1:] <= there[..., :-1]
        here[..., :-1] &= there[..., :-1] <= there[..., 1:]
    return valley
