"""Profile-likelihood intervals of whatever can be asked of a fit, within bounds.

The quantity asked for is made an argument of the law: an estimate is one already; the height of
the curve at some load, the peak and the ceiling replace one of the others, solved for by algebra.
Holding it at a value and fitting the rest gives the squares that this value costs; the interval
holds the values whose cost stays below the F threshold (Bates and Watts 1988, chapter 6).
"""

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nummodel.formula import Formula
from nummodel.leastsquares import solve
from nummodel.nomenclature import quantity

if TYPE_CHECKING:
    from nummodel.fit import Fit


class Target(NamedTuple):
    """A quantity that is asked for: `law` has it as the argument `name`.

    `value` is its estimate, `given` what else the law has to be told, both with a row for each
    value asked for at once; `free` is what is left to fit.
    """

    law: Formula
    name: str
    value: np.ndarray
    given: dict[str, np.ndarray]
    free: tuple[str, ...]


def of(fit: "Fit", name: str) -> Target:
    """An estimate by its name, "N_opt" or "X_max". Raises ValueError for what the law lacks."""
    from nummodel import scaling

    if name in fit.free:
        value = np.array([fit.estimate[name]])
        return Target(fit.law, name, value, {}, tuple(n for n in fit.free if n != name))
    derive = {"N_opt": scaling.optimum, "X_max": scaling.ceiling}.get(name)
    asked = derive(fit.law) if derive else None
    if asked is None or not set(asked.quantities) & set(fit.free):
        raise ValueError(f"{fit.law.__name__} has no {name}")  # type: ignore[attr-defined]
    law, gone = _through(fit.law, asked, fit.free)
    value = np.array([asked(**{n: fit.values[n] for n in asked.quantities})])
    return Target(law, name, value, {}, tuple(n for n in fit.free if n != gone))


def height(fit: "Fit", N: np.ndarray) -> Target:
    """The height of the curve at each N."""
    law, gone = _through(fit.law, _height(fit.law), fit.free)
    return Target(law, "X0", fit.at(N), {"N0": N}, tuple(n for n in fit.free if n != gone))


def cost(fit: "Fit", target: Target, value: np.ndarray, row: np.ndarray) -> np.ndarray:
    """F with 1 and `fit.dof` degrees of freedom, of holding row `row` of a target at `value`."""
    start = np.array([_inside(n, fit.estimate[n]) for n in target.free])
    known = {n: np.array([v]) for n, v in fit.known.items()} | {fit.law.quantities[0]: fit.N}
    known |= {n: v[row][:, None] for n, v in target.given.items()} | {target.name: value[:, None]}
    X = np.broadcast_to(fit.X, (len(value), len(fit.X)))
    rss = solve(target.law, target.free, known, X, fit.w, start, fit.log, 1e-7).rss
    return np.maximum(rss - fit.rss, 0.0) / fit.variance


def quantile(level: float, dof: int) -> float:
    """Student's t that leaves `1 - level` outside on both sides; NaN without points to spare."""
    from scipy.special import stdtrit

    return float(stdtrit(dof, (1 + level) / 2)) if dof > 0 else np.nan


def interval(fit: "Fit", target: Target, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends, one a row of the target; NaN without points to spare.

    A cost that never reaches the threshold before the bound of the range has its end there, which
    may be infinity.
    """
    if fit.dof <= 0 or not len(target.value):
        nothing = np.full(len(target.value), np.nan)
        return nothing, nothing
    low, high = quantity(target.name)[3:]
    return _end(fit, target, level, low), _end(fit, target, level, high)


def _end(fit: "Fit", target: Target, level: float, bound: float) -> np.ndarray:
    """The end of the interval on the side of `bound`."""
    from scipy.optimize.elementwise import find_root

    t = quantile(level, fit.dof)
    far = 1e9 * max(fit.N.max(), fit.X.max())  # as good as infinity
    near = np.minimum(target.value, far)
    side = 1.0 if bound > near.min() else -1.0

    def excess(distance, row):
        row = row.astype(int)
        F = cost(fit, target, near[row] + side * distance, row)
        return np.sqrt(np.nan_to_num(F, nan=1e300, posinf=1e300)) - t

    room = np.maximum(side * (bound - near), 0.0)
    end, inner, outer = room.copy(), np.zeros(len(near)), np.full(len(near), np.nan)
    step = np.minimum(np.where(near == 0, 1e-9, 1e-3 * np.abs(near)), room)
    rows = np.flatnonzero((room > 0) & (target.value != bound))
    for _ in range(100):  # outwards, until a step costs too much
        if not len(rows):
            break
        missing = excess(step[rows], rows)
        crossed = missing > 0
        outer[rows[crossed]] = step[rows[crossed]]
        # Where the cost were a parabola, this factor would end just beyond the threshold.
        factor = np.clip(1.02 * t / np.maximum(missing + t, 1e-9), 1.1, 30)
        on = ~crossed & (step[rows] < room[rows])
        rows, factor = rows[on], factor[on]
        inner[rows] = step[rows]
        step[rows] = np.minimum(factor * step[rows], room[rows])
    found = np.flatnonzero(np.isfinite(outer))
    if len(found):
        end[found] = find_root(excess, (inner[found], outer[found]), args=(found,)).x
    return np.where(np.isinf(end), bound, near + side * end)


def _inside(name: str, value: float) -> float:
    """A start off the bounds: there, some laws have no slope to follow."""
    _, _, _, low, high = quantity(name)
    margin = 1e-6 * min(high - low, 1.0)
    return min(max(value, low + margin), high - margin)


@cache
def _height(law: Formula) -> Formula:
    """The law at another load, N0."""
    import sympy as sp

    load, other = law.symbols[law.quantities[0]], sp.Symbol("N0", positive=True)
    names = ["N0", *law.quantities[1:]]
    return Formula.of("X0", law.expr.subs(load, other), names, "height", "Height of the curve.")


@cache
def _through(law: Formula, asked: Formula, free: tuple[str, ...]) -> tuple[Formula, str]:
    """The law with `asked.result` as an argument in place of a free quantity, and which that is."""
    candidates = [n for n in free if n in asked.quantities]
    scales = [n for n in candidates if asked.is_scale(n)]
    gone = (scales or candidates[::-1])[0]
    inverse = asked.solved_for(gone, "")
    names = dict.fromkeys([*law.quantities, *inverse.quantities])
    names.pop(gone)
    expr = law.expr.subs(law.symbols[gone], inverse.expr)
    return Formula.of(law.result, expr, names, f"by_{asked.result}", "The law, re-expressed."), gone
