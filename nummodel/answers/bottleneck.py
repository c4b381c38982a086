"""What limits a fitted closed system, how far it is from the measurements, and its rival."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from nummodel.fits import Fit, closed, quantile, shared
from nummodel.fits.closed import LEVEL
from nummodel.nomenclature import show

#: A station whose demand for each server is at least this share of the largest may limit as well.
NEAR = 0.9
#: The step of a difference, as a share of the value.
STEP = 1e-6


def farthest(fit: Fit) -> float:
    """How far a closed system is from the mean of a column at one load, at most, as a share of it;
    of a utilisation, as a share of its highest mean.
    """
    far = 0.0
    for part, column in enumerate(fit.columns):
        loads, place = np.unique(column.N, return_inverse=True)
        found = np.bincount(place, column.X) / np.bincount(place)
        off, share = abs(found - fit.at(loads, part)), fit.results[part].startswith("U_")
        far = max(far, np.max(off / (found.max() if share else found)))
    return float(far)


def _longer(fit: Fit, one: str, other: str) -> bool:
    """Whether the demand per server at one station is larger than at another, beyond errors."""

    def apart(values: Mapping[str, Any]) -> float:
        times = closed.times(fit, values)
        return times[one] - times[other]

    far, slopes = apart(fit.values), []
    for quantity in fit.inner:
        step = STEP * fit.values[quantity]
        slopes.append((apart({**fit.values, quantity: fit.values[quantity] + step}) - far) / step)
    error = np.sqrt(slopes @ fit.covariance @ slopes)
    return bool(far > quantile(LEVEL, fit.dof) * error)


def rival(fit: Fit) -> str:
    """A system that another station limits, if the points do not exclude it, in a sentence."""

    def longest(values: Mapping[str, Any]) -> str:
        times = closed.times(fit, values)
        return max(times, key=times.__getitem__)

    slopes = np.eye(len(fit.inner))
    t = max([fit.quantile(shared(LEVEL, 2), one) for one in slopes], default=0.0)
    for squares, estimate in fit.others:
        values = {**fit.known, **estimate}
        likely = squares < fit.rss + t**2 * fit.variance
        if likely and longest(values) != longest(fit.values):
            most = float(fit.N.max())
            estimates = ", ".join(
                f"{n} = {show(values[n])}"
                if n[0] != "c" or values[n] < most
                else f"{n} > {show(most)}"
                for n in fit.free
            )
            here, there = longest(fit.values), longest(values)
            return (
                f"the measurements do not tell whether {here} limits this system, as the estimates "
                f"say, or {there}, with {estimates}: the utilisation of a station would tell"
            )
    return ""


def limit(fit: Fit) -> tuple[str, str] | None:
    """The station that would be full with more users, and why. None if several may be it, and
    where X is all that was measured, or a station is known by neither its servers nor its
    utilisation: stations of other sizes can make the same curves.
    """
    longest, system = closed.times(fit), closed.system(fit)
    first, *rest = sorted(longest, key=longest.__getitem__, reverse=True)
    found = system.servers[first] is None and first != "lock"
    others = fit.results[1:]
    measured = any(n.startswith("U_") for n in others)
    if (
        not others
        or (found and not measured)
        or (rest and longest[rest[0]] > NEAR * longest[first])
    ):
        return None
    if any(not _longer(fit, first, n) for n in rest) or rival(fit):
        return None
    # Two stations of as many servers make the same curves with their names exchanged.
    places = {n: system.places(n, fit.values) for n in longest}
    alike = [n for n in rest if places[n] == places[first]]
    if f"U_{first}" not in others and any(f"U_{n}" not in others for n in alike):
        return None
    last = float(fit.N.max())
    used = show(float(fit.at([last])[0]) * longest[first], "%")
    return first, f"{used} of it is in use at the last load, {show(last)}, more than of any other"
