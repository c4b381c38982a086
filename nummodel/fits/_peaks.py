"""Where the curve of a fit is highest: by numbers, so of any law, solved by algebra or not."""

import numpy as np

from nummodel.fits._leastsquares import axes, mesh
from nummodel.fits._problem import Solved

#: An end this many times beyond the estimate, or the measurements, is as good as infinite.
FAR = 1e9


def top(fit: Solved) -> tuple[float, float]:
    """Load and height of the highest throughput from N = 1 on. The load is infinite where that is
    reached at no load; the height then is that of the ceiling, or infinite as well.

    Looked for up to N = 1e30, or a billion times the last load, and more closely up to a thousand
    times. Raises ValueError for a law without N, and for one with columns of its own.
    """
    from scipy.optimize import brentq

    if "N" not in fit.law.quantities:
        raise ValueError(f"{fit.law.__name__} has no N, so no peak")  # type: ignore[attr-defined]
    fit.without_columns("peak")
    jet = fit.law.jet(("N",))

    def elasticity(log_N):  # d ln X / d ln N
        N = np.exp(log_N)
        X, slope = jet(**fit.values | {"N": N})
        with np.errstate(all="ignore"):
            return slope * N / X

    last = fit.N.max()
    near, far = np.log(max(1e3 * last, 1e3)), np.log(max(FAR * last, 1e30))
    log_N = np.union1d(np.linspace(0, far, 101), np.linspace(0, near, 401))
    found = np.broadcast_to(elasticity(log_N), log_N.shape)
    X = np.broadcast_to(fit.at(np.exp(log_N)), log_N.shape)
    falling = found < -1e-9  # and not by rounding
    peaks = []
    for end in np.flatnonzero(falling & ~np.append(False, falling[:-1])):
        rising = np.flatnonzero(found[:end] > 0)
        level = found[rising[-1] + 1 : end] if len(rising) else found[:end]
        if len(rising) and not (level < -1e-9).any():
            log_peak = brentq(elasticity, log_N[rising[-1]], log_N[end], xtol=1e-14)
            peaks.append((float(np.exp(log_peak)), float(fit.at(np.exp(log_peak)))))
        elif not len(rising):
            peaks.append((1.0, float(fit.at(1.0))))
    known = np.flatnonzero(np.isfinite(found) & np.isfinite(X))
    ceiling = (np.inf if found[known[-1]] > 1e-9 else X[known[-1]]) if len(known) else -np.inf
    N, highest = max(peaks, key=lambda one: one[1], default=(np.inf, -np.inf))
    if highest >= ceiling * (1 - 1e-12):
        return N, highest
    return np.inf, float(ceiling)


def peak(fit: Solved) -> float:
    """The load of the highest throughput from N = 1 on; infinite if none is reached."""
    return top(fit)[0]


def shapes(fit: Solved) -> tuple[str, ...]:
    """The free quantities that may move the peak. Raises ValueError if there are none, or if the
    law never falls.
    """
    found = tuple(n for n in fit.free if not fit.law.is_scale(n))
    falls = np.isfinite(peak(fit))
    if found and not falls:
        names = tuple(n for n in fit.law.quantities[1:] if not fit.law.is_scale(n))
        values = fit.values | {"N": fit.N}
        points = mesh(axes(fit.law, names, values, fit.X))
        loads = fit.N.max() * np.array([1.0, 1e3, FAR])
        X, slope = fit.law.jet(("N",))(
            **values | {n: p[:, None] for n, p in points.items()} | {"N": loads}
        )
        with np.errstate(all="ignore"):
            falls = np.any(loads * slope / X < -1e-9)
    if not found or not falls:
        raise ValueError(f"{fit.law.__name__} has no N_opt, or it is known")  # type: ignore[attr-defined]
    return found
