"""What `nummodel fit` says of loads beyond the measurements, and of a target."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nummodel.answers.options import Target
from nummodel.errors import InputError
from nummodel.fits import (
    FURTHEST,
    STEEPEST,
    Fit,
    Outlook,
    Trend,
    chance,
    closed,
    forecast,
    largest_load,
    outlook,
    smallest_load,
)
from nummodel.models.operational import interactive_response
from nummodel.nomenclature import show
from nummodel.records.columns import Points

#: On what forecasts were checked; the tables `scaling-curves` and `mysql2026` have the curves.
CHECKED = (
    "Checked on 161 curves of 109 programs on 47 machines; intervals beyond the data were "
    "calibrated on these and may not hold for yours"
)
#: Why intervals reach far down: what fell is X at a load from the third on.
FELL = (
    "The low end is so low because throughput may collapse: on 13 of 161 curves throughput fell to "
    "less than half within one doubling of the load; of the 118 curves that had been flat before, "
    "8 fell so"
)
#: If a forecast changes by less than this share, it is told as the same.
SAME = 0.005
#: A rise that would end at more than this many times the last throughput shows no end yet.
NO_END = 3.0
#: Loads that differ by no more than this factor are a doubling apart, or less.
ONCE = 2.05
#: Laws that were held against forecasts, with each source of curves left out, and what came of it.
CONTEST = ("amdahl", "usl", "closed")
OTHER_LAWS = (
    "on 125 curves of other systems, forecasts by such laws were farther off than this one in the "
    "median"
)
#: What is said of the interval of a forecast that follows a law.
FOLLOWED = "That makes the interval no narrower: it is as wide as without the system"
#: A target so many times longer or shorter than all that was measured may have another unit.
UNIT = 100.0
#: If the interval reaches below the last throughput by this share or more, it is told why.
LOW = 0.25


class Row(NamedTuple):
    """Throughput and response time at a load, each with its interval, and the height of the curve
    of the law that was chosen. NaN for what is not known. `by` is that law, or "forecast".
    """

    by: str
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
    the law that was chosen, if one was. `measured` may have R [s] and utilisations, and `known` the
    think time Z [s] and numbers of servers. `fitted` is the closed system fitted to all of these.
    """

    def __init__(
        self,
        points: Points,
        measured: Mapping[str, np.ndarray],
        known: Mapping[str, float],
        level: float,
        fit: Fit | None,
        chosen: str | None,
        fitted: Fit | None = None,
    ):
        self.columns = {"N": points.N, "X": points.X, **measured}
        self.known = {n: v for n, v in known.items() if n == "Z" or n.startswith("c_")}
        self.fitted = fitted
        # A column of the file may have gaps, or another unit, and a warning says so.
        self.told_cpu = "U_cpu" in points.others or any("U_cpu" in w for w in points.warnings)
        self.last = float(points.N.max())
        self.seconds = points.seconds
        self.x, self.y, self.level, self.fit = points.x, points.y, level, fit
        self.law = chosen or ""

    @cached_property
    def _seen(self) -> tuple[Outlook | None, str]:
        """What is expected beyond the last load; None and the reason, if nothing can be said."""
        try:
            return outlook(self.columns, self.known, self.fitted), ""
        except InputError as reason:
            return None, str(reason)

    def answer(self, at: Any = ()) -> str:
        """Two paragraphs: what is expected of the next doubling, and of the loads `at`; then what
        that hangs on, and on what such forecasts were checked. Or why nothing can be said.
        """
        seen = self._seen[0]
        if not seen:
            return f"No forecast: {self._seen[1]}."
        trend = seen.trend
        then, *others = self.rows([2 * self.last, *sorted(N for N in at if N > self.last)])
        low, middle, high = (_more(end / trend.X - 1) for end in (then.low, then.X, then.high))
        likely = seen.throughputs(np.array([then.N]), np.array([0.1, 0.9]))[0].tolist()
        said = [
            f"At twice the last load, {self._expects(then)}: plan for the low end, or measure at "
            "that load first",
            f"Beside the {show(trend.X)} at the last load, the low end is {low}, the middle "
            f"{middle}, and the high end {high}; with a probability of 80 %, {self.y} lies between "
            f"{show(likely[0])} and {show(likely[1])}",
            *self._responds(then),
        ]
        for row in others:
            if row.N != then.N:
                said += [f"At {self._expects(row)}", *self._responds(row)]
        why = self._hangs_on(seen, then)
        if then.low < (1 - LOW) * trend.X:
            why.append(FELL)
        if max(trend.X, self.columns["X"].max()) < trend.room < trend.each * then.N:
            room = show(trend.room)
            why.append(
                f"If a transaction goes on needing as much processor time as now, all processors "
                f"together allow {self.y} = {room}, or a little more, as utilisations have errors"
            )
        if not self.told_cpu:
            why.append(
                "The table does not say how busy the processors were: with a column U_cpu, the "
                "forecast could reckon with it"
            )
        return "\n".join(". ".join([*some, ""]).strip() for some in (said, [*why, CHECKED]))

    def _expects(self, row: Row) -> str:
        """Throughput at a load."""
        return (
            f"{self.x} = {show(row.N)}, {self.y} may be as low as {show(row.low)} or as high as "
            f"{show(row.high)} ({self._percent} interval), with {show(row.X)} in the middle"
        )

    def _responds(self, row: Row) -> list[str]:
        """The mean response time there, and at the last load, in a sentence; none if unknown."""
        if np.isnan(row.R):
            return []
        R = self.columns.get("R")
        unit, of = (" s", "") if self.seconds else ("", f", in the unit of time of {self.y},")
        long, short, middle = (show(t) + unit for t in (row.R_high, row.R_low, row.R))
        said = f"The mean response time{of} may then be {short} to {long}, with {middle} in the "
        said += "middle"
        if R is not None and not np.isnan(now := np.mean(R[self.columns["N"] == self.last])):
            said += f"; it is {show(float(f'{now:.4g}'))}{unit} at the last load"
        return [said]

    def _hangs_on(self, seen: Outlook, then: Row) -> list[str]:
        """What the forecast for twice the last load follows, and what it does not."""
        said, system = _assumed(seen.trend, self.x, self.y), seen.followed
        if system:
            alone = Outlook(seen.trend).throughputs(np.array([then.N]), np.array([0.5]))
            said[-1] = f"By the last points alone, the middle would be {show(float(alone[0, 0]))}"
            said.append(
                "The middle follows a closed system instead, as the numbers of servers are known "
                f"and no test rejects it: it says {show(float(system.at([then.N])[0]))}"
            )
            said.append(FOLLOWED)
        if self.fit and not (system and self.law == closed.CLOSED):
            far = "" if then.low <= then.law <= then.high else ", outside this interval"
            unchecked = "nobody checked how far off it is beyond the data"
            why = OTHER_LAWS if self.law in CONTEST else unchecked
            said.append(
                f"The fitted law has {show(then.law)} at {self.x} = {show(then.N)}{far}; the "
                f"forecast does not follow this law, because {why}"
            )
        return said

    @property
    def _percent(self) -> str:
        return f"{100 * self.level:.15g} %"

    def rows(self, at: Any) -> list[Row]:
        """What is expected at loads."""
        N = np.array(at, float)
        law = self.fit.at(N) if self.fit else np.full(len(N), np.nan)
        found, beyond = np.full((6, len(N)), np.nan), N > self.last
        if not beyond.all():
            found[:, ~beyond] = self._by_law(N[~beyond])
        if beyond.any():
            found[:, beyond] = self._expected(N[beyond])
        by = np.where(beyond, "forecast", self.law).tolist()
        rows = np.vstack([N, found, law]).T.tolist()
        return [Row(name, *row) for name, row in zip(by, rows, strict=True)]

    def fan(self, last: float) -> np.ndarray | None:
        """N, X, low and high at loads from the last measured one on; None without a forecast."""
        if not self._seen[0]:
            return None
        N = np.geomspace(self.last * (1 + 1e-9), last, 100)
        return np.vstack([N, self._expected(N)[:3]])

    def _expected(self, N: np.ndarray) -> np.ndarray:
        """X and its interval, R and its interval, at loads beyond the last one."""
        if not self._seen[0]:
            return np.full((6, len(N)), np.nan)
        names = ["X", "low", "high", "R", "R_low", "R_high"]
        return forecast(self._seen[0], N, self.level).reindex(columns=names).to_numpy().T

    def _by_law(self, N: np.ndarray) -> np.ndarray:
        """The same at other loads, with the interval of a new measurement."""
        if not self.fit:
            return np.full((6, len(N)), np.nan)
        X = self.fit.predict(N, self.level)[["value", "low", "high"]].to_numpy().T
        if self.law == closed.CLOSED:
            R = np.full((3, len(N)), np.nan)
            if "R" in self.fit.results:
                R = self.fit.predict(N, self.level, column="R").to_numpy().T[1:]
            return np.vstack([X, R])
        Z = self._seen[0].Z if self._seen[0] else self.known.get("Z")
        R, most, least = interactive_response.unchecked(N=N, X=X, Z=np.nan if Z is None else Z)
        R[R <= 0] = np.nan  # such a think time contradicts the curve
        return np.vstack([X, R, np.where(np.isnan(R), np.nan, [np.maximum(least, 0.0), most])])

    def wanted(self, target: Target, at: Any) -> Wanted:
        """Where a target is met: by measured loads, if these say so, and else by the forecast. Its
        probability is that at the loads `at` that are beyond the measurements, or else at twice the
        last load.
        """
        seen, reason = self._seen
        if seen and target.name == "R" and seen.Z is None:
            reason = "response times are not known, expected a column R, or --known Z=TIME"
        measured = self._measured(target)
        if not seen or reason:
            told = measured or (np.nan, np.nan, np.nan, f"cannot be forecast: {reason}")
            return Wanted(*told, {})
        beyond = [float(N) for N in at if N > self.last] or [2 * self.last]
        found = chance(seen, beyond, **{target.name: target.value})
        chances = dict(zip(beyond, map(float, found), strict=True))
        return Wanted(*(measured or self._expected_load(target, seen)), chances)

    def _measured(self, target: Target) -> tuple[float, float, float, str] | None:
        """The measured load that answers: the first that reaches a throughput, the last that keeps
        a response time. None if no throughput reaches it, or the last load keeps it.
        """
        loads, place = np.unique(self.columns["N"], return_inverse=True)
        value = self.columns["X"]
        if target.name == "R":
            at = {"N": self.columns["N"], "X": value, "Z": self.known.get("Z", np.nan)}
            value = self.columns.get("R", interactive_response.unchecked(**at))
        means = np.bincount(place, value) / np.bincount(place)
        met = means >= target.value if target.name == "X" else means <= target.value
        ends = [f"{self.x} = {show(float(N))}" for N in loads]
        if target.name == "R":
            if met[-1] or not np.isfinite(means).all():
                return None
            if not met.any():
                return np.nan, np.nan, np.nan, "was exceeded at all measured loads"
            last = int(np.flatnonzero(met)[-1])
            said = f"was kept at {ends[last]}, and exceeded at {ends[last + 1]} and from there on"
            return float(loads[last]), np.nan, np.nan, said
        if not met.any():
            return None
        first = int(np.argmax(met))
        if met[first:].all():
            return float(loads[first]), np.nan, np.nan, f"was measured from {ends[first]} on"
        missed = first + int(np.argmin(met[first:]))
        said = f"was measured at {ends[first]}, but not at {ends[missed]}"
        return float(loads[first]), np.nan, np.nan, said

    def _expected_load(self, target: Target, seen: Outlook) -> tuple[float, float, float, str]:
        """The load that answers by the forecast."""
        search = smallest_load if target.name == "X" else largest_load
        try:
            load, low, high = search(seen, target.value, self.level)
        except InputError:  # the middle of the last runs misses what their mean meets
            said = f"is met at the last load, {self.x} = {show(self.last)}, and hardly beyond it"
            return self.last, np.nan, np.nan, said
        far, interval = f"{FURTHEST:g} times the last load", f"{self._percent} interval of the load"
        where, least, most = (
            f"{self.x} = {show(end)}" if np.isfinite(end) else f"more than {far}"
            for end in (load, low, high)
        )
        if target.name == "X":
            said, early = f"is not expected up to {far}", f"at {least} already"
            both = f"may be reached at {most} only, or {early}"
        else:
            said, early = f"is expected up to {far} and more", f"up to {least} only"
            both = f"may be kept {early}, or up to {most}"
        if np.isfinite(load):
            said = f"{both} ({interval}), with {where} in the middle"
        elif np.isfinite(low):
            said += f", but perhaps {early} ({interval})"
        return load, low, high, said

    def said_of(self, target: Target, wanted: Wanted) -> str:
        """Where a target is met, in sentences."""
        what = f"{self.y} of {show(target.value)} or more"
        unit = " s" * self.seconds
        if target.name == "R":
            what = f"a mean response time of {show(target.value)}{unit} or less"
        each = [f"{_likely(p)} at {self.x} = {show(N)}" for N, p in wanted.chances.items()]
        said = f"{what[0].upper()}{what[1:]} {wanted.said}."
        R = self.columns.get("R")
        if target.unit and not self.seconds:
            said += f" The target is in seconds, and {self.y} is taken as that of a second."
        if target.name == "R" and R is not None and not (target.unit or _near(target.value, R)):
            ends = f"{show(float(np.nanmin(R)))} to {show(float(np.nanmax(R)))}{unit}"
            said += f" Measured were {ends}: the target may have another unit, as in R=500ms."
        if not each:
            return said
        return f"{said} By the forecast, the probability of {what} is {', '.join(each)}."


def _assumed(trend: Trend, x: str, y: str) -> list[str]:
    """How the last points changed, and what the forecast makes of that, in sentences."""
    smaller = trend.taken < min(trend.slope, STEEPEST)
    once = trend.N <= ONCE * trend.since
    change = trend.slope * np.log2(trend.N / trend.since) if once else trend.slope
    steps = f"{x} = {show(trend.since)} to {show(trend.N)}"
    each = "" if once else " with each doubling"
    said = [f"From {steps}, {y} {_changes(change)}{each}"]
    if smaller:
        said.append(f"Before that, {y} {_changes(trend.before)} with each doubling")
    rises, which = trend.taken > 0, "the smaller of these changes" if smaller else "this"
    goes = f"{which} goes on but weakens: each doubling {'brings' if rises else 'takes away'} less"
    if abs(2**trend.taken - 1) < SAME:
        goes = f"{y} stays the same"
    elif trend.end > NO_END * trend.X:
        goes = f"{which} goes on nearly as it is"
    return [*said, f"The forecast assumes that {goes}"]


def _near(R: float, measured: np.ndarray) -> bool:
    """Whether a response time is within `UNIT` times of those that were measured."""
    return bool(np.nanmin(measured) / UNIT <= R <= UNIT * np.nanmax(measured))


def _more(share: float) -> str:
    """By how much something is more or less."""
    if abs(share) < SAME:
        return "about as much"
    return f"{_percent(share)} {'more' if share > 0 else 'less'}"


def _percent(share: float) -> str:
    return f"{abs(100 * share):.0f} %" if abs(share) >= 0.1 else f"{abs(100 * share):.2g} %"


def _changes(slope: float) -> str:
    """What a slope of logarithms did in a doubling."""
    each = 2.0**slope - 1
    if abs(each) < SAME:
        return "stayed the same"
    return f"{'rose' if each > 0 else 'fell'} by {_percent(each)}"


def _likely(p: float) -> str:
    """A probability that is no more certain than curves of other systems can make it."""
    return "below 1 %" if p < 0.01 else "above 99 %" if p > 0.99 else f"{100 * p:.0f} %"
