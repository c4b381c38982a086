"""What `nummodel fit` says of loads beyond the measurements, and of a target."""

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nummodel.errors import InputError
from nummodel.fits import Fit, chance, doubling, largest_load
from nummodel.fits._closed import Face
from nummodel.fits._forecast import FAR, Outlook, outlook
from nummodel.nomenclature import show
from nummodel.options import Target
from nummodel.records.columns import Points


class Row(NamedTuple):
    """Throughput and response time at a load, each with its interval, and the height of the curve
    of the law that was chosen. NaN for what is not known.
    """

    N: float
    X: float
    low: float
    high: float
    R: float
    R_low: float
    R_high: float
    law: float


class Wanted(NamedTuple):
    """Where a target is met: a load with its interval, NaN if there is none; the reason, if there
    is none; and the probability of meeting it at each of some loads beyond the measurements.
    """

    load: float
    low: float
    high: float
    why: str
    chances: dict[float, float]


class Ahead:
    """What points say of other loads: beyond the last one as `fits.forecast` does, and up to it by
    the law that was chosen, if one was. `measured` may have R [s] and U_cpu, and `known` Z [s].
    """

    def __init__(
        self,
        points: Points,
        measured: Mapping[str, np.ndarray],
        known: Mapping[str, float],
        level: float,
        fit: Fit | None,
        chosen: str | None,
    ):
        more = {name: measured[name] for name in ("R", "U_cpu") if name in measured}
        self.columns = {"N": points.N, "X": points.X} | more
        self.known = {"Z": known["Z"]} if "Z" in known else {}
        self.last = float(points.N.max())
        self.x, self.y, self.level, self.fit, self.chosen = points.x, points.y, level, fit, chosen

    @cached_property
    def _seen(self) -> tuple[Outlook | None, str]:
        """What is expected beyond the last load; None and the reason, if nothing can be said."""
        try:
            return outlook(self.columns, **self.known), ""
        except InputError as reason:
            return None, str(reason)

    def answer(self) -> str:
        """What the next doubling brings, or why that cannot be said."""
        if not self._seen[0]:
            return f"No forecast: {self._seen[1]}."
        return doubling(self.columns, self.x, self.y, self.level, **self.known)

    def rows(self, at: Any) -> list[Row]:
        """What is expected at loads."""
        N = np.array(at, float)
        law = self.fit.at(N) if self.fit else np.full(len(N), np.nan)
        found, beyond = np.full((6, len(N)), np.nan), N > self.last
        if not beyond.all():
            found[:, ~beyond] = self._by_law(N[~beyond])
        if beyond.any():
            found[:, beyond] = self._expected(N[beyond])
        return [Row(*map(float, row)) for row in zip(N, *found, law, strict=True)]

    def fan(self, last: float) -> np.ndarray | None:
        """N, X, low and high at loads from the last measured one on; None without a forecast."""
        if not self._seen[0]:
            return None
        N = np.geomspace(self.last * (1 + 1e-9), last, 100)
        return np.vstack([N, self._expected(N)[:3]])

    def _expected(self, N: np.ndarray) -> np.ndarray:
        """X and its interval, R and its interval, at loads beyond the last one."""
        seen, tail = self._seen[0], (1 - self.level) / 2
        shares, unknown = np.array([0.5, tail, 1 - tail]), np.full((3, len(N)), np.nan)
        if not seen:
            return np.vstack([unknown, unknown])
        R = unknown if seen.Z is None else seen.responses(N, shares).T
        return np.vstack([seen.throughputs(N, shares).T, R])

    def _by_law(self, N: np.ndarray) -> np.ndarray:
        """The same at other loads, with the interval of a new measurement; R = N/X - Z."""
        if not self.fit:
            return np.full((6, len(N)), np.nan)
        X = self.fit.predict(N, self.level)[["value", "low", "high"]].to_numpy().T
        if isinstance(self.fit, Face):
            R = self.fit.response(N, self.level)[["value", "low", "high"]].to_numpy().T
            return np.vstack([X, R])
        Z = self._seen[0].Z if self._seen[0] else self.known.get("Z")
        with np.errstate(divide="ignore"):
            R, most, least = N / X - (np.nan if Z is None else Z)
        R[R <= 0] = np.nan  # such a think time contradicts the curve
        return np.vstack([X, R, np.where(np.isnan(R), np.nan, [np.maximum(least, 0.0), most])])

    def wanted(self, target: Target, at: Any) -> Wanted:
        """Where a target is met: a throughput from the load on at which the law's curve reaches it
        first, a response time up to the largest load that keeps it. Its probability is that at the
        loads `at` that are beyond the measurements, or else at twice the last load.
        """
        name, value = target
        load, why = (np.nan, np.nan, np.nan), ""
        try:
            if name == "R":
                load = largest_load(self.columns, value, self.level, **self.known)
                why = f"not exceeded up to {FAR:g} times the last load" * bool(np.isinf(load[0]))
            elif self.fit:
                load = self.fit.load_for(value, self.level)
                why = f"never reached by the curve of {self.chosen}" * (not np.isfinite(load[0]))
            else:
                why = "no law is chosen, so there is no curve that says where"
        except InputError as reason:
            why = str(reason)
        beyond = [float(N) for N in at if N > self.last] or [2 * self.last]
        chances = {}
        with suppress(InputError):  # the reason is told already, or there is no forecast
            found = chance(self.columns, beyond, **{name: value}, **self.known)
            chances = dict(zip(beyond, map(float, found), strict=True))
        return Wanted(*load, why, chances)

    def said_of(self, target: Target, wanted: Wanted) -> str:
        """Where a target is met, in sentences."""
        what = f"A mean response time of {show(target.value)} or less"
        where = f"up to {self.x} = {show(wanted.load)}"
        if target.name == "X":
            what = f"{self.y} of {show(target.value)} or more"
            where = f"from {self.x} = {show(wanted.load)} on, by the curve of {self.chosen}"
        ends = [end if np.isfinite(end) else None for end in (wanted.low, wanted.high)]
        between = f" ({100 * self.level:.15g} % interval: {show(ends)})" * (ends != [None, None])
        said = f"{what}: {wanted.why or where + between}."
        each = [f"{_likely(p)} at {self.x} = {show(N)}" for N, p in wanted.chances.items()]
        return f"{said} Its probability is {', '.join(each)}." if each else said


def _likely(p: float) -> str:
    """A probability that is no more certain than curves of other systems can make it."""
    return "below 1 %" if p < 0.01 else "above 99 %" if p > 0.99 else f"{100 * p:.0f} %"
