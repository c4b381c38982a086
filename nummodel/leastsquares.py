"""Least squares within bounds, for many sets of measurements at once.

Levenberg-Marquardt with the formula's exact gradient, projected on the allowed ranges (More 1978;
Kanzow, Yamashita and Fukushima 2004). One problem or ten thousand go through the same arrays: a
bootstrap, a profile and a coverage study are one call each.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

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
    tolerance: float = 1e-11,
) -> Solution:
    """Minimise sum(w (X - law)^2) or, if `log`, sum(w (ln X - ln law)^2), problem by problem.

    `X` has a row for each problem; `w`, `start` and what `known` holds (the load among it) have a
    shape that fits those rows. Every estimate keeps to the range of its quantity, ends included.
    It ends with a step of `tolerance` in units of the errors that are left.
    """
    X = np.log(X) if log else X
    rows = len(X)
    root_w = np.broadcast_to(np.sqrt(w), X.shape)
    low, high = (np.array([getattr(quantity(n), end) for n in free]) for end in ("low", "high"))
    given = {n: np.broadcast_to(v, (rows, np.shape(v)[-1])) for n, v in known.items()}
    evaluate = law.jet(free)

    def errors(p, at):
        values = {n: v[at] for n, v in given.items()}
        value, *slopes = evaluate(**values, **{n: p[:, i, None] for i, n in enumerate(free)})
        slopes = [s / value for s in slopes] if log else slopes
        value = np.log(value) if log else value
        jacobian = np.empty((len(at), X.shape[1], len(free)))
        for i, slope in enumerate(slopes):
            jacobian[..., i] = slope
        return root_w[at] * (value - X[at]), jacobian * root_w[at][..., None]

    p = np.clip(np.broadcast_to(start, (rows, len(free))).astype(float), low, high)
    best, least = p.copy(), np.empty(rows)
    left = np.arange(rows)  # the problems that are not solved yet
    with np.errstate(all="ignore"):
        r, J = errors(p, left)
        rss, damping = np.sum(r**2, axis=1), np.full(rows, 1e-4)
        rounding = 1e-14 * np.sqrt(np.sum((root_w * X) ** 2, axis=1))
        for _ in range(200):
            step, size = _step(p, r, J, damping, low, high)
            new_r, new_J = errors(p + step, left)
            new_rss = np.sum(new_r**2, axis=1)
            better = new_rss <= rss * (1 + 1e-13)
            end = (size <= tolerance * np.sqrt(rss) + rounding[left]) | (damping > 1e15)
            p = np.where(better[:, None], p + step, p)
            r, rss = np.where(better[:, None], new_r, r), np.where(better, new_rss, rss)
            J = np.where(better[:, None, None], new_J, J)
            damping = np.where(
                better, np.maximum(damping / 20, 1e-13), 10 * np.maximum(damping, 1e-7)
            )
            if end.any():
                best[left[end]], least[left[end]] = p[end], rss[end]
                left, p, r, J = left[~end], p[~end], r[~end], J[~end]
                rss, damping = rss[~end], damping[~end]
            if not len(left):
                break
        best[left], least[left] = p, rss
    return Solution(best, np.where(np.isfinite(least), least, np.inf))


def _step(p, r, J, damping, low, high) -> tuple[np.ndarray, np.ndarray]:
    """The damped step that stays within bounds, and its length in the unit of the errors."""
    slope = np.einsum("bnp,bn->bp", J, r)
    A = np.einsum("bnp,bnq->bpq", J, J)
    diagonal = np.einsum("bpp->bp", A)
    # A quantity on a bound, with the slope pushing outwards, stays where it is.
    held = np.where(slope > 0, p <= low, p >= high) | (diagonal == 0)
    scale = np.sqrt(np.where(held, 1.0, diagonal))
    A = A / scale[:, :, None] / scale[:, None, :]
    A = np.where(held[:, :, None] | held[:, None, :], 0.0, A)
    i = np.arange(p.shape[1])
    A[:, i, i] = 1 + damping[:, None]
    slope = np.where(held, 0.0, slope / scale)
    finite = np.isfinite(A.sum(axis=(1, 2)) + slope.sum(axis=1))
    A = np.where(finite[:, None, None], A, np.eye(p.shape[1]))
    step = -np.linalg.solve(A, np.where(finite[:, None], slope, 0.0)[..., None])[..., 0] / scale
    step = np.clip(p + step, low, high) - p
    return step, np.sqrt(np.sum((scale * step) ** 2, axis=1))
