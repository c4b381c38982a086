"""What has an interval: estimates, peaks, ceilings, heights of the curve, and new measurements.

The law takes such a quantity as an argument in place of another one (`_reparametrised`).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from nummodel.fits._functions import Function
from nummodel.fits._peaks import FAR, falls, least, peak, shapes, top
from nummodel.fits._problem import Solved
from nummodel.fits._reparametrised import by_height, by_peak, height_at, level
from nummodel.fits._search import axes, mesh, scale_of
from nummodel.formula import Formula

#: How often a measurement counts that a curve has to meet: its interval is then a thousandth of its
#: width too wide at most, and the search does not have to follow a narrow valley.
EXACT = 1e4


class Target(NamedTuple):
    """A quantity that is held at a value while the quantities in `free` are fitted.

    The `law` has this quantity, `name`, as an argument. `value` is its estimate: one number, or one
    for each of the `loads`. If `rooted` is the name of an argument, the square root of that
    argument is fitted. With a `weight` at each load, the quantity is no argument of the law: it is
    compared with the law's result, as a measurement is; `columns` are its other quantities. A
    quantity may stand in place of different arguments of the law: then the others are
    `alternatives`, and the lowest of all costs is used.
    """

    name: str
    law: Formula
    free: tuple[str, ...]
    value: np.ndarray
    loads: np.ndarray | None = None
    weight: np.ndarray | None = None
    rooted: str = ""
    alternatives: tuple["Target", ...] = ()
    columns: Mapping[str, Any] = {}

    def rows(self, which: np.ndarray) -> "Target":
        """Some of its rows."""
        loads, weight = (v if v is None else v[which] for v in (self.loads, self.weight))
        columns = {n: v[which] for n, v in self.columns.items()}
        return self._replace(value=self.value[which], loads=loads, weight=weight, columns=columns)

    def values(self, of_the_law: dict[str, Any]) -> dict[str, Any]:
        """Values of quantities of the fitted law, and the root that follows, if it is not there."""
        root = {"root": np.sqrt(of_the_law[self.rooted])} if self.rooted else {}
        return root | of_the_law


def of(fit: Solved, name: str) -> Target:
    """An estimate by its name, "N_opt" or "X_max". Raises ValueError for what the law lacks."""
    if name in fit.free:
        return Target(name, fit.law, _without(fit.free, name), np.array([fit.estimate[name]]))
    if name == "N_opt":
        return _peak(fit)
    if name == "X_max":
        return _ceiling(fit)
    raise ValueError(f"{fit.law.__name__} has no {name}")


def height(fit: Solved, N: np.ndarray, columns: Mapping[str, Any] | None = None) -> Target:
    """The height of the curve at each N, where the law has these other columns."""
    scale = scale_of(fit.law, fit.free)
    taken = {"N0", "X0"} & {fit.law.result, *fit.law.quantities}
    if not scale or columns or taken:  # no quantity gives way: the curve has to meet the height
        return observation(fit, N, np.full(len(N), EXACT * fit.w.max()), columns)
    law = by_height(fit.law, height_at(fit.law), scale)
    return Target("X0", law, _without(fit.free, scale), fit.at(N), N)


def observation(
    fit: Solved, N: np.ndarray, weight: np.ndarray, columns: Mapping[str, Any] | None = None
) -> Target:
    """A new measurement at each N, where the law has these other columns. Adding it to the others
    costs what it differs from the curve by, in units of its error, or less if the curve can give
    way.
    """
    columns = columns or {}
    return Target("X0", fit.law, fit.free, fit.at(N, **columns), N, weight, columns=columns)


def _ceiling(fit: Solved) -> Target:
    """The highest throughput in place of the scale of the law. Its slope by the quantity that makes
    a peak is infinite at zero, its slope by the square root of that quantity is not.
    """
    from nummodel.models import scaling

    if isinstance(fit.law, Function):
        return _limit(fit)
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


def _limit(fit: Solved) -> Target:
    """The height, far beyond all measurements, of a function that rises to a ceiling."""
    N, X = top(fit)
    if not fit.law.algebraic or np.isfinite(N) or not np.isfinite(X) or falls(fit):
        expected = "expected plain arithmetic that only rises, to a ceiling, within its bounds"
        raise ValueError(f"X_max of {fit.law.__name__} has no interval: {expected}")
    return height(fit, np.array([FAR * fit.N.max()]))


def movers(fit: Solved, name: str) -> tuple[str, ...]:
    """The estimates that "N_opt" or "X_max" follows. Raises ValueError for what the law lacks."""
    if name == "N_opt" and name not in fit.free:
        return shapes(fit)
    if name == "X_max" and name not in fit.free and not isinstance(fit.law, Function):
        return tuple(n for n in highest(fit).quantities if n in fit.free)
    return ()


def highest(fit: Solved) -> Formula:
    """The formula of "X_max". Raises ValueError for what a law lacks, or algebra does not find."""
    from nummodel.models import scaling

    law, by_search = fit.law.__name__, top(fit)[1]
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
    N, first, targets = peak(fit), least(fit), []
    names = shapes(fit)
    refused = f"N_opt of {fit.law.__name__} has no interval"
    if not fit.law.algebraic:
        raise ValueError(f"{refused}: the function is no plain arithmetic")
    if unbounded := [n for n in names if fit.law.range_of(n)[0] == -np.inf]:
        raise ValueError(f"{refused}: {', '.join(unbounded)} may be any number, expected bounds")
    points = mesh(axes(fit.law, fit.free, fit.N, fit.X))
    for name in reversed(names):
        law, rest = by_peak(fit.law, name), _without(fit.free, name)
        targets.append(Target("N_opt", law, rest, np.array([N if N > first else first / 2])))
        some = {n: points[n][:, None] for n in names if n != name}
        values = fit.values | some | {fit.law.quantities[0]: np.quantile(fit.N, [0, 0.5, 1])}
        if np.isfinite(level(fit.law, name, values)).all():
            break
    if first < N < np.inf:  # what makes the peak there has to be what was estimated
        at = fit.values | {fit.law.quantities[0]: N}
        inner = [n for n in names[-len(targets) :] if n not in fit.at_bound]
        ratios = [level(fit.law, n, at) / fit.estimate[n] for n in inner]
        if not np.allclose(ratios, 1, rtol=0.05):  # far out, rounding hides where the slope is 0
            raise ValueError(f"{refused}: several peaks")
    return targets[0]._replace(alternatives=tuple(targets[1:]))


def _without(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(n for n in names if n != name)
