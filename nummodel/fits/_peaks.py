"""Where the curve of a fit is highest: by numbers, so of any law, solved by algebra or not."""

import numpy as np

from nummodel.fits._leastsquares import axes, mesh
from nummodel.fits._problem import Solved

#: An end this many times beyond the estimate, or the measurements, is as good as infinite.
FAR = 1e9


def top(fit: Solved) -> tuple[float, float]:
    """Load and height of the highest throughput from N = 1 on. If no load reaches it, the load is
    infinite, and the height is that of the ceiling, or infinite as well.

    Loads are searched up to N = 1e30, or a billion times the last load, and more closely up to a
    thousand times. Raises ValueError for a law without N, and for one with columns of its own.
    """
    from scipy.optimize import brentq

    if "N" not in fit.law.quantities:
        raise ValueError(f"{fit.law.__name__} has no N, so no peak")
    fit.without_columns("peak")

    def elasticity(log_N):  # d ln X / d ln N
        N = np.exp(log_N)
        X, slope = fit.law.jet(("N",))(**fit.values | {"N": N})
        with np.errstate(all="ignore"):
            return slope * N / np.abs(X)

    last = fit.N.max()
    near, far = np.log(max(1e3 * last, 1e3)), np.log(max(FAR * last, 1e30))
    log_N = np.union1d(np.linspace(0, far, 101), np.linspace(0, near, 401))
    rise = np.broadcast_to(elasticity(log_N), log_N.shape)
    X = np.broadcast_to(fit.at(np.exp(log_N)), log_N.shape)
    falling = rise < -1e-9  # and not by rounding
    peaks = []
    for end in np.flatnonzero(falling & ~np.append(False, falling[:-1])):
        rising = np.flatnonzero(rise[:end] > 0)
        if not len(rising):
            peaks.append((1.0, float(fit.at(1.0))))
        elif not falling[rising[-1] : end].any():
            N = np.exp(brentq(elasticity, log_N[rising[-1]], log_N[end], xtol=1e-14))
            peaks.append((float(N), float(fit.at(N))))
    known = np.flatnonzero(np.isfinite(rise) & np.isfinite(X))
    ceiling = (np.inf if rise[known[-1]] > 1e-9 else X[known[-1]]) if len(known) else -np.inf
    N, highest = max(peaks, key=lambda peak: peak[1], default=(np.inf, -np.inf))
    return (N, highest) if highest >= ceiling * (1 - 1e-12) else (np.inf, float(ceiling))


def peak(fit: Solved) -> float:
    """The load of the highest throughput from N = 1 on; infinite if none is reached."""
    return top(fit)[0]


def shapes(fit: Solved) -> tuple[str, ...]:
    """The free quantities that may move the peak. Raises ValueError if there are none, or if the
    law never falls.
    """
    free = tuple(n for n in fit.free if not fit.law.is_scale(n))
    falls = np.isfinite(peak(fit))
    if free and not falls:
        names = tuple(n for n in fit.law.quantities[1:] if not fit.law.is_scale(n))
        points = mesh(axes(fit.law, names, fit.N, fit.X))
        loads = fit.N.max() * np.array([1.0, 1e3, FAR])
        values = fit.values | {n: p[:, None] for n, p in points.items()} | {"N": loads}
        X, slope = fit.law.jet(("N",))(**values)
        with np.errstate(all="ignore"):
            falls = np.any(loads * slope / np.abs(X) < -1e-9)
    if not free or not falls:
        raise ValueError(f"{fit.law.__name__} has no N_opt, or it is known")
    return free
