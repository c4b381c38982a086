"""What limits a measured system, and what the next change would bring.

A closed system is fitted to all that was measured (`study.fit_table`). What a change brings is what
its model brings: the same demands, think time and users, with one station changed. Where no closed
system meets the measurements, no such gain is told.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nummodel.answers import _limit_answer, _no_model, _words
from nummodel.answers.bottleneck import farthest, limit, rival
from nummodel.answers.study import Study, fit_table
from nummodel.errors import InputError
from nummodel.fits import Fit, bootstrap, closed
from nummodel.formula import Formula
from nummodel.models import systems
from nummodel.models.operational import interactive_response
from nummodel.models.systems import System
from nummodel.nomenclature import show

if TYPE_CHECKING:
    import pandas as pd

#: A system that a test rejects is used if it is nowhere farther from the mean of a column: repeated
#: runs may scatter so little that a test notices what matters to nobody.
NEARLY = 0.1
#: Refits from which intervals come.
DRAWS = 400
#: A change of a station of several servers, and of a single server, and what its gain hangs on.
CHANGES = {
    "twice": (
        "twice as many servers",
        "two instead of one",
        "N, Z and all demands stay, and old and new servers of {} share the work equally",
    ),
    "half": (*["half the demand"] * 2, "N, Z and the demands at all stations but {} stay"),
}


class Gain(NamedTuple):
    """The share of throughput that a change of a station adds at N users, its interval, the
    interval of the mean response time then, and what all this hangs on.
    """

    station: str
    change: str
    N: float
    gain: float
    low: float
    high: float
    R: list[float]
    hangs_on: str


def read(
    path: str | Path,
    x: str = "",
    y: str = "",
    known: str = "",
    level: float = 0.95,
    use: str | Iterable[str] = (),
    only: str | Iterable[str] = (),
) -> "Limits":
    """The `Limits` of the system that a table or a folder with outputs of tools was measured on.

    `known` has numbers of servers and the think time, as in "c_cpu=4,Z=1"; `fits.closed.fit_closed`
    says what is assumed of others; `use` and `only` are those of `columns.read`. If the system then
    misses nothing but one utilisation, this is left out where the others show a limit. Raises
    InputError for what cannot be used, and where more than one number of servers is unknown.
    """
    system = _read(path, x, y, known, level, use, only)
    if not system.rejected or farthest(system.fit) <= NEARLY:
        return system
    missed = _no_model.alone(system)
    if missed.name[:2] == "U_" and not system.study.shared and not system.unused:
        used = f"{show(_words.in_use(system, missed.name[2:]), '%')} at the last load"
        why = f"it was {used}, but the best system with it misses only it, {missed.much}"
        with suppress(InputError):  # without it, too little may be known
            others = _read(path, x, y, known, level, use, only, (missed.name, why))
            shown = f"U_{others.stations[0]}" in others.study.measured
            if shown and not others.rejected and not others.unmet:
                return others
    return system


def _read(
    path: str | Path,
    x: str,
    y: str,
    known: str,
    level: float,
    use: str | Iterable[str],
    only: str | Iterable[str],
    without: tuple[str, str] | None = None,
) -> "Limits":
    """As `read`, `without` one utilisation, which is left out for a reason, or with all of them."""
    left_out = without[0] if without else ""
    its = left_out.replace("U_", "c_", 1)
    given = [text for text in known.split(",") if text.strip()]
    given = [text for text in given if text.partition("=")[0].strip() != its]
    servers = ",".join(given)
    how: dict[str, Any] = {
        "level": level,
        "known": servers,
        "without": without,
        "use": use,
        "only": only,
    }
    study = fit_table(path, x or None, y or None, "closed", **how)
    return Limits(study, left_out)


@dataclass(frozen=True)
class Limits:
    """What a `Study` of a closed system says of each station, and of changes; `left_out` is the
    utilisation that no such system explains.
    """

    study: Study
    left_out: str = ""

    @property
    def fit(self) -> Fit:
        """The closed system."""
        return self.study.fits[closed.CLOSED]

    @property
    def system(self) -> System:
        """Its stations."""
        return closed.system(self.fit)

    @cached_property
    def rejected(self) -> str:
        """Why a test rejects the closed system; "" if none does."""
        return (
            "" if self.study.chosen == "closed" else closed.misses(self.fit) or self.study.choice[1]
        )

    @property
    def limit(self) -> tuple[str, str] | None:
        """The station that would be full with more users, and why; None if several may be it."""
        return limit(self.fit)

    @cached_property
    def unmet(self) -> str:
        """Why no closed system speaks for the measurements; "" if one does."""
        study = self.study
        if not study.measured or not self.fit.results[1:]:
            why = "loads and throughputs alone do not tell one station from another"
            return "; ".join([*(study.notes or [why]), *self.unused])
        if self.rejected and farthest(self.fit) > NEARLY:
            missed = self.rejected.removeprefix("it ")
            rejected = f"no model of users and resources fits: the best one {missed}"
            return "; ".join([*study.notes, rejected])
        if self.fit.dof <= 0:
            return "there are too few measurements to test a closed system"
        return rival(self.fit)

    @property
    def unused(self) -> list[str]:
        """Columns of the file that could tell more if they were mended, and why they do not."""
        told = [text for text in self.study.used.warnings if " is not used: " in text]
        return [text for text in told if "another column is" not in text]

    @property
    def stations(self) -> list[str]:
        """Names of the stations, the one that is full first before the others."""
        longest = closed.times(self.fit)
        return sorted(longest, key=longest.__getitem__, reverse=True)

    @cached_property
    def draws(self) -> dict[str, Any]:
        """The quantities of the system by `DRAWS` refits. They are spread out around the estimates
        as Student's t is wider than the normal distribution: few residuals tell the errors.
        """
        from scipy.special import ndtri

        fit, level = self.fit, self.study.level
        refits = bootstrap(fit, count=DRAWS)
        for name in refits:
            alone = np.array([float(name == other) for other in fit.inner])
            wider = fit.quantile(level, alone) / ndtri((1 + level) / 2)
            estimate, least = fit.values[name], 1.0 if name[0] == "c" else 0.0
            refits[name] = np.maximum(estimate + wider * (refits[name] - estimate), least)
        return self.fit.values | {n: refits[n].to_numpy() for n in refits}

    @property
    def sureness(self) -> float:
        """The share of the refits that name the same bottleneck."""
        longest, first = closed.times(self.fit, self.draws), self.stations[0]
        later = [longest[first] > longest[n] for n in self.stations[1:]]
        return float(np.mean(np.all(later, axis=0)))

    def full_at(self, name: str) -> tuple[float, list[float]]:
        """The throughput at which a station is full, and its interval; infinite for no demand."""
        once, often = (
            closed.times(self.fit, values)[name] for values in (self.fit.values, self.draws)
        )
        least, most = self._ends(often)
        value, low, high = (1 / time if time > 0 else np.inf for time in (once, most, least))
        return value, [low, high]

    def demands(self) -> "pd.DataFrame":
        """A row for each station: its servers; the demand D of a transaction [s] by the closed
        system, by the utilisation law at the last load, and by regression of busy servers on X,
        which also tells how many are busy without transactions; and X where the station is full.
        """
        import pandas as pd
        from scipy.stats import linregress, t

        rows, used = {}, self.study.used
        for name in self.stations:
            c, system = self.servers(name), self.system
            row: dict[str, Any] = {"servers": c, "D": system.work(name, self.fit.values)}
            row["D, interval"] = self._ends(system.work(name, self.draws))
            row["full at"], row["full at, interval"] = self.full_at(name)
            U = self.study.measured.get(f"U_{name}")
            if U is not None:
                each = c * U / used.X  # not `demand`, as errors may put U above 1
                row["D at the last load"] = float(each[used.N.argmax()])
                line = linregress(used.X, U * c)
                far = t.ppf((1 + self.study.level) / 2, max(len(U) - 2, 1)) * np.array([-1, 1])
                row["D by regression"] = (line.slope + far * line.stderr).tolist()
                row["busy without work"] = (line.intercept + far * line.intercept_stderr).tolist()
            rows[name] = row
        return pd.DataFrame.from_dict(rows, orient="index")

    def beside(self) -> "pd.DataFrame":
        """What was measured at every load beside the model, and how far the model is off."""
        import pandas as pd

        table = pd.DataFrame({"N": self.study.used.N})
        measured = {"X": self.study.used.X, **self.study.measured}
        for name in self.fit.results:
            model = self.fit.at(table["N"], name)
            table[name], table[f"{name}, model"] = measured[name], model
            some = np.where(measured[name] > 0, measured[name], np.nan)
            table[f"{name}, off"] = np.round(model / some - 1, 6) + 0.0
        return table.sort_values("N")

    @cached_property
    def gains(self) -> list[Gain]:
        """What each change brings, at the last load and at twice this load."""
        both = [(name, change) for name in self.stations for change in CHANGES]
        return [gain for name, change in both for gain in self._gains(name, change)]

    @property
    def _loads(self) -> np.ndarray:
        return float(self.study.used.N.max()) * np.array([1.0, 2.0])

    @cached_property
    def _now(self) -> np.ndarray:
        """The throughput at the last load and at twice this load (rows), by each refit."""
        return self._throughput(self.fit.law, self.draws, self._loads[:, None])

    def _throughput(self, law: Formula, values: Mapping[str, Any], N: Any) -> np.ndarray:
        return law.unchecked(N=N, **{q: values[q] for q in law.quantities[1:]})

    def _gains(self, name: str, change: str) -> Iterator[Gain]:
        """By the estimates, and their intervals by the refits; to a hundredth of a percent. A model
        that a test rejects may be off after the change by as much as it is off before.
        """
        once = self.more(self.fit.values, name, change, self._loads)
        then = self.changed(self.draws, name, change, self._loads[:, None])
        for N, gain, X, X_then in zip(self._loads, once, self._now, then, strict=True):
            low, high = self._ends(X_then / X - 1)
            R = self._ends(interactive_response.unchecked(N=N, X=X_then, Z=self.draws["Z"]))
            if self.rejected:
                off, R = farthest(self.fit), [np.nan, np.nan]
                low = max((1 - off) * (1 + low) - 1, min(low, 0.0))
                high = (1 + off) * (1 + high) - 1
            gain, low, high = (np.round([gain, low, high], 4) + 0.0).tolist()
            several, single, hangs_on = CHANGES[change]
            said = single if self.servers(name) == 1 else several
            yield Gain(name, said, float(N), gain, low, high, R, hangs_on.format(name))

    def more(self, values: Mapping[str, Any], name: str, change: str, N: Any) -> np.ndarray:
        """The share by which one of the `CHANGES` makes the throughput of N users higher, in
        systems like this one with these `values`.
        """
        now = self._throughput(self.fit.law, values, N)
        return self.changed(values, name, change, N) / now - 1

    def changed(self, values: Mapping[str, Any], name: str, change: str, N: Any) -> np.ndarray:
        """The throughput of N users after one of the `CHANGES`, in systems like this one with these
        `values`. A second processor serves the same queue, and a second lock or device has a queue
        of its own, with half of the work.
        """
        D = f"D_{name}"
        servers: dict[str, Any] = dict(self.system.servers)
        computes = self.system.computes
        c, new = servers[name], dict(values)
        splits = c == 1 and name != "cpu"
        if change == "half" or splits:
            new[D] = values[D] / 2
        if change == "twice" and splits:
            servers[f"{name}_2"], new[f"D_{name}_2"] = 1, new[D]
        elif change == "twice":
            servers[name], new[f"c_{name}"] = c and 2 * c, 2 * values.get(f"c_{name}", 0)
        after = systems.closed(computes=computes, **servers)["X"]
        then = self._throughput(after, new, N)
        if name == computes and change == "twice":  # the holders of both parts need processors
            then = np.minimum(then, 1 / closed.times(self.fit, values)[self.system.first])
        return then

    def hidden(self, name: str) -> bool:
        """Whether a station was not measured, so that a change of it may bring less."""
        return _words.is_hidden(self, name)

    def servers(self, name: str) -> float:
        """The number of servers of a station: known, or by the fit."""
        return float(self.system.places(name, self.fit.values))

    def _ends(self, values: Any) -> list[float]:
        """The interval of a quantity by its refits."""
        tail = (1 - self.study.level) / 2
        return np.quantile(values, [tail, 1 - tail]).tolist()

    def figures(self) -> tuple[int, float, float, int, float, list[float], int]:
        """What notebook 23 starts from: the last load N, Z, D_cpu and its servers, D_lock, and D of
        each device and its servers; of several devices, each server counts as a device. Raises
        InputError where these are unknown.
        """
        if self.unmet:
            raise InputError(f"these measurements do not tell demands: {self.unmet}")
        if "cpu" not in self.stations:
            found = ", ".join(self.stations)
            raise InputError(f"stations are {found}, expected cpu among them")
        D, devices = self.fit.values, [n for n in self.stations if n not in ("cpu", "lock")]
        devices = [n for n in devices if D[f"D_{n}"] > 0]
        c = {n: max(round(self.servers(n)), 1) for n in ("cpu", *devices)}
        drives, each = [D[f"D_{n}"] / c[n] for n in devices for _ in range(c[n])], 1
        if len(devices) == 1:
            drives, each = [sum(drives)], len(drives)
        return int(self.study.used.N.max()), D["Z"], D["D_cpu"], c["cpu"], D["D_lock"], drives, each

    def named(self, name: str) -> str:
        """What a station is called; the lock stands for what was not measured."""
        return _words.named(self, name)

    def words(self, name: str) -> tuple[str, str]:
        """What is done to a station: twice as many of its servers, and half its demand."""
        return _words.words(self, name)

    def answer(self) -> str:
        """What limits, how sure that is, what to do next and what it would bring."""
        return _limit_answer.answer(self)
