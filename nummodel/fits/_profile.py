"""Profile-likelihood intervals of whatever can be asked of a fit, within bounds.

The quantity asked for is made an argument of the law, in place of another one (`_reparametrised`).
Its cost at a value is what the residual sum of squares rises by if the quantity is held there and
the others are fitted. The interval holds the values whose cost is below the F threshold (Bates and
Watts 1988, chapter 6).
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nummodel.fits._leastsquares import Batch, axes, descend, mesh, scale_of
from nummodel.fits._peaks import FAR, peak, shapes, top
from nummodel.fits._problem import Solved
from nummodel.fits._reparametrised import by_height, by_peak, height_at, level
from nummodel.formula import Formula
from nummodel.nomenclature import quantity

#: Valleys of the coarse mesh that are followed down.
TRIES = 3
#: What may be infinite, and is searched for by its reciprocal.
RECIPROCAL = ("N_opt", "X_max")
#: How often a measurement counts that a curve has to meet.
EXACT = 1e12


class Target(NamedTuple):
    """The quantity `name` whose intervals are asked for, and the `law` that has it as an argument.

    `value` is its estimate, for each of the `loads` if it has loads. `free` are the quantities that
    are fitted while it is held; one of them is the square root of the quantity `rooted`, if that is
    named. A target with a `weight` for each load is no argument of the law: it is one more
    measurement. The cost is the least of those of the target and of its `alternatives`, which have
    the quantity in place of another one.
    """

    name: str
    law: Formula
    free: tuple[str, ...]
    value: np.ndarray
    loads: np.ndarray | None = None
    weight: np.ndarray | None = None
    rooted: str = ""
    alternatives: tuple["Target", ...] = ()

    def values(self, of_the_law: dict[str, Any]) -> dict[str, Any]:
        """Values of quantities of the fitted law, and the root that follows from them."""
        root = {"root": np.sqrt(of_the_law[self.rooted])} if self.rooted else {}
        return of_the_law | root


def of(fit: Solved, name: str) -> Target:
    """An estimate by its name, "N_opt" or "X_max". Raises ValueError for what the law lacks."""
    if name in fit.free:
        return Target(name, fit.law, _without(fit.free, name), np.array([fit.estimate[name]]))
    if name == "N_opt":
        return _peak(fit)
    if name == "X_max":
        return _ceiling(fit)
    raise ValueError(f"{fit.law.__name__} has no {name}")  # type: ignore[attr-defined]


def height(fit: Solved, N: np.ndarray) -> Target:
    """The height of the curve at each N."""
    scale = scale_of(fit.law, fit.free)
    if not scale:  # no quantity gives way to the height: the curve has to meet it
        return observation(fit, N, np.full(len(N), EXACT * fit.w.max()))
    law = by_height(fit.law, height_at(fit.law), scale)
    return Target("X0", law, _without(fit.free, scale), fit.at(N), N)


def observation(fit: Solved, N: np.ndarray, weight: np.ndarray) -> Target:
    """A new measurement at each N. Adding it to the others costs what it differs from the curve by,
    in units of its error, or less if the curve can give way.
    """
    return Target("X0", fit.law, fit.free, fit.at(N), N, weight)


def _ceiling(fit: Solved) -> Target:
    """The highest throughput in place of the scale of the law. Its slope by the quantity that makes
    a peak is infinite at zero, its slope by the square root of that quantity is not.
    """
    from nummodel.models import scaling

    ceiling, scale = highest(fit), scale_of(fit.law, fit.free)
    if not scale:
        raise ValueError("X_max with an interval needs a free scale, such as X1")
    optimum = scaling.optimum(fit.law)
    rooted = optimum.quantities[-1] if optimum else ""
    rooted = rooted if rooted in fit.free else ""
    free = tuple(n if n != rooted else "root" for n in _without(fit.free, scale))
    again = by_height(fit.law, ceiling, scale, rooted)
    value = ceiling.at(fit.values)
    value = np.array([np.inf if np.isnan(value) else value])  # sigma = 1: a flat curve
    return Target("X_max", again, free, value, rooted=rooted)


def movers(fit: Solved, name: str) -> tuple[str, ...]:
    """The estimates that "N_opt" or "X_max" follows. Raises ValueError for what the law lacks."""
    if name == "N_opt" and name not in fit.free:
        return shapes(fit)
    if name == "X_max" and name not in fit.free:
        return tuple(n for n in highest(fit).quantities if n in fit.free)
    return ()


def highest(fit: Solved) -> Formula:
    """The formula of "X_max". Raises ValueError for what a law lacks, or algebra does not find."""
    from nummodel.models import scaling

    law, by_search = fit.law.__name__, top(fit)[1]  # type: ignore[attr-defined]
    ceiling = scaling.ceiling(fit.law)
    by_algebra = ceiling.at(fit.values)
    if not np.isclose(by_algebra, by_search, rtol=1e-6) and not np.isnan(by_algebra):
        raise ValueError(f"algebra finds no X_max of {law}, so it has no interval")
    if not set(ceiling.quantities) & set(fit.free):
        raise ValueError(f"{law} has no X_max, or it is known")
    return ceiling


def _peak(fit: Solved) -> Target:
    """The load of the peak, in place of the last quantity that makes one; and of those before, as
    long as that would have to leave its range somewhere.
    """
    N, targets = peak(fit), []
    names = shapes(fit)
    points = mesh(axes(fit.law, fit.free, fit.given, fit.X))
    for name in reversed(names):
        law, rest = by_peak(fit.law, name), _without(fit.free, name)
        targets.append(Target("N_opt", law, rest, np.array([N if N > 1 else 0.5])))
        some = {n: points[n][:, None] for n in names if n != name}
        values = fit.values | some | {"N": np.quantile(fit.N, [0, 0.5, 1])}
        if np.isfinite(level(fit.law, name, values)).all():
            break
    if 1 < N < np.inf:  # what makes the peak there has to be what was estimated
        at = fit.values | {"N": N}
        ratios = [level(fit.law, n, at) / fit.estimate[n] for n in names[-len(targets) :]]
        if not np.allclose(ratios, 1, rtol=0.05):  # far out, rounding hides where the slope is 0
            raise ValueError(f"N_opt of {fit.law.__name__} has no interval: several peaks")  # type: ignore[attr-defined]
    return targets[0]._replace(alternatives=tuple(targets[1:]))


def _without(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(n for n in names if n != name)


def cost(
    fit: Solved, target: Target, value: np.ndarray, row: np.ndarray, everywhere: bool = True
) -> np.ndarray:
    """F with 1 and `fit.dof` degrees of freedom, of holding row `row` of a target at `value`.

    What two quantities bend in two ways may have several minima: they are searched for from the
    estimates and, if `everywhere` and the fit was not told where to begin, from the best points of
    a coarse mesh.
    """
    N, X, w, within = fit.folded
    step = max(1, 10**5 // len(X))  # so that what is computed at a time stays small
    if len(row) > step:
        parts = [slice(i, i + step) for i in range(0, len(row), step)]
        return np.concatenate([cost(fit, target, value[p], row[p], everywhere) for p in parts])
    load = fit.law.quantities[0]
    held: dict[str, Any] = {n: np.atleast_1d(v) for n, v in fit.known.items()} | {load: N}
    X, w = (np.broadcast_to(v, (len(row), len(X))) for v in (X, w))
    if target.loads is not None:
        held["N0"] = target.loads[row][:, None]
    if target.weight is None:
        held[target.name] = value[:, None]
    else:  # one more point
        held[load] = np.column_stack([np.broadcast_to(N, X.shape), held.pop("N0")])
        X, w = np.column_stack([X, value]), np.column_stack([w, target.weight[row]])
    rss = squares(fit, target, held, X, w, fit.values, everywhere and not fit.local)
    return np.maximum(rss + within - fit.rss, 0.0) / fit.variance


def squares(
    fit: Solved, target: Target, held, X, w, start: dict[str, Any], everywhere: bool = True
) -> np.ndarray:
    """Residual sum of squares of each row of X with what is `held`, the target among it: searched
    for from `start` and, if `everywhere`, from the best points of a coarse mesh.
    """
    start, points = target.values(start), None
    here = np.array([np.broadcast_to(start[n], len(X)) for n in target.free]).T
    if everywhere:
        loads = fit.N if target.loads is None else np.append(fit.N, target.loads)
        given = fit.given | {fit.law.quantities[0]: loads}
        points = target.values(axes(fit.law, fit.free, given, fit.X))
    batch = Batch(target.law, target.free, held, X, w, fit.log)
    rss = descend(batch, points, TRIES, here.reshape(len(X), -1), 1e-7).rss
    others = [squares(fit, t, held, X, w, start, everywhere) for t in target.alternatives]
    return np.min([rss, *others], axis=0)


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
    t, count = quantile(level, fit.dof), len(target.value)
    no_weight = target.weight is not None and np.isnan(target.weight).any()
    if np.isnan(t) or not count or no_weight:
        return np.full(count, np.nan), np.full(count, np.nan)
    low, high = quantity(target.name)[3:]
    size = {"X": fit.X.max(), "N": fit.N.max()}.get(target.name[0], 1.0)
    infinite = FAR * np.maximum(np.where(np.isfinite(target.value), target.value, 0.0), size)
    far = np.minimum(infinite, high)

    def turned(value):
        """From a value of the target to what is searched for, and back."""
        return 1 / value if target.name in RECIPROCAL else value

    with np.errstate(divide="ignore"):
        limits = np.sort(turned(np.array([np.full(count, low), far])), axis=0)
        smallest = turned(infinite) if target.name in RECIPROCAL else np.full(count, 1e-9)
        ends = turned(_ends(fit, target, t, turned, limits, smallest))
    lower, upper = np.clip(np.sort(ends, axis=0), low, high)
    return lower, np.where(upper >= far * (1 - 1e-9), high, upper)


def _ends(fit: Solved, target: Target, t: float, turned, limits, smallest) -> np.ndarray:
    """The lower ends of all intervals, and the upper ends, of what is searched for: from the
    estimates to the `limits`, by steps that are `smallest` at an estimate of zero.
    """
    count = len(target.value)
    within = np.clip(target.value, *quantity(target.name)[3:])
    moved = np.tile(within != target.value, 2)
    near, smallest, limit = np.tile(turned(within), 2), np.tile(smallest, 2), limits.ravel()
    side = np.repeat([-1, 1], count)
    end = np.where(side * (limit - near) > 0, limit, near)
    step = side * np.where(near == 0, smallest, 1e-3 * np.abs(near))

    def excess(value, row, everywhere=True):
        with np.errstate(divide="ignore", over="ignore"):
            F = cost(fit, target, turned(value), row.astype(int) % count, everywhere)
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
    return np.abs(end).reshape(2, count)  # a negative zero has the wrong infinity as its reciprocal


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
