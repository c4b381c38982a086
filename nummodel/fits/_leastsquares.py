"""Least squares within bounds, for many sets of measurements at once.

Levenberg-Marquardt with the formula's exact derivatives, projected on the allowed ranges (More
1978; Kanzow, Yamashita and Fukushima 2004). One problem or ten thousand go through the same arrays:
a bootstrap, a profile and a coverage study are one call each.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nummodel.fits import _errors
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
    rest, unsolved = by_points(batch), np.arange(rows)
    best, least = np.empty((len(free), rows)), np.empty(rows)
    with np.errstate(all="ignore"):
        if not free:
            return Solution(best.T, _rss(rest, best))
        low, high = np.array([law.range_of(n) for n in free]).T[:, :, None]
        p = np.clip(np.atleast_2d(start).T, low, high)
        rss, gradient, hessian = expansion(rest, p)
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
            after: Any = (moved, *expansion(rest, moved))
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


def by_points(batch: Batch) -> Batch:
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


def expansion(batch: Batch, p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
        return solved(np.where(fixed, one, hessian / unit) + damped, downhill) / scale

    step = to_least(from_slopes + from_bends)
    newton = np.isfinite(step).all(axis=0)
    if not newton.all():  # the slopes alone always have a minimum
        step = np.where(newton, step, to_least(from_slopes))
    step = np.clip(p + np.where(np.isfinite(step), step, 0.0), low, high) - p
    return step, np.sqrt(np.sum((scale * step) ** 2, axis=0)), newton


def solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
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
