"""Profile-likelihood intervals of estimates and of what follows from them, within bounds.

The law takes the quantity of interest as an argument in place of another one (see `_targets`).
The cost of a value is the rise of the residual sum of squares when the quantity is held there and
the others are fitted. The interval holds the values whose cost is below the F threshold (Bates and
Watts 1988, chapter 6).
"""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nummodel.fits._leastsquares import Batch, Solution
from nummodel.fits._peaks import FAR, NEAR, peak
from nummodel.fits._problem import Solved, quantile
from nummodel.fits._search import axes, descend
from nummodel.fits._targets import Target, height
from nummodel.formula import Formula
from nummodel.nomenclature import quantity

if TYPE_CHECKING:
    from nummodel.fits._fit import Fit

#: Valleys of the coarse mesh that are followed down.
TRIES = 3
#: A minimum has to cost less than a value that is nearer to the interval by this share of the way.
NEARER = 0.02
#: What may be infinite, and is searched for by its reciprocal.
RECIPROCAL = ("N_opt", "X_max")


def cost(
    fit: Solved, target: Target, value: np.ndarray, row: np.ndarray, everywhere: bool = True
) -> np.ndarray:
    """F with 1 and `fit.dof` degrees of freedom, of holding row `row` of a target at `value`.

    The sum of squares may have several minima. They are searched for from the estimates and, if
    `everywhere` and the fit itself had no start, from the best points of a coarse mesh.
    """
    return _followed(fit, target, value, row, everywhere, _estimates(fit, target, len(row)))[0]


def _estimates(fit: Solved, target: Target, count: int) -> np.ndarray:
    """Those of what is free beside the target, in as many rows."""
    values = target.values(fit.values)
    row = np.array([values[n] for n in target.free], dtype=float)
    return np.tile(row, (count, 1))


def _followed(
    fit: Solved, target: Target, value, row, everywhere: bool, near: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """As `cost`, and the quantities that are free then, searched for from those that are `near`."""
    N, X, w, within = fit.folded
    step = max(1, 10**5 // len(X))  # so that what is computed at a time stays small
    if len(row) > step:
        parts = [slice(i, i + step) for i in range(0, len(row), step)]
        found = [_followed(fit, target, value[p], row[p], everywhere, near[p]) for p in parts]
        return np.concatenate([F for F, _ in found]), np.concatenate([at for _, at in found])
    load = fit.law.quantities[0]
    held: dict[str, Any] = {n: np.atleast_1d(v) for n, v in fit.known.items()} | {load: N}
    X, w = (np.broadcast_to(v, (len(row), len(X))) for v in (X, w))
    if target.weight is None:
        held[target.name] = value[:, None]
        if target.loads is not None:
            held["N0"] = target.loads[row][:, None]
    elif target.loads is not None:  # one more point
        held[load] = np.column_stack([np.broadcast_to(N, X.shape), target.loads[row]])
        for n, v in target.columns.items():
            held[n] = np.column_stack([np.broadcast_to(held[n], X.shape), v[row]])
        X, w = np.column_stack([X, value]), np.column_stack([w, target.weight[row]])
    start = fit.values | dict(zip(target.free, near.T, strict=True))
    best = squares(fit, target, held, X, w, start, everywhere and not fit.local)
    at = np.where(np.isfinite(best.rss)[:, None], best.estimate, near)
    return np.maximum(best.rss + within - fit.rss, 0.0) / fit.variance, at


def squares(
    fit: Solved, target: Target, held, X, w, start: dict[str, Any], everywhere: bool = True
) -> Solution:
    """The least residual sum of squares of each row of X with what is `held`, the target among it:
    searched for from `start` and, if `everywhere`, from the best points of a coarse mesh.
    """
    start, points = target.values(start), None
    here = np.array([np.broadcast_to(start[n], len(X)) for n in target.free]).T
    if everywhere:
        loads = fit.N if target.loads is None else np.append(fit.N, target.loads)
        points = target.values(axes(fit.law, fit.free, loads, fit.X))
    batch = Batch(target.law, target.free, held, X, w, fit.weights)
    best = descend(batch, points, TRIES, here.reshape(len(X), len(target.free)), 1e-10)
    others = [squares(fit, t, held, X, w, start, everywhere).rss for t in target.alternatives]
    return best._replace(rss=np.min([best.rss, *others], axis=0))


def interval(fit: "Fit", target: Target, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends, one a row of the target; NaN without points to spare or a weight.

    A cost that does not reach the threshold before the bound of the range has its end there, which
    may be infinity.

    Beyond an end the cost may fall again, around another minimum of the sum of squares. Errors of
    measurement decide which of the two is the lower one. So the interval holds both, unless the
    points exclude one; each is then allowed its share of the misses (Bonferroni).
    """
    t, count = fit.quantiles(target, level), len(target.value)
    no_weight = target.weight is not None and np.isnan(target.weight).any()
    if np.isnan(t).any() or not count or no_weight:
        return np.full(count, np.nan), np.full(count, np.nan)
    own = _estimates(fit, target, count)
    lower, upper = _around(fit, target, t, own)
    row, value, near = _apart(fit, target, fit.quantiles(target, shared(level, 2)), lower, upper)
    if not len(row):
        return lower, upper
    width = upper[row] - lower[row]
    width = np.where((width > 0) & np.isfinite(width), width, np.maximum(abs(value), 1e-300))
    place, valleys = np.round(value / width, 2), np.ones(count, dtype=int)
    for i in np.unique(row):
        valleys[i] += len(np.unique(place[row == i]))
        outermost = value[row == i].min(), value[row == i].max()
        kept = (row != i) | np.isin(value, outermost)
        row, value, near, place = row[kept], value[kept], near[kept], place[kept]
    for n in np.unique(valleys[row]):
        some = np.flatnonzero(valleys == n)
        t[some] = fit.quantiles(target.rows(some), shared(level, n))
    again = np.unique(row)
    rows = np.append(again, row)
    valley = target.rows(rows)._replace(value=np.append(target.value[again], value))
    low, high = _around(fit, valley, t[rows], np.concatenate([own[again], near]))
    np.minimum.at(lower, rows, low)
    np.maximum.at(upper, rows, high)
    return lower, upper


def shared(level: float, count: int) -> float:
    """The level of each of several minima that together miss the truth as often as this says."""
    return min(1 - (1 - level) / count, float(np.nextafter(1.0, 0.0)))


def _apart(
    fit: "Fit", target: Target, t: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The minima beyond the ends of each row that cost less than the threshold: for each of them
    the row, the value of the target, and what is free beside it.
    """
    load, rows, values, beside = fit.law.quantities[0], [], [], []
    for cost_there, at in fit.minima if target.name in fit.free or target.loads is not None else []:
        if cost_there > t.max() ** 2:
            break
        if target.loads is None:
            value = np.array([at[target.name]])
        else:
            value = fit.law.unchecked(**{**at, **target.columns, load: target.loads})
        value = np.clip(value, *_range(fit.law, target))
        out = np.flatnonzero(((value < lower) | (value > upper)) & (cost_there < t**2))
        rows += out.tolist()
        values += value[out].tolist()
        beside += [[target.values(at)[n] for n in target.free]] * len(out)
    row, value = np.array(rows, dtype=int), np.array(values, dtype=float)
    near = np.array(beside, dtype=float).reshape(len(row), len(target.free))
    if not len(row):
        return row, value, near
    # A search may stop where there is no minimum. The cost is then lower a little nearer by.
    end = np.where(value < lower[row], lower[row], upper[row])
    both = np.concatenate([value, value + NEARER * (end - value)])
    there, nearer = np.split(
        _followed(fit, target, both, np.tile(row, 2), True, np.tile(near, (2, 1)))[0], 2
    )
    real = (nearer > there) & (there < t[row] ** 2)
    return row[real], value[real], near[real]


def _around(
    fit: Solved, target: Target, t: np.ndarray, near: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The ends of one valley of the costs: the values nearest to the target's own that cost t^2.
    What is free beside the target is searched for from those `near` it, a row each.
    """
    count, (low, high) = len(target.value), _range(fit.law, target)
    size = {"X": fit.X.max(), "N": fit.N.max()}.get(target.name[0], 1.0)
    far = FAR * np.maximum(np.where(np.isfinite(target.value), np.abs(target.value), 0.0), size)
    lowest = np.full(count, low or (target.name in RECIPROCAL) * size / FAR)
    lowest = np.maximum(lowest, -far)
    far = np.minimum(far, high)
    value = np.clip(target.value, low, far)
    lower, upper = _ends(fit, target, t, value, lowest, far, np.tile(near, (2, 1)))
    return np.where(lower == lowest, low, lower), np.where(upper == far, high, upper)


def _range(law: Formula, target: Target) -> tuple[float, float]:
    if target.loads is not None and law.result in law.own:
        return law.range_of(law.result)
    if target.name == "N_opt" and law.quantities[0] in law.own:
        return 0.0, np.inf
    return quantity(target.name)[3:] if target.loads is not None else law.range_of(target.name)


def _ends(fit: Solved, target: Target, t: np.ndarray, value, lowest, far, path) -> np.ndarray:
    """The ends of the intervals: from the estimates `value` down to `lowest` and up to `far`, the
    first values whose cost is t^2, of the same row; `lowest` or `far` itself if there is none. A
    row of `path` has the other free quantities, as the last step towards this end left them; the
    next step searches from there.
    """
    from scipy.optimize.elementwise import find_root

    def turned(value):
        """From a value of the target to what is searched for, and back."""
        return 1 / value if target.name in RECIPROCAL else value

    count, near, limit = len(value), np.tile(turned(value), 2), turned(np.append(lowest, far))
    bounds = np.minimum(near, limit), np.maximum(near, limit)
    step = np.select(
        [near == turned(np.tile(far, 2)), near == 0], [near, 1e-9], 1e-3 * np.abs(near)
    )
    end = limit.copy()

    def excess(value, search, everywhere=True):
        search = search.astype(int)
        row = search % count
        with np.errstate(divide="ignore", over="ignore"):
            F, path[search] = _followed(fit, target, turned(value), row, everywhere, path[search])
        return np.sqrt(np.nan_to_num(F, nan=1e300, posinf=1e300)) - t[row]

    rows = np.flatnonzero(near != limit)
    for everywhere in (False, True):
        beyond = _once(partial(excess, everywhere=everywhere))
        inner, outer = near.copy(), np.clip(near + np.sign(limit - near) * step, *bounds)
        end[rows] = limit[rows]
        on, crossed = rows, rows[:0]
        while len(on):
            missing = beyond(outer[on], on)
            crossed = np.append(crossed, on[missing > 0])
            further = (missing <= 0) & (outer[on] != limit[on])
            # Where the cost is a parabola, this factor leads just beyond the threshold.
            enough = t[on % count]
            factor = np.clip(1.02 * enough / np.maximum(missing + enough, 1e-9), 1.1, 30)[further]
            on = on[further]
            inner[on] = outer[on]
            outer[on] += (factor - 1) * (outer - near)[on]
            outer = np.clip(outer, *bounds)
        if len(crossed):
            brackets = inner[crossed], outer[crossed]
            near_enough = {"xrtol": 1e-10, "fatol": 1e-10}
            root = find_root(beyond, brackets, args=(crossed,), tolerances=near_enough)
            # An estimate out of range, moved to its bound, may be beyond the threshold already.
            end[crossed] = np.where(root.success, root.x, inner[crossed])
        # Elsewhere than near the estimates a cheaper minimum may be, which has to be looked for.
        if fit.local or not len(crossed):
            break
        rows = crossed[excess(end[crossed], crossed) < -1e-6]
    return np.where(end == limit, np.append(lowest, far), turned(end)).reshape(2, count)


def _once(excess):
    """The same function of values and rows, which remembers what it has computed: `find_root` asks
    for both ends of a bracket again.
    """
    known = {}

    def remembered(value, row):
        pairs = list(zip(value.tolist(), row.tolist(), strict=True))
        new = [i for i, pair in enumerate(pairs) if pair not in known]
        if new:
            known.update(zip([pairs[i] for i in new], excess(value[new], row[new]), strict=True))
        return np.array([known[pair] for pair in pairs])

    return remembered


def load(fit: Solved, X: float, level: float) -> np.ndarray:
    """The load at which the curve first reaches `X`, and the ends of its interval: the loads at
    which the upper and the lower end of the curve's own interval reach `X`. Infinite for what does
    not reach `X` between 1, or the first load, and a thousand times the last; `NEAR` times the last
    for a function that is no algebra.
    """
    lowest, far = min(1.0, fit.N.min()), (1e3 if fit.law.algebraic else NEAR) * fit.N.max()
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

    N, value = np.geomspace(low, high, 60), np.zeros(0)
    for some in np.split(N, 10):  # far loads may take long, and need not be asked for
        value = np.append(value, function(some))
        if (value >= enough).any():
            break
    N = N[: len(value)]
    best = int(np.argmax(value))
    if value[best] < enough and 0 < best < len(N) - 1:  # between two of these, perhaps
        least = find_minimum(lambda N: -function(N), tuple(N[best - 1 : best + 2, None]))
        N[best], value[best] = least.x[0], -least.f_x[0]
    reached = np.flatnonzero(value >= enough)[:1]
    if not len(reached) or reached[0] == 0:
        return float(N[0]) if len(reached) else np.inf
    root = find_root(lambda N: function(N) - enough, (N[reached - 1], N[reached]))
    return float(root.x[0])
