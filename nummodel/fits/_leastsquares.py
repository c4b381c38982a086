"""Least squares within bounds, for many sets of measurements at once.

Levenberg-Marquardt with the formula's exact derivatives, projected on the allowed ranges (More
1978; Kanzow, Yamashita and Fukushima 2004). One problem or ten thousand go through the same arrays:
a bootstrap, a profile and a coverage study are one call each.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nummodel.fits import _errors
from nummodel.fits._functions import Function
from nummodel.fits._problem import Problem
from nummodel.formula import Formula


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


def solve(batch: Batch, start: np.ndarray, tolerance: float = 1e-14) -> Solution:
    """The minimum of each problem that `start`, a row of free quantities for each or one for all,
    leads to. Every estimate keeps to the range of its quantity, ends included.

    The search stops when a further step would be below `tolerance` times the norm of the residuals.
    """
    law, free, rows = batch.law, batch.free, len(batch.X)
    rest, unsolved = _by_points(batch), np.arange(rows)
    best, least = np.empty((len(free), rows)), np.empty(rows)
    with np.errstate(all="ignore"):
        if not free:
            return Solution(best.T, _rss(rest, best))
        low, high = np.array([law.range_of(n) for n in free]).T[:, :, None]
        p = np.clip(np.atleast_2d(start).T, low, high)
        rss, gradient, hessian = _expansion(rest, p)
        p, damping = np.broadcast_to(p, best.shape), np.full(rows, 1e-4)
        rounding = np.sqrt(_total(rest.w, (3 * _errors.rounding(rest.kind, rest.X)) ** 2))
        for _ in range(200):
            step, length, newton = _step(p, gradient, hessian, damping, low, high)
            moved, size = p + step, np.sqrt(rss)
            # Newton's steps get shorter by their length, and by what the damping takes off them.
            further = length * np.where(newton, np.fmin(damping + length / size, 1), 1)
            end = (further <= tolerance * size + rounding) | (damping > 1e15)
            if end.any():
                last = _rss(_some(rest, end), moved[:, end])
                better = last <= rss[end] * (1 + 1e-13)
                best[:, unsolved[end]] = np.where(better, moved[:, end], p[:, end])
                least[unsolved[end]] = np.where(better, last, rss[end])
                on = np.flatnonzero(~end)
                if not len(on):
                    break
                rest, unsolved, rounding = _some(rest, on), unsolved[on], rounding[on]
                p, moved, gradient = p[:, on], moved[:, on], gradient[:, on]
                rss, hessian, damping = rss[on], hessian[..., on], damping[on]
            after: Any = (moved, *_expansion(rest, moved))
            better = after[1] <= rss * (1 + 1e-13)
            if not law.bends:
                after[3][1] = _secant(hessian, after[3][0], moved - p, after[2] - gradient)
            if not better.all():
                after = map(partial(np.where, better), after, (p, rss, gradient, hessian))
            p, rss, gradient, hessian = after
            smaller, larger = np.maximum(damping / 20, 1e-13), 10 * np.maximum(damping, 1e-7)
            damping = np.where(better, smaller, larger)
        else:
            best[:, unsolved], least[unsolved] = p, rss
    return Solution(best.T, np.where(np.isfinite(least), least, np.inf))


def _by_points(batch: Batch) -> Batch:
    """With points first and problems last, so that each operation works on whole rows."""
    known = {n: np.atleast_2d(v).T for n, v in batch.known.items()}
    return batch._replace(known=known, X=batch.X.T, w=np.broadcast_to(batch.w, batch.X.shape).T)


def _some(batch: Batch, problems: np.ndarray) -> Batch:
    """These problems alone, of a batch with points first."""
    known = {n: v[:, problems] if v.shape[1] > 1 else v for n, v in batch.known.items()}
    return batch._replace(known=known, X=batch.X[:, problems], w=batch.w[:, problems])


def _rss(batch: Batch, p: np.ndarray) -> np.ndarray:
    """The residual sums of squares at values `p` of the free quantities."""
    curve = batch.law.unchecked(**batch.known, **dict(zip(batch.free, p, strict=True)))
    return _total(batch.w, _errors.squares(batch.kind, batch.X, curve))


def _expansion(batch: Batch, p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """At values `p` of the free quantities: the residual sum of squares, half its gradient, and
    half its Hessian in two parts, which the slopes and the second derivatives of the law make.
    """
    law, free, known, X, w, kind = batch
    count, percent = len(free), _errors.percent(kind)
    value, *found = law.jet(free, second=law.bends)(**known, **dict(zip(free, p, strict=True)))
    root_w = np.sqrt(w)
    unit = root_w / value if percent else root_w
    pull = root_w * _errors.slope(kind, X, value)
    slopes = np.empty((count, *X.shape))
    for i in range(count):
        slopes[i] = unit * found[i]
    hessian = np.zeros((2, count, count, X.shape[1]))
    hessian[0] = np.einsum("inb,jnb->ijb", slopes, slopes)
    gradient = np.einsum("inb,nb->ib", slopes, pull)
    rss = _total(w, _errors.squares(kind, X, value))
    if not law.bends:
        return rss, gradient, hessian
    if percent:  # as d2(ln f) = d2(f) / f - d(ln f) d(ln f), and once more
        once_more = pull / root_w * {"log": 1, "relative": 2}[kind]
        hessian[1] = -np.einsum("inb,jnb->ijb", once_more * slopes, slopes)
    around, bends = unit * pull, iter(found[count:])
    for i in range(count):
        for j in range(i + 1):
            hessian[1, i, j] += (around * next(bends)).sum(axis=0)
            hessian[1, j, i] = hessian[1, i, j]
    return rss, gradient, hessian


def _secant(before, from_slopes, step, rise) -> np.ndarray:
    """What the second derivatives of the law add to the Hessian after a `step` by which the
    gradient changed by `rise`, if only slopes are known (Dennis, Gay and Welsch 1981).
    """
    old, length = before[1], partial(np.einsum, "ib,ib->b")

    def times(A):
        return np.einsum("ijb,jb->ib", A, step)

    seen = rise - times((before[0] + from_slopes) / 2)
    size = np.abs(length(step, times(old)))
    old = old * np.where(size > 0, np.fmin(np.abs(length(step, seen)) / size, 1), 1)
    missing, along = seen - times(old), length(rise, step)
    unit = rise / along
    update = missing[:, None] * unit + unit[:, None] * missing
    update -= length(missing, step) * unit[:, None] * unit
    usable = (along > 0) & np.isfinite(update).all(axis=(0, 1))
    return np.where(usable, old + np.where(usable, update, 0.0), before[1])


def _step(p, gradient, hessian, damping, low, high) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The damped step that stays within bounds, its length in the unit of the residuals, and
    whether it is Newton's.
    """
    from_slopes, from_bends = hessian
    one = np.eye(len(p))[:, :, None]
    diagonal = np.einsum("iib->ib", from_slopes)
    # A quantity on a bound, with the slope pushing outwards, stays where it is.
    held = np.where(gradient > 0, p <= low, p >= high)
    held |= ~(diagonal > 0) | ~np.isfinite(gradient)
    scale = np.sqrt(np.where(held, 1.0, diagonal))
    downhill, damped = np.where(held, 0.0, -gradient / scale), damping * one
    fixed, unit = held[:, None] | held, scale[:, None] * scale

    def to_least(hessian):
        return _solved(np.where(fixed, one, hessian / unit) + damped, downhill) / scale

    step = to_least(from_slopes + from_bends)
    newton = np.isfinite(step).all(axis=0)
    if not newton.all():  # the slopes alone always have a minimum
        step = np.where(newton, step, to_least(from_slopes))
    step = np.clip(p + np.where(np.isfinite(step), step, 0.0), low, high) - p
    return step, np.sqrt(np.sum((scale * step) ** 2, axis=0)), newton


def _solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solutions of many small symmetric systems, NaN for one that is not positive definite.

    `A[i, j]` and `b[i]` hold an entry of all systems each. LAPACK would take them one by one.
    """
    n, rows = len(b), np.concatenate([A, b[:, None]], axis=1)
    for k in range(n):
        rows[k] /= np.where(rows[k, k] > 0, rows[k, k], np.nan)
        rows[k + 1 :] -= rows[k + 1 :, k, None] * rows[k]
    x = rows[:, n]
    for k in reversed(range(1, n)):
        x[:k] -= rows[:k, k] * x[k]
    return x


def _total(weight: np.ndarray, squares: np.ndarray) -> np.ndarray:
    return np.einsum("nb,nb->b", weight, squares)


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
    rounding = rss * 1e-12 + problem.w @ _errors.rounding(problem.weights, X) ** 2
    # A hundredth of the way to a bound that is not near costs a thousand times as much as rounding.
    near = 1e7 * (rounding + problem.w.sum() * _errors.ROUNDING**2) * _spread(batch, values)
    for i, name in enumerate(free):
        for bound in law.range_of(name):
            if law.is_scale(name) or values[i] == bound or (bound - values[i]) ** 2 > near[i]:
                continue
            others = tuple(n for n in free if n != name)
            held = batch._replace(free=others, known=known | {name: np.array([bound])})
            on_bound = solve(held, np.delete(values, i))
            if on_bound.rss[0] <= rss + rounding:
                values = np.insert(on_bound.estimate[0], i, bound)
    estimate = in_unit(law, dict(zip(free, values, strict=True)), 1 / unit)
    return {n: float(value) for n, value in estimate.items()}


def _spread(batch: Batch, values: np.ndarray) -> np.ndarray:
    """By how much the square of each quantity may differ from its value, if the others follow and
    the residual sum of squares of the one problem grows by 1; infinite where the points leave the
    quantity open.
    """
    with np.errstate(all="ignore"):
        A = _expansion(_by_points(batch), values[:, None])[2][0]
        scale = np.sqrt(np.einsum("iib->i", A))
        spread = np.diag(_solved(A / np.outer(scale, scale)[..., None] + 0 * A.T, np.eye(len(A))))
        return np.where(np.isfinite(spread), spread / scale**2, np.inf)


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
    tolerance: float = 1e-14,
) -> Solution:
    """For each problem the best of the minima that its `start` and the `count` cheapest valleys of
    a mesh with the `axes` lead to. Either may be None.
    """
    estimate, rss = _minima(batch, axes, count, start, tolerance)
    best = np.arange(len(rss)), np.argmin(rss, axis=1)
    return Solution(estimate[best], rss[best])


def minima(problem: Problem, count: int = 30) -> Solution:
    """Where a search ends that begins in any of the `count` cheapest valleys of the coarse mesh: a
    row for each.
    """
    law, free, unit = problem.law, problem.free, unit_of(problem.law, problem.X)
    X, known = problem.X / unit, in_unit(law, problem.given, unit)
    batch = Batch(law, free, known, X[None], problem.w, problem.weights)
    estimate, rss = _minima(batch, axes(law, free, problem.N, X), count, None, 1e-14)
    back = in_unit(law, dict.fromkeys(free, 1.0), 1 / unit)
    squared = 1.0 if _errors.percent(problem.weights) else unit**2
    return Solution(estimate[0] * [back[n] for n in free], rss[0] * squared)


def _minima(batch: Batch, axes, count: int, start, tolerance: float) -> Solution:
    """As `descend`, with all minima of a problem in its row."""
    starts = [] if start is None else [start[:, None]]
    if axes is not None and batch.free:
        starts.append(_cheapest(batch, axes, count))
    tried = np.concatenate(starts, axis=1)
    rows, times, size = tried.shape
    X, w = (np.repeat(np.broadcast_to(v, batch.X.shape), times, axis=0) for v in batch[3:5])
    known = {n: np.repeat(v, times if v.ndim == 2 else 1, axis=0) for n, v in batch.known.items()}
    tries = batch._replace(known=known, X=X, w=w)
    estimate, rss = solve(tries, tried.reshape(rows * times, size), tolerance)
    return Solution(estimate.reshape(rows, times, size), rss.reshape(rows, times))


def axes(
    law: Formula, free: tuple[str, ...], N: np.ndarray, X: np.ndarray
) -> dict[str, np.ndarray]:
    """Values of each free quantity from which a search may begin: from a thousandth to a
    thousandfold of its sizes, by half decades, and both ends of its range.
    """
    values = {}
    for name in free:
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
        shapes = [n for n in free if not law.is_scale(n)]
        share = (law.most / math.prod(len(values[n]) for n in shapes)) ** (1 / max(len(shapes), 1))
        for n in shapes if share < 1 else ():
            some = np.linspace(0, len(values[n]) - 1, max(int(share * len(values[n])), 3))
            values[n] = values[n][np.rint(some).astype(int)]
    return values


def _sizes(law: Formula, name: str, N: np.ndarray, X: np.ndarray) -> np.ndarray:
    """What a quantity may be compared with, by its unit: the results, the loads, or the reciprocals
    of one of them. A quantity of another unit, or of none, bends the curve with the load, or with
    its square.
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


def mesh(axes: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The points of the mesh with these axes, in one row each."""
    points = np.meshgrid(*axes.values(), indexing="ij")
    return {n: p.ravel() for n, p in zip(axes, points, strict=True)}


def _cheapest(batch: Batch, axes: Mapping[str, np.ndarray], count: int) -> np.ndarray:
    """The `count` points of a mesh from which to begin: those with less residual sum of squares than
    their neighbours in the mesh, the least first, and then the others in this order; an array by problem, point and free quantity. The scale of the law
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
    listed = law.starts(free, {n: np.atleast_2d(v)[0] for n, v in known.items()}, X[0])
    points = listed or mesh(axes)
    shape = (len(points[free[0]]),) if listed else tuple(map(len, axes.values()))
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
    parts = [misfit(slice(i, i + step)) for i in range(0, math.prod(shape), step)]
    rss = np.concatenate([rss for rss, _ in parts], axis=1)
    rss = np.where(np.isfinite(rss), rss, np.inf)
    valley = np.isfinite(rss) if listed else _valleys(rss.reshape(-1, *shape)).reshape(rss.shape)
    best = np.lexsort((rss, ~valley))[:, :count]
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
