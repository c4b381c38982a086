"""What `nummodel fit` says of loads beyond the measurements, and of a target."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nummodel.errors import InputError
from nummodel.fits import CHECKED, Fit, chance, largest_load, smallest_load
from nummodel.fits._closed import Face
from nummodel.fits._forecast import FAR, SPARE, Outlook, outlook
from nummodel.nomenclature import show
from nummodel.options import Target
from nummodel.records.columns import Points

#: If a forecast changes by less than this share, it is told as the same.
SAME = 0.005


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
    """Where a target is met: a load with its interval, which is NaN for a measured load; how that
    is said; and the probability of meeting it at some loads beyond the measurements.
    """

    load: float
    low: float
    high: float
    said: str
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
        """What the next doubling brings, what that hangs on, and on what such forecasts were
        checked; or why nothing can be said.
        """
        if not self._seen[0]:
            return f"No forecast: {self._seen[1]}."
        trend, x, y = self._seen[0].trend, self.x, self.y
        (then,) = self.rows([2 * self.last])
        more = then.X / trend.X - 1
        change = f"{_percent(more)} {'above' if more > 0 else 'below'}"
        if abs(more) < SAME:
            change = "about the same as"
        said = [
            f"At twice the last load, {x} = {show(then.N)}, {y} is expected to be {show(then.X)} "
            f"({self._interval(then.low, then.high)}), {change} {show(trend.X)} at the last load"
        ]
        if not np.isnan(then.R):
            said[0] += f", and the mean response time {show(then.R)} "
            said[0] += f"({show([then.R_low, then.R_high])})"
        if self.fit:
            said.append(
                f"The fitted law says {show(then.law)} there; the forecast does not follow it"
            )
        ends = f"it levels off at {show(trend.end)}"
        if trend.taken <= 0:
            ends = f"it falls to {show(trend.end)}" if trend.taken < 0 else "it stays so"
        before = ""
        if trend.taken < min(trend.slope, 1.0) - 0.01:
            before = f", after it {_changes(trend.before, 'rose', 'fell')}, the smaller of the two"
        said += [
            f"It depends on how the last points go on: {y} {_changes(trend.slope)} there with each "
            f"doubling of {x}{before}, and the forecast takes it that in the end {ends}"
        ]
        if trend.most < trend.each * then.N:
            room = show(trend.most / (1 + SPARE))
            said.append(f"If a transaction needs as much as now, processors allow about {room}")
        return ". ".join([*said, CHECKED, ""]).strip()

    def _interval(self, *ends: float) -> str:
        finite = [end if np.isfinite(end) else None for end in ends]
        return f"{100 * self.level:.15g} % interval: {show(finite)}"

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
        """Where a target is met. If it was met, or missed, within the measurements, a measured load
        says so; else the forecast. Its probability is that at the loads `at` that are beyond the
        measurements, or else at twice the last load. Raises InputError where it cannot be said.
        """
        if not self._seen[0]:
            raise InputError(f"--target: {self._seen[1]}")
        if target.name == "R" and self._seen[0].Z is None:
            raise InputError("--target R: expected a column R, or a think time, as in --known Z=1")
        beyond = [float(N) for N in at if N > self.last] or [2 * self.last]
        found = chance(self.columns, beyond, **{target.name: target.value}, **self.known)
        chances = dict(zip(beyond, map(float, found), strict=True))
        return Wanted(*(self._measured(target) or self._expected_load(target)), chances)

    def _measured(self, target: Target) -> tuple[float, float, float, str] | None:
        """The measured load that answers: the first that reaches a throughput, the last that keeps
        a response time. None if all of them miss, or keep, the target.
        """
        loads, place = np.unique(self.columns["N"], return_inverse=True)
        value = self.columns["X"]
        if target.name == "R":
            value = self.columns.get("R", self.columns["N"] / value - self.known.get("Z", 0.0))
        means = np.bincount(place, value) / np.bincount(place)
        met = means >= target.value if target.name == "X" else means > target.value
        if not met.any():
            return None
        first = int(np.argmax(met))
        at, before = (f"{self.x} = {show(float(N))}" for N in loads[[first, first - 1]])
        if target.name == "X":
            after = f", and not at {before}" * (first > 0)
            return float(loads[first]), np.nan, np.nan, f"was measured at {at}{after}"
        if first == 0:
            return np.nan, np.nan, np.nan, f"was exceeded at {at} already"
        said = f"was kept up to {before}, and exceeded at {at}, with {show(float(means[first]))}"
        return float(loads[first - 1]), np.nan, np.nan, said

    def _expected_load(self, target: Target) -> tuple[float, float, float, str]:
        """The load that answers by the forecast."""
        search = smallest_load if target.name == "X" else largest_load
        try:
            load, low, high = search(self.columns, target.value, self.level, **self.known)
        except InputError as reason:  # a mean of runs misses what their median has
            return np.nan, np.nan, np.nan, f"cannot be said: {reason}"
        far, where = f"{FAR:g} times the last load", f"{self.x} = {show(load)}"
        if target.name == "X":
            said = (
                f"is not expected up to {far}" if np.isinf(load) else f"is expected from {where} on"
            )
        else:
            said = (
                f"is expected up to {far} and more"
                if np.isinf(load)
                else f"is expected up to {where}"
            )
        between = f" ({self._interval(low, high)})" * bool(np.isfinite([low, high]).any())
        return load, low, high, said + between

    def said_of(self, target: Target, wanted: Wanted) -> str:
        """Where a target is met, in sentences."""
        what = f"{self.y} of {show(target.value)} or more"
        if target.name == "R":
            what = f"a mean response time of {show(target.value)} or less"
        each = [f"{_likely(p)} at {self.x} = {show(N)}" for N, p in wanted.chances.items()]
        said = f"{what[0].upper()}{what[1:]} {wanted.said}."
        return f"{said} By the forecast, the probability of {what} is {', '.join(each)}."


def _percent(share: float) -> str:
    return f"{abs(100 * share):.0f} %" if abs(share) >= 0.1 else f"{abs(100 * share):.2g} %"


def _changes(slope: float, rises: str = "rises", falls: str = "falls") -> str:
    """What a slope of logarithms does in a doubling."""
    each = 2.0**slope - 1
    if abs(each) < SAME:
        return "stayed the same" if rises == "rose" else "stays the same"
    return f"{rises if each > 0 else falls} by {_percent(each)}"


def _likely(p: float) -> str:
    """A probability that is no more certain than curves of other systems can make it."""
    return "below 1 %" if p < 0.01 else "above 99 %" if p > 0.99 else f"{100 * p:.0f} %"
