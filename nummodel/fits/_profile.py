"""Profile-likelihood intervals of whatever can be asked of a fit, within bounds.

The quantity asked for is made an argument of the law: an estimate is one already; the height of
the curve at some load, the peak and the ceiling replace one of the others, solved for by algebra.
Holding it at a value and fitting the rest gives the squares that this value costs; the interval
holds the values whose cost stays below the F threshold (Bates and Watts 1988, chapter 6).
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nummodel.fits._leastsquares import descend, grid
from nummodel.fits._peaks import FAR, peak, shapes, top
from nummodel.fits._problem import Solved
from nummodel.fits._restated import by_peak, height_at, level, through, with_peak
from nummodel.formula import Formula
from nummodel.nomenclature import quantity

#: Valleys of the coarse grid that are followed down.
TRIES = 3


class Target(NamedTuple):
    """A quantity that is asked for: `law` has it as the argument `name`.

    `value` is its estimate, `given` what else the law has to be told, both with a row for each
    value asked for at once; `free` is what is left to fit, from `start` on. An `inverse` one may be
    infinite, and is searched for by its reciprocal. `other` is the same quantity where it follows
    another formula. With a `weight` it is no argument, but a new measurement of that weight.
    """

    law: Formula
    name: str
    value: np.ndarray
    given: dict[str, np.ndarray]
    free: tuple[str, ...]
    start: dict[str, Any]
    inverse: bool = False
    other: "Target | None" = None
    weight: np.ndarray | None = None


def of(fit: Solved, name: str) -> Target:
    """An estimate by its name, "N_opt" or "X_max". Raises ValueError for what the law lacks."""
    if name in fit.free:
        return _target(fit, fit.law, name, fit.free, [fit.estimate[name]])
    if name == "N_opt":
        return _by_peak(fit)
    asked = derived(fit, name)
    best = asked.at(fit.values)
    best = np.inf if np.isnan(best) else best  # sigma = 1 without exchange: a flat curve
    way = by_peak(fit.law)
    if name == "X_max" and way and way.gone in fit.free:
        inside, falling = (
            _asked(fit, law, top, [part if n == way.gone else n for n in fit.free], best)
            for part, law, top in way.pieces
        )
        return inside._replace(other=falling)
    return _asked(fit, fit.law, asked, fit.free, best)


def _asked(fit: Solved, law: Formula, asked: Formula, free, best: float) -> Target:
    law, gone = through(law, asked, tuple(free))
    left = tuple(n for n in free if n != gone)
    return _target(fit, law, asked.result, left, [best])._replace(inverse=True)


def derived(fit: Solved, name: str) -> Formula:
    """The formula of "X_max". Raises ValueError for what a law lacks, or algebra does not find."""
    from nummodel.models import scaling

    law = fit.law.__name__  # type: ignore[attr-defined]
    if name != "X_max":
        raise ValueError(f"{law} has no {name}")
    asked, highest = scaling.ceiling(fit.law), top(fit)[1]
    found = asked.at(fit.values)
    if not np.isclose(found, highest, rtol=1e-6) and not np.isnan(found):
        raise ValueError(f"algebra finds no X_max of {law}, so it has no interval")
    if not set(asked.quantities) & set(fit.free):
        raise ValueError(f"{law} has no X_max, or it is known")
    return asked


def _by_peak(fit: Solved) -> Target:
    """The load of the peak, in place of the last quantity that makes one; and of those before, as
    long as that would have to leave its range somewhere.
    """
    N, targets = peak(fit), []
    names = shapes(fit)
    points = grid(fit.law, fit.free, fit.given, fit.X)
    for gone in reversed(names):
        left = tuple(n for n in fit.free if n != gone)
        best = [N if N > 1 else 0.5]
        law = with_peak(fit.law, gone)
        targets.append(_target(fit, law, "N_opt", left, best)._replace(inverse=True))
        some = {n: mesh.ravel()[:, None] for n, mesh in points.items() if n != gone}
        found = level(fit.law, gone, fit.values | some | {"N": np.quantile(fit.N, [0, 0.5, 1])})
        if np.isfinite(found).all():
            break
    if 1 < N < np.inf:  # what makes the peak there has to be what was estimated
        at = fit.values | {"N": N}
        known = [level(fit.law, n, at) / fit.estimate[n] for n in names[-len(targets) :]]
        if not np.allclose(known, 1, rtol=0.05):  # far out, rounding hides where the slope is 0
            raise ValueError(f"N_opt of {fit.law.__name__} has no interval: several peaks")  # type: ignore[attr-defined]
    first, *others = targets
    for other in others:
        first = other._replace(other=first)
    return first


def height(fit: Solved, N: np.ndarray) -> Target:
    """The height of the curve at each N."""
    law, gone = through(fit.law, height_at(fit.law), fit.free)
    left = tuple(n for n in fit.free if n != gone)
    return _target(fit, law, "X0", left, fit.at(N))._replace(given={"N0": N})


def observation(fit: Solved, N: np.ndarray, weight: np.ndarray) -> Target:
    """A new measurement at each N. Adding it to the others costs what it differs from the curve by,
    in units of its error, or less if the curve can give way.
    """
    return Target(fit.law, "X0", fit.at(N), {"N0": N}, fit.free, fit.values, weight=weight)


def _target(fit: Solved, law: Formula, name: str, free: tuple[str, ...], value) -> Target:
    left = tuple(n for n in free if n != name)
    start = fit.values if set(left) <= set(fit.values) else begin(fit.law, fit.values)
    return Target(law, name, np.asarray(value, dtype=float), {}, left, start)


def begin(law: Formula, values: dict[str, Any]) -> dict[str, Any]:
    """Values to begin a search from, with those of what `by_peak` puts in place of another."""
    way = by_peak(law)
    if way is None:
        return dict(values)
    with np.errstate(all="ignore"):
        u = np.clip(np.nan_to_num(1 / np.asarray(way.load.at(values)), nan=1.0), 0.0, 1.0)
    first = way.inverse.at(values | {"N_opt": 1.0})
    return dict(values) | {"u_opt": u, "d": np.maximum(values[way.gone] - first, 0.0)}


def cost(
    fit: Solved, target: Target, value: np.ndarray, row: np.ndarray, everywhere: bool = True
) -> np.ndarray:
    """F with 1 and `fit.dof` degrees of freedom, of holding row `row` of a target at `value`.

    What two quantities bend in two ways may have several minima: they are searched for from the
    estimates and, if `everywhere` and the fit was not told where to begin, from the best points of
    a coarse grid.
    """
    N, X, w, within = fit.folded
    step = max(1, 10**5 // len(X))  # so that what is computed at a time stays small
    if len(row) > step:
        parts = [slice(i, i + step) for i in range(0, len(row), step)]
        return np.concatenate([cost(fit, target, value[p], row[p], everywhere) for p in parts])
    given = {n: np.atleast_1d(v) for n, v in fit.known.items()} | {fit.law.quantities[0]: N}
    given |= {n: v[row][:, None] for n, v in target.given.items()}
    X, w = (np.broadcast_to(v, (len(row), len(X))) for v in (X, w))
    if target.weight is None:
        given |= {target.name: value[:, None]}
    else:  # one more point
        N = np.column_stack([np.broadcast_to(N, X.shape), given.pop("N0")])
        given |= {fit.law.quantities[0]: N}
        X, w = np.column_stack([X, value]), np.column_stack([w, target.weight[row]])
    left = squares(target, given, X, w, fit.log, target.start, everywhere and not fit.local)
    return np.maximum(left + within - fit.rss, 0.0) / fit.variance


def squares(
    target: Target, given, X, w, log: bool, start: dict[str, Any], everywhere: bool = True
) -> np.ndarray:
    """Least squares left for each row of X with what is `given`, the target among it: searched for
    from `start` and, if `everywhere`, from the best points of a coarse grid.
    """
    points, here = None, np.empty((len(X), len(target.free)))
    for i, name in enumerate(target.free):
        here[:, i] = start[name]
    if everywhere:
        one = {n: v[0] if np.ndim(v) == 2 else v for n, v in given.items()}
        load = target.law.quantities[0]
        one[load] = np.atleast_2d(given[load]).max(axis=0)  # that of a new measurement may differ
        points = grid(target.law, target.free, one, X[0])
    rss = descend(target.law, target.free, given, X, w, log, points, TRIES, here, 1e-7).rss
    if target.other is None:
        return rss
    return np.minimum(rss, squares(target.other, given, X, w, log, start, everywhere))


def quantile(level: float, dof: int) -> float:
    """Student's t that leaves `1 - level` outside on both sides; NaN without points to spare.

    Raises ValueError for a level that is not between 0 and 1.
    """
    from scipy.special import stdtrit

    if not 0 < level < 1:
        raise ValueError(f"level is {level}, expected a number between 0 and 1, such as 0.95")
    return float(-stdtrit(dof, (1 - level) / 2)) if dof > 0 else np.nan


def interval(fit: Solved, target: Target, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends, one a row of the target; NaN without points to spare or a weight.

    A cost that never reaches the threshold before the bound of the range has its end there, which
    may be infinity.
    """
    unknown = target.weight is not None and np.isnan(target.weight).any()
    if np.isnan(quantile(level, fit.dof)) or not len(target.value) or unknown:
        nothing = np.full(len(target.value), np.nan)
        return nothing, nothing
    low, high = quantity(target.name)[3:]
    far = np.minimum(_far(fit, target), high)
    with np.errstate(divide="ignore"):
        if target.inverse:
            top = np.full(len(far), 1 / low if low else np.inf)
            upper, lower = np.split(1 / _ends(fit, target, level, [1 / far, top]), 2)
        else:
            bottom = np.full(len(far), low)
            lower, upper = np.split(_ends(fit, target, level, [bottom, far]), 2)
    lower, upper = (np.clip(end, low, high) for end in (lower, upper))
    return lower, np.where(upper >= far * (1 - 1e-9), high, upper)


def _far(fit: Solved, target: Target) -> np.ndarray:
    """Values of the target that are as good as infinite."""
    size = {"X": fit.X.max(), "N": fit.N.max()}.get(target.name[0], 1.0)
    return FAR * np.maximum(np.where(np.isfinite(target.value), target.value, 0.0), size)


def load(fit: Solved, X: float, level: float) -> np.ndarray:
    """The load at which the curve first reaches `X`, and the ends of its interval: where `X` enters
    the interval of the curve, and where it leaves it below. Looked for from the first load, or 1,
    up to the peak or a thousand times the last load; infinite if not found there.
    """
    lowest, far = min(1.0, fit.N.min()), 1e3 * fit.N.max()
    highest = max(min(peak(fit), far), 2 * lowest)
    t = quantile(level, fit.dof)

    def above(N):
        return fit.at(N) / X - 1

    def beyond(N, threshold):
        F = cost(fit, height(fit, N), np.full(len(N), X), np.arange(len(N)))
        return np.sign(above(N)) * np.sqrt(np.nan_to_num(F, nan=1e300, posinf=1e300)) - threshold

    load = _first(above, lowest, highest, -1e-12)
    low = _first(lambda N: beyond(N, -t), lowest, load if np.isfinite(load) else far)
    high = _first(lambda N: beyond(N, t), load, far) if np.isfinite(load) else np.inf
    return np.array([load, low, high] if fit.dof > 0 else [load, np.nan, np.nan])


def _first(function, low: float, high: float, enough: float = 0.0) -> float:
    """Where a function that rises to a maximum first reaches `enough`; infinite if it does not."""
    from scipy.optimize.elementwise import find_minimum, find_root

    N = np.geomspace(low, high, 60)
    found = function(N)
    best = int(np.argmax(found))
    if found[best] < enough and 0 < best < len(N) - 1:  # between two of these, perhaps
        least = find_minimum(lambda N: -function(N), tuple(N[best - 1 : best + 2, None]))
        N[best], found[best] = least.x[0], -least.f_x[0]
    reached = np.flatnonzero(found >= enough)[:1]
    if not len(reached) or reached[0] == 0:
        return float(N[0]) if len(reached) else np.inf
    root = find_root(lambda N: function(N) - enough, (N[reached - 1], N[reached]))
    return float(root.x[0])


def _ends(fit: Solved, target: Target, level: float, limits: list[np.ndarray]) -> np.ndarray:
    """The lower ends of all intervals, then the upper ends. The first of the `limits` bounds the
    lower ends, the second the upper ends. For an inverse target all of these are reciprocals.
    """
    t, count = quantile(level, fit.dof), len(target.value)
    value = np.tile(target.value, 2)
    within = np.clip(value, *quantity(target.name)[3:])
    with np.errstate(divide="ignore"):
        near = 1 / within if target.inverse else within
    least = np.tile(1 / _far(fit, target), 2) if target.inverse else np.full(2 * count, 1e-9)
    side, limit = np.repeat([-1, 1], count), np.concatenate(limits)
    end = np.where(side * (limit - near) > 0, limit, near)
    step = side * np.where(near == 0, least, 1e-3 * np.abs(near))
    moved = within != value

    def excess(value, row, everywhere=True):
        row = row.astype(int) % count
        with np.errstate(divide="ignore", over="ignore"):
            F = cost(fit, target, 1 / value if target.inverse else value, row, everywhere)
        return np.sqrt(np.nan_to_num(F, nan=1e300, posinf=1e300)) - t

    rows = np.flatnonzero(end != near)
    for beyond in (partial(excess, everywhere=False), excess):
        # An estimate beyond the range has been moved to its bound, which may be too far already.
        far = rows[moved[rows]]
        far = far[beyond(near[far], far) > 0] if len(far) else far
        on = np.setdiff1d(rows, far)
        end[far] = near[far]
        end[on] = _outwards(beyond, on, near[on], step[on], limit[on], t)
        # Elsewhere than near the estimates a cheaper minimum may be, which has to be looked for.
        rows = rows[end[rows] != limit[rows]]
        rows = rows[excess(end[rows], rows) < -1e-6] if len(rows) and not fit.local else rows[:0]
        if not len(rows):
            break
    return np.abs(end)  # a negative zero has the wrong infinity as its reciprocal


def _outwards(excess, rows, near, step, limit, t: float) -> np.ndarray:
    """Where `excess`, which is negative at each `near`, becomes zero on the way to its `limit`;
    that, if it does not. Steps grow from `step` on.
    """
    from scipy.optimize.elementwise import find_root

    end, inner, outer = limit.copy(), near.copy(), np.full(len(near), np.nan)
    on = np.arange(len(near))
    for _ in range(100):
        if not len(on):
            break
        low, high = np.minimum(near, limit)[on], np.maximum(near, limit)[on]
        tried = np.clip(near[on] + step[on], low, high)
        missing = excess(tried, rows[on])
        outer[on[missing > 0]] = tried[missing > 0]
        # Where the cost were a parabola, this factor would end just beyond the threshold.
        factor = np.clip(1.02 * t / np.maximum(missing + t, 1e-9), 1.1, 30)
        further = (missing <= 0) & (tried != limit[on])
        inner[on[further]] = tried[further]
        step = step.copy()
        step[on] *= factor
        on = on[further]
    found = np.flatnonzero(np.isfinite(outer))
    if len(found):
        ends = inner[found], outer[found]
        root = find_root(excess, ends, args=(rows[found],), tolerances={"xrtol": 1e-10})
        end[found] = np.where(root.success, root.x, outer[found])  # too far rather than too near
    return end
