"""Where a search for least squares begins, and which of the minima it finds is the estimate.

A coarse mesh over the allowed ranges shows the valleys of the sum of squares, and `_leastsquares`
follows the cheapest of them down.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from nummodel.fits import _errors
from nummodel.fits._functions import Function
from nummodel.fits._leastsquares import Batch, Solution, by_points, expansion, solve, solved
from nummodel.fits._problem import Problem
from nummodel.formula import Formula


def search(problem: Problem, start: Mapping[str, float] | None = None) -> dict[str, float]:
    """The estimates of a problem: the best of the minima that the best points of a coarse mesh
    lead to, or the one that `start` leads to. Raises ValueError if the law is finite nowhere in the
    allowed ranges.
    """
    law, free, unit = problem.law, problem.free, unit_of(problem.law, problem.X)
    X, known = problem.X / unit, in_unit(law, problem.given, unit)
    batch = Batch(law, free, known, X[None], problem.w, problem.weights)
    if start is None:
        solution = descend(batch, axes(law, free, problem.N, X), law.tries)
    else:
        solution = solve(batch, np.array([in_unit(law, start, unit)[n] for n in free]))
    values, rss = solution.estimate[0], solution.rss[0]
    if not np.isfinite(rss):
        what = "results" if "part" in problem.known else law.result
        raise ValueError(f"no allowed values of {', '.join(free)} give finite {what}")
    # What differs from a bound by rounding alone is on it.
    rounding = rss * 1e-12 + problem.w @ _errors.rounding(problem.weights, X) ** 2
    # A hundredth of the way to a bound that is not near costs a thousand times as much as rounding.
    near = 1e7 * (rounding + problem.w.sum() * _errors.ROUNDING**2) * _spread(batch, values)
    for i, name in enumerate(free):
        for bound in law.range_of(name):
            if law.is_scale(name) or values[i] == bound or not np.isfinite(bound):
                continue
            if (bound - values[i]) ** 2 > near[i]:
                continue
            others = tuple(n for n in free if n != name)
            held = batch._replace(free=others, known=known | {name: np.array([bound])})
            on_bound = solve(held, np.delete(values, i))
            if on_bound.rss[0] <= rss + rounding:
                values = np.insert(on_bound.estimate[0], i, bound)
    estimate = in_unit(law, dict(zip(free, values, strict=True)), 1 / unit)
    return {n: float(value) for n, value in estimate.items()}


def _spread(batch: Batch, values: np.ndarray) -> np.ndarray:
    """For each quantity, the square of the change that makes the residual sum of squares larger by
    1, when the other quantities are fitted again; infinite if the points leave the quantity open.
    """
    with np.errstate(all="ignore"):
        A = expansion(by_points(batch), values[:, None])[2][0]
        scale = np.sqrt(np.einsum("iib->i", A))
        spread = np.diag(solved(A / np.outer(scale, scale)[..., None] + 0 * A.T, np.eye(len(A))))
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


def minima(problem: Problem, count: int = 12) -> Solution:
    """Where a search ends that begins in any of the `count` cheapest valleys of the coarse mesh: a
    row for each.
    """
    law, free, unit = problem.law, problem.free, unit_of(problem.law, problem.X)
    N, X, w, within = problem.folded
    X, known = X / unit, in_unit(law, problem.given | {law.quantities[0]: N}, unit)
    batch = Batch(law, free, known, X[None], w, problem.weights)
    estimate, rss = _minima(batch, axes(law, free, N, X), count, None, 1e-14)
    back = in_unit(law, dict.fromkeys(free, 1.0), 1 / unit)
    squared = 1.0 if _errors.percent(problem.weights) else unit**2
    return Solution(estimate[0] * [back[n] for n in free], rss[0] * squared + within)


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
    """The `count` points of a mesh from which to begin: those with less residual sum of squares
    than their neighbours in the mesh, the least first, and then the others in this order; an array
    by problem, point and free quantity. The scale of the law follows in closed form.
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
    valley = np.isfinite(rss)
    if not listed:
        valley &= _valleys(rss.reshape(-1, *shape)).reshape(rss.shape)
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
