"""Where the curve of a fit is highest: by numbers, so of any law, solved by algebra or not."""

import numpy as np

from nummodel.fits._problem import Solved
from nummodel.fits._search import axes, mesh

#: An end this many times beyond the estimate, or the measurements, is as good as infinite.
FAR = 1e9
#: How many times the last load a function is searched for its peak that may take time for each N.
NEAR = 100


def least(fit: Solved) -> float:
    """The load from which on the curve is searched: 1, or the first one of another quantity than N
    if that is smaller.
    """
    return 1.0 if fit.law.quantities[0] == "N" else min(1.0, float(fit.N.min()))


def top(fit: Solved) -> tuple[float, float]:
    """Load and height of the highest throughput from the `least` load on. If no load reaches it,
    the load is infinite, and the height is that of the ceiling, or infinite as well.

    Loads are searched up to N = 1e30, or a billion times the last load, and more closely up to a
    thousand times; of a function that is no algebra up to `NEAR` times the last load, and its
    height is NaN if it rises there. Raises ValueError for a law without N, and for one with columns
    of its own.
    """
    from scipy.optimize import brentq

    load = fit.law.quantities[0]
    if load != "N" and load not in fit.law.own:
        raise ValueError(f"{fit.law.__name__} has no N, so no peak")
    fit.without_columns("peak")

    def elasticity(log_N):  # d ln X / d ln N
        N = np.exp(log_N)
        X, slope = fit.law.jet((load,))(**fit.values | {load: N})
        with np.errstate(all="ignore"):
            return slope * N / np.abs(X)

    first, last = np.log(least(fit)), fit.N.max()
    if not fit.law.algebraic:
        return _top_by_values(fit, np.linspace(first, np.log(max(NEAR * last, NEAR)), 201))
    near, far = np.log(max(1e3 * last, 1e3)), np.log(max(FAR * last, 1e30))
    log_N = np.union1d(np.linspace(first, far, 101), np.linspace(first, near, 401))
    rise = np.broadcast_to(elasticity(log_N), log_N.shape)
    X = np.broadcast_to(fit.at(np.exp(log_N)), log_N.shape)
    falling = rise < -1e-9  # and not by rounding
    peaks = []
    for end in np.flatnonzero(falling & ~np.append(False, falling[:-1])):
        rising = np.flatnonzero(rise[:end] > 0)
        if not len(rising):
            peaks.append((least(fit), float(fit.at(least(fit)))))
        elif not falling[rising[-1] : end].any():
            N = np.exp(brentq(elasticity, log_N[rising[-1]], log_N[end], xtol=1e-14))
            peaks.append((float(N), float(fit.at(N))))
    known = np.flatnonzero(np.isfinite(rise) & np.isfinite(X))
    ceiling = (np.inf if rise[known[-1]] > 1e-9 else X[known[-1]]) if len(known) else -np.inf
    N, highest = max(peaks, key=lambda peak: peak[1], default=(np.inf, -np.inf))
    return (N, highest) if highest >= ceiling * (1 - 1e-12) else (np.inf, float(ceiling))


def _top_by_values(fit: Solved, log_N: np.ndarray) -> tuple[float, float]:
    """As `top`, without slopes: the loads of a function may have to be whole."""
    from scipy.optimize import minimize_scalar

    X = fit.at(np.exp(log_N))
    best = int(np.argmax(np.where(np.isnan(X), -np.inf, X)))
    if X[best] <= X[-1] * (1 + 1e-9):  # it rises as far as it goes, or is level there
        return np.inf, float(X[-1] if X[-1] <= X[-2] * (1 + 1e-9) else np.nan)
    if best == 0:
        return float(np.exp(log_N[0])), float(X[0])
    between = log_N[best - 1], log_N[best + 1]
    found = minimize_scalar(lambda n: -fit.at(np.exp(n)), bounds=between, options={"xatol": 1e-12})
    N, highest = (found.x, -found.fun) if -found.fun > X[best] else (log_N[best], X[best])
    return float(np.exp(N)), float(highest)


def peak(fit: Solved) -> float:
    """The load of the highest throughput from N = 1 on; infinite if none is reached."""
    return top(fit)[0]


def falls(fit: Solved) -> bool:
    """Whether the law falls somewhere, with some of the values that it allows; of a function that
    is no algebra whether the fitted curve does.
    """
    load, falling = fit.law.quantities[0], np.isfinite(peak(fit))
    if falling or not fit.law.algebraic:
        return bool(falling)
    names = tuple(n for n in fit.law.quantities[1:] if not fit.law.is_scale(n))
    points = mesh(axes(fit.law, names, fit.N, fit.X))
    loads = fit.N.max() * np.array([1.0, 1e3, FAR])
    values = fit.values | {n: p[:, None] for n, p in points.items()} | {load: loads}
    X, slope = fit.law.jet((load,))(**values)
    with np.errstate(all="ignore"):
        return bool(np.any(loads * slope / np.abs(X) < -1e-9))


def shapes(fit: Solved) -> tuple[str, ...]:
    """The free quantities that may move the peak. Raises ValueError if there are none, or if the
    law never falls.
    """
    free = tuple(n for n in fit.free if not fit.law.is_scale(n))
    if not free or not falls(fit):
        raise ValueError(f"{fit.law.__name__} has no N_opt, or it is known")
    return free
