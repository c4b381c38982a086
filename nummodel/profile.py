"""Profile-likelihood intervals of whatever can be asked of a fit, within bounds.

The quantity asked for is made an argument of the law: an estimate is one already; the height of
the curve at some load, the peak and the ceiling replace one of the others, solved for by algebra.
Holding it at a value and fitting the rest gives the squares that this value costs; the interval
holds the values whose cost stays below the F threshold (Bates and Watts 1988, chapter 6).
"""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nummodel.formula import Formula
from nummodel.leastsquares import solve
from nummodel.nomenclature import quantity

if TYPE_CHECKING:
    from nummodel.fit import Fit


#: An end this many times beyond the estimate, or the measurements, is as good as infinite.
FAR = 1e9


class Target(NamedTuple):
    """A quantity that is asked for: `law` has it as the argument `name`.

    `value` is its estimate, `given` what else the law has to be told, both with a row for each
    value asked for at once; `free` is what is left to fit, from `start` on. An `inverse` one may be
    infinite, and is searched for by its reciprocal.
    """

    law: Formula
    name: str
    value: np.ndarray
    given: dict[str, np.ndarray]
    free: tuple[str, ...]
    start: dict[str, Any]
    inverse: bool = False


def of(fit: "Fit", name: str) -> Target:
    """An estimate by its name, "N_opt" or "X_max". Raises ValueError for what the law lacks."""
    from nummodel import scaling

    if name in fit.free:
        return _target(fit, fit.law, name, fit.free, [fit.estimate[name]])
    derive = {"N_opt": scaling.optimum, "X_max": scaling.ceiling}.get(name)
    asked = derive(fit.law) if derive else None
    if asked is None or not set(asked.quantities) & set(fit.free):
        raise ValueError(f"{fit.law.__name__} has no {name}")  # type: ignore[attr-defined]
    best = abs(asked(**{n: fit.values[n] for n in asked.quantities}))  # 1/-0 is -inf
    if np.isnan(best):  # sigma = 1 without exchange: the curve is flat
        best = np.inf if name == "N_opt" else float(fit.at(1.0))
    law, free = fit.law, fit.free
    if name == "X_max":
        law, asked, free = by_peak(law, free)
    law, gone = _through(law, asked, free)
    return _target(fit, law, name, tuple(n for n in free if n != gone), [best])._replace(
        inverse=True
    )


def height(fit: "Fit", N: np.ndarray) -> Target:
    """The height of the curve at each N."""
    law, gone = _through(fit.law, _height(fit.law), fit.free)
    left = tuple(n for n in fit.free if n != gone)
    return _target(fit, law, "X0", left, fit.at(N))._replace(given={"N0": N})


def _target(fit: "Fit", law: Formula, name: str, free: tuple[str, ...], value) -> Target:
    left = tuple(n for n in free if n != name)
    return Target(law, name, np.asarray(value, dtype=float), {}, left, starts(fit.law, fit.values))


def starts(law: Formula, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values to begin a search from: off the bounds, where some laws have no slope to follow; and
    with the reciprocal of the peak's load, where the law has a peak.
    """
    from nummodel import scaling

    found = {}
    for name, value in values.items():
        low, high = quantity(name)[3:]
        margin = 1e-6 * min(high - low, 1.0)
        found[name] = np.clip(value, low + margin, high - margin)
    peak = scaling.optimum(law)
    if peak:
        found["u_opt"] = 1 / np.asarray(peak(**{n: found[n] for n in peak.quantities}))
    return found


def cost(fit: "Fit", target: Target, value: np.ndarray, row: np.ndarray) -> np.ndarray:
    """F with 1 and `fit.dof` degrees of freedom, of holding row `row` of a target at `value`."""
    begin = np.array(begins(target.law, target.free, target.start))
    times, rows = len(begin), np.repeat(row, len(begin))
    known = {n: np.array([v]) for n, v in fit.known.items()} | {fit.law.quantities[0]: fit.N}
    known |= {n: v[rows][:, None] for n, v in target.given.items()}
    known |= {target.name: np.repeat(value, times)[:, None]}
    X = np.broadcast_to(fit.X, (len(rows), len(fit.X)))
    start = np.tile(begin, (len(row), 1))
    rss = solve(target.law, target.free, known, X, fit.w, start, fit.log, 1e-7).rss
    return np.maximum(rss.reshape(-1, times).min(axis=1) - fit.rss, 0.0) / fit.variance


def begins(law: Formula, free: tuple[str, ...], start: Mapping[str, Any]) -> list[np.ndarray]:
    """Where to search from, a row for each free quantity: `start`, and where each of them is next
    to nothing. What two quantities bend in two ways may have several minima.
    """
    first = np.array([start[n] for n in free])
    shapes = [i for i, n in enumerate(free) if not law.is_scale(n)]
    found = [first]
    for i in shapes if len(shapes) > 1 else ():
        found.append(first.copy())
        found[-1][i] = 1e-6
    return found


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
    if target.inverse:
        with np.errstate(divide="ignore"):
            top = 1 / low if low else np.inf
            ends = [1 / _end(fit, target, level, side, top) for side in (1, -1)]
    else:
        ends = [_end(fit, target, level, -1, low), _end(fit, target, level, 1, high)]
    lower, upper = (np.clip(end, low, high) for end in ends)
    size = {"X": fit.X.max(), "N": fit.N.max()}.get(target.name[0], 1.0)
    beyond = FAR * np.maximum(np.where(np.isfinite(target.value), target.value, 0.0), size)
    return lower, np.where(upper > beyond, np.inf, upper)


def load(fit: "Fit", X: float, far: float, level: float) -> np.ndarray:
    """The load at which the curve first reaches `X`, and the ends of its interval: where `X` enters
    the interval of the curve, and where it leaves it below. Looked for up to `far`, or a thousand
    times the loads measured where that is more; infinite if not found there.
    """
    from scipy.optimize.elementwise import find_root

    N = np.geomspace(1e-3 * min(1.0, fit.N.min()), max(far, 1e3 * fit.N.max()), 600)
    t = quantile(level, fit.dof)

    def above(N):
        return fit.at(N) - X

    def beyond(N, threshold):
        F = cost(fit, height(fit, N), np.full(len(N), X), np.arange(len(N)))
        F = np.nan_to_num(F, nan=1e300, posinf=1e300)
        return np.sign(above(N)) * np.sqrt(F) - threshold

    def first(function, *args):
        reached = np.flatnonzero(function(N, *args) >= 0)[:1]
        if not len(reached) or reached[0] == 0:
            return 0.0 if len(reached) else np.inf
        return find_root(function, (N[reached - 1], N[reached]), args=args).x[0]

    ends = [first(beyond, end) for end in (-t, t)] if fit.dof > 0 else [np.nan] * 2
    return np.array([first(above), *ends])


def _end(fit: "Fit", target: Target, level: float, side: int, bound: float) -> np.ndarray:
    """The end of the interval on one side (-1 down, 1 up) of the value, or of its reciprocal."""
    from scipy.optimize.elementwise import find_root

    t = quantile(level, fit.dof)
    within = np.clip(target.value, *quantity(target.name)[3:])
    with np.errstate(divide="ignore"):
        near = 1 / within if target.inverse else within
    bound = 0.0 if target.inverse and side < 0 else bound

    def excess(distance, row):
        row = row.astype(int)
        value = near[row] + side * distance
        with np.errstate(divide="ignore"):
            F = cost(fit, target, 1 / value if target.inverse else value, row)
        return np.sqrt(np.nan_to_num(F, nan=1e300, posinf=1e300)) - t

    room = np.maximum(side * (bound - near), 0.0)
    end, inner, outer = room.copy(), np.zeros(len(near)), np.full(len(near), np.nan)
    first = 1e-15 / (max(fit.N.max(), fit.X.max()) if target.inverse else 1e-6)
    step = np.minimum(np.where(near == 0, first, 1e-3 * np.abs(near)), room)
    # An estimate beyond the range has been moved to its bound, which may be too far already.
    moved = np.flatnonzero((within != target.value) & (room > 0))
    room[moved] = end[moved] = np.where(excess(0 * room[moved], moved) > 0, 0.0, room[moved])
    rows = np.flatnonzero(room > 0)
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
        root = find_root(excess, (inner[found], outer[found]), args=(found,))
        end[found] = np.where(root.success, root.x, outer[found])  # too far rather than too near
    return np.abs(near + side * end)  # a negative zero has the wrong infinity as its reciprocal


@cache
def by_peak(law: Formula, free: tuple[str, ...]) -> tuple[Formula, Formula, tuple[str, ...]]:
    """Law, ceiling and free quantities with the reciprocal of the peak's load in place of what
    makes the peak: the ceiling has that by its square root, whose slope is infinite at zero.
    """
    import sympy as sp

    from nummodel import scaling

    top, peak = scaling.ceiling(law), scaling.optimum(law)
    shapes = [n for n in free if peak and n in peak.quantities]
    if not peak or not shapes:
        return law, top, free
    gone, u = shapes[-1], sp.Symbol("u_opt", positive=True)
    inverse = peak.solved_for(gone, "")
    expr = inverse.expr.subs(inverse.symbols["N_opt"], 1 / u)
    names = [n if n != gone else "u_opt" for n in law.quantities]
    turned = law.expr.subs(law.symbols[gone], expr)
    again = Formula.of(law.result, turned, names, "by_peak", "The law, by its peak.")
    height = sp.simplify(turned.subs(law.symbols["N"], 1 / u))
    left = [n for n in names if n in {symbol.name for symbol in height.free_symbols}]
    ceiling = Formula.of("X_max", height, left, "ceiling_by_peak", "Its height there.")
    return again, ceiling, tuple(n if n != gone else "u_opt" for n in free)


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
