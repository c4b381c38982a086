"""How far a closed system may be followed beyond the measurements.

A closed system that meets everything that was measured, and is determined narrowly at a later load,
may well be right there. Measurements hardly tell how many servers a station has, so no system is
followed unless such numbers are known.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from nummodel.errors import InputError
from nummodel.fits import compare
from nummodel.fits._adequacy import lack_of_fit
from nummodel.fits._closed import LEVEL, Face, fit_closed
from nummodel.fits._problem import quantile

#: A closed system is followed where the 95 % interval of X on its curve is no wider than a factor
#: of two, less where it is wider, and not at all from a factor of four on. Found with made systems.
NARROW = 0.7
#: No closed system is followed if the last throughput is lower by this share than an earlier one.
FALLEN = 0.1
#: The loads at which that width is computed, as multiples of the last one.
AT = np.array([2.0, 4.0, 16.0])


class Followed(NamedTuple):
    """A closed system, the last load that was measured, and how wide the interval of ln X is at
    the loads `AT`.
    """

    face: Face
    last: float
    widths: np.ndarray

    def share(self, N: np.ndarray) -> np.ndarray:
        """How much of a forecast follows the system at each load, from 0 to 1. It begins at 0, as
        the trend begins at the last measurement, and may be 1 from the next doubling on.
        """
        ahead = np.log2(N / self.last)
        width = np.interp(ahead, np.log2(AT), self.widths)
        return np.clip(ahead, 0, 1) * np.clip(2 - width / NARROW, 0, 1)

    def height(self, N: np.ndarray) -> np.ndarray:
        """ln X by the system."""
        return np.log(self.face.at(N))


def follow(
    N: np.ndarray,
    X: np.ndarray,
    others: Mapping[str, np.ndarray],
    face: Face | None = None,
    **known: float,
) -> Followed | None:
    """The closed system that measurements allow to follow, or None. `face` is the fit of a closed
    system to these columns (see `fit_closed`), if there is one already.
    """
    if not any(n.startswith("c_") for n in known):
        return None
    if X[N == N.max()].mean() < (1 - FALLEN) * X.max():
        return None
    try:
        face = face or fit_closed(N, X, others, **known)
    except InputError:
        return None
    whole, last = face.whole, float(N.max())
    at = last * AT
    test = lack_of_fit(whole)
    if whole.dof <= 0 or whole._flat or (test and test.p < compare.SIGNIFICANT):
        return None
    J = np.array(whole.law.gradient(whole.inner)(N=at, part=np.ones(len(at)), **face.values))
    variance = np.einsum("ij,jk,ik->i", J, whole.covariance, J) / face.at(at) ** 2
    width = 2 * quantile(LEVEL, whole.dof) * np.sqrt(np.maximum(variance, 0)).min()
    if not width < 2 * NARROW:  # a profile of so wide an interval takes long
        return None
    ends = face.curve(at, LEVEL)
    with np.errstate(divide="ignore"):
        return Followed(face, last, np.log(ends.high / ends.low).to_numpy())
