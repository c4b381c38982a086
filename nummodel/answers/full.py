"""Will a station be full at a higher load, and how much can throughput still grow?

Both answers are forecasts (`fits.forecast`), and need no model of the system.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from nummodel.fits import chance, outlook

#: A station is full if this share of its servers is in use.
FULL = 0.9
#: From the first probability on, the answer is yes, and up to the second one, it is no.
YES, NO = 2 / 3, 1 / 3


def chance_full(N: np.ndarray, X: np.ndarray, U: np.ndarray, at: Any, share: float = FULL) -> Any:
    """The probability, at each load beyond the measurements, that a `share` of a station is in use.

    Busy servers are a throughput, too: seconds of work a second. So `fits.chance` is asked of U at
    the loads where U is above 0; of fewer than three such loads, it is asked of the throughput at
    which the station would be full, if a transaction needs as much as at the last load. NaN if the
    station was not in use there. Raises InputError as `fits.chance` does.
    """
    in_use, last = U > 0, int(np.argmax(N))
    if len(np.unique(N[in_use])) >= 3:
        return chance({"N": N[in_use], "X": U[in_use]}, at, X=share)
    if not U[last] > 0:
        return np.full(np.shape(at), np.nan)
    return chance({"N": N, "X": X}, at, X=X[last] / U[last] * share)


def verdict(probability: float) -> str:
    """Whether a station will be full: "yes", "no" or "open".

    >>> verdict(0.9), verdict(0.5), verdict(0.1)
    ('yes', 'open', 'no')
    """
    return "yes" if probability >= YES else "no" if probability <= NO else "open"


def growth(data: Mapping[str, Any], at: Any, level: float = 0.95) -> tuple[float, float, float]:
    """The highest throughput expected at the loads `at`, over that at the last load, and its
    interval: at least 1, as the last load stays possible. `data` is that of `fits.forecast`.
    """
    seen = outlook(data, {})
    shares = np.array([0.5, (1 - level) / 2, (1 + level) / 2])
    found = seen.throughputs(np.asarray(at, float), shares).max(axis=0) / seen.trend.X
    middle, low, high = np.maximum(found, 1.0).tolist()
    return middle, low, high
