"""Which load to measure next: the one where a measurement would tell most about the answer."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nummodel.fits import _peaks
from nummodel.fits._fit import Fit
from nummodel.fits._problem import quantile

#: How far beside the peak the slope of the curve is taken, as a share of the load.
STEP = 1e-3


class Next(NamedTuple):
    """A load, what a measurement there would narrow ("N_opt", or "X" at twice the last load), and
    the share by which its interval would become narrower.
    """

    N: float
    what: str
    narrower: float


def next_load(fit: Fit, level: float = 0.95) -> Next | None:
    """The load at which one more measurement, of all columns, is expected to narrow most the
    interval of the peak's load or, of a curve without a peak, that of X at twice the last load.

    Candidates are the loads of the fit, those midway between neighbours, and so on up to twice the
    last load; they are whole if the loads are. The variance of the answer follows from the slopes
    of the curve by the estimates, those of the new measurement included (Atkinson, Donev and Tobias
    2007, chapter 17). None if there is no interval to narrow, and if weights were given for each
    point, as that of the new one is not known.
    """
    whole, last = fit.whole, fit.N.max()
    if fit.dof <= 0 or fit.weights == "given" or not fit.inner or fit._flat:
        return None
    slopes = fit.law.gradient(fit.inner)
    load, peak = fit.law.quantities[0], fit.peak()
    if peak and peak[0] > _peaks.least(fit):  # the peak moves with the slope of the curve there
        below, above = slopes(**fit.values | {load: peak[0] * np.array([1 - STEP, 1 + STEP])})
        what, moved = "N_opt", above - below
    else:
        what, moved = "X", slopes(**fit.values | {load: np.array([2 * last])})[0]
    N = np.append(np.unique(fit.N), 2 * last)
    N = np.union1d(N, np.sqrt(N[1:] * N[:-1]))
    N = np.unique(np.round(N)) if (fit.N == np.round(fit.N)).all() else N
    parts, first = np.unique(whole.known.get("part", np.zeros(1)), return_index=True)
    columns = {"part": np.tile(parts, len(N))} if "part" in whole.known else {}
    w = np.tile(whole.w[first], len(N))
    new = replace(whole, N=np.repeat(N, len(parts)), w=w, known=whole.known | columns)
    J = new.slopes(fit.inner).reshape(len(N), len(parts), -1)
    C = whole.covariance / whole.variance
    carried = J @ C @ moved
    error = np.eye(len(parts)) + J @ C @ J.swapaxes(1, 2)
    gain = np.sum(carried * np.linalg.solve(error, carried[..., None])[..., 0], axis=1)
    best = int(np.argmax(gain))
    remaining = np.sqrt(max(1 - gain[best] / (moved @ C @ moved), 0.0))
    t = quantile(level, fit.dof + len(parts)) / quantile(level, fit.dof)
    return Next(float(N[best]), what, float(1 - t * remaining))
