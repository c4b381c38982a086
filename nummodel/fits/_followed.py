"""When a forecast follows a closed system, and not the trend of the last points.

Measurements hardly tell how many servers a station has, so no system is followed unless these
numbers are known. A system that meets the measurements may still be wrong beyond them: the width of
the intervals remains that of the errors which trends had on other curves.
"""

from collections.abc import Mapping

import numpy as np

from nummodel.errors import InputError
from nummodel.fits import laws
from nummodel.fits._closed import LEVEL, Face, fit_closed, misses
from nummodel.fits._problem import quantile
from nummodel.fits._trend import Trend

#: No system is followed that misses the last third of the measured throughputs by more than the
#: first share on average, or one of them by more than the second share.
AVERAGE, WORST = 0.05, 0.1
#: There are at least so many more loads than stations: with as few loads as estimates, a system
#: meets any throughputs, and then R = N/X - Z says hardly more than X does.
MORE = 3
#: Multiples of the last load at which the interval of the system has to be the narrower one.
AHEAD = np.array([2.0, 16.0])


def counted(others: Mapping[str, np.ndarray], known: Mapping[str, float]) -> bool:
    """Whether the numbers of servers of all stations are known. A station has a utilisation among
    the `others`, or is called cpu; the lock has one server.
    """
    busy = {n[2:] for n in others if n.startswith("U_")} - {"lock"}
    told = {n[2:] for n in known if n.startswith("c_")} - {"lock"}
    return bool(told) and busy <= told <= busy | {"cpu"}


def follow(
    N: np.ndarray,
    X: np.ndarray,
    others: Mapping[str, np.ndarray],
    known: Mapping[str, float],
    trend: Trend,
    closed: Face | None = None,
) -> Face | None:
    """The closed system that a forecast follows: of known stations, rejected by no test, near the
    last throughputs, and determined more narrowly than the trend. None without such a system, and
    where a fall is seen, as no closed system falls. `closed` is the fit to these columns, if there
    is one already.
    """
    if not counted(others, known):
        return None
    try:
        face = closed or fit_closed(N, X, others, **known)
    except InputError:
        return None
    loads, place = np.unique(N, return_inverse=True)
    missed = np.bincount(place, np.log(X / face.at(N))) / np.bincount(place)
    last = missed[2 * len(loads) // 3 :]
    near = abs(last.mean()) <= AVERAGE and abs(last).max() <= WORST
    few = len(loads) < len(face.times()) + MORE
    if few or not near or laws.falls(face) or misses(face):
        return None
    at, ends = AHEAD * trend.N, np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    narrower = _width(face, at) < np.diff(trend.quantiles(at, ends))[:, 0]
    return face if narrower.all() else None


def _width(face: Face, N: np.ndarray) -> np.ndarray:
    """That of the interval of ln X on the curve, from the slopes of the curve."""
    whole = face.whole
    J = whole.law.gradient(whole.inner)(N=N, part=np.ones(len(N)), **face.values)
    variance = np.einsum("ij,jk,ik->i", J, whole.covariance, J)
    return 2 * quantile(LEVEL, whole.dof) * np.sqrt(np.abs(variance)) / face.at(N)
