"""What `nummodel fit` says of a table: an answer, a document of JSON, tables and a figure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nummodel.answers import _document, _fit_answer, options, remarks
from nummodel.answers._document import figure, inside, outside
from nummodel.answers.agreement import agreed
from nummodel.answers.ahead import Ahead, Row, Wanted
from nummodel.answers.bottleneck import limit
from nummodel.errors import InputError
from nummodel.fits import (
    FURTHEST,
    Fit,
    LackOfFit,
    closed,
    lack_of_fit,
    laws,
)
from nummodel.nomenclature import show
from nummodel.records import columns
from nummodel.records.columns import Points

if TYPE_CHECKING:
    from nummodel.plot import Picture

#: A curve is too high if it asks a station for more than all of its time, by this share.
FULLER = 0.02


@dataclass(frozen=True)
class Study:
    """Laws fitted to the points of a table, the points held out, and what else was asked: loads at
    which to forecast, and a target. `measured` has response times and utilisations, and `known` the
    think time and numbers of servers. `shared` are the utilisations that probably count the work of
    other programs.
    """

    used: Points
    new: Points
    fits: dict[str, Fit]
    refused: dict[str, str]
    level: float
    at: list[float]
    measured: dict[str, np.ndarray]
    known: dict[str, float]
    notes: list[str]
    weights: str
    target: options.Target | None = None
    shared: tuple[str, ...] = ()

    @cached_property
    def choice(self) -> tuple[str | None, str]:
        """The law that the points support, and why."""
        return closed.choose(self.fits)

    @property
    def chosen(self) -> str | None:
        """The name of the law that the points support; None if no law is chosen."""
        return self.choice[0]

    @cached_property
    def fit(self) -> Fit | None:
        """The fit of the chosen law."""
        return self.fits.get(self.chosen or "")

    @cached_property
    def lack_of_fit(self) -> dict[str, LackOfFit | None]:
        """Of each fitted law, the test of whether it is right."""
        return {name: lack_of_fit(f) for name, f in self.fits.items()}

    @property
    def decisive(self) -> LackOfFit | None:
        """The test of the chosen law, or without one, of the law that passes it best."""
        if self.chosen:
            return self.lack_of_fit[self.chosen]
        tests = [test for test in self.lack_of_fit.values() if test]
        return max(tests, key=lambda test: test.p, default=None)

    def answer(self) -> str:
        """Paragraphs of the law, the forecast, the target, and what the law is worth."""
        return _fit_answer.answer(self)

    def document(self) -> dict[str, Any]:
        """What the command line prints as JSON."""
        return _document.document(self)

    @cached_property
    def cautions(self) -> list[str]:
        """What speaks against the chosen law, its weights or its intervals."""
        found, (_, _, _, x, y, _, run, *_) = [], self.used
        if self.chosen:
            found = remarks.cautions(self.fits, self.chosen, run, x, y)
        if closed.CLOSED in self.refused:
            found.append(f"a closed system was not fitted: {self.refused[closed.CLOSED]}")
        elif self._fall_decides:
            found.append(
                f"{y} falls from load to load over the last {closed.FALLING}, so a closed system, "
                "which levels off, was not fitted: if this fall may be chance, --law closed fits it"
            )
        return [*found, *self._too_high()]

    @property
    def _fall_decides(self) -> bool:
        """Whether a closed system was left out because a fall was seen."""
        usl = self.fits.get("usl")
        if not usl or closed.CLOSED in self.fits or len(self.fits) == 1:
            return False
        peak = self.fit.peak() if self.fit else np.isfinite(laws.aicc(usl))
        return bool(peak) and closed.falls(usl)

    @cached_property
    def allowed(self) -> dict[str, tuple[float, float]]:
        """Of each measured utilisation, its share at the last load (1 if it is more), and the
        throughput at which it would be full, if each transaction needs as much as there. Nothing
        where X was once higher, beyond errors: then not every transaction needs as much.
        """
        N, X, *_ = self.used
        at_last, found = N == N.max(), {}
        for name, share in self.used.others.items():
            U = float(share[at_last].mean()) if name.startswith("U_") else 0.0
            U = min(U, 1.0)
            most = float(X[at_last].mean()) / U if U > 0 else 0.0
            if most * (1 + FULLER) >= X.max():
                found[name] = U, max(most, float(X.max()))
        return found

    def bounded(self, name: str) -> str:
        """What a utilisation in `allowed` allows, in words."""
        most = show(float(f"{self.allowed[name][1]:.3g}"))
        if_same = f"as long as each transaction needs as much of {name[2:]}"
        return f"{if_same}, {self.used.y} cannot exceed about {most}"

    def _too_high(self) -> list[str]:
        """Stations that would have to be more than fully in use at twice the last load."""
        if not self.fit or self.chosen == closed.CLOSED:
            return []
        last, x = self.used.N.max(), self.used.x
        then = float(self.fit.at([2 * last])[0])
        return [
            f"{name} is {show(U, '%')} at {x} = {show(last)}: {self.bounded(name)}, but the fitted "
            "law exceeds this at twice the last load"
            for name, (U, most) in self.allowed.items()
            if then > most * (1 + FULLER)
        ]

    @cached_property
    def remarks(self) -> list[str]:
        """What a reader must know of the table, and of the chosen law, or of all if none is."""
        sentences = [*self.used.warnings, *self.notes]
        for name in [self.chosen] if self.chosen else self.fits:
            of_law = [s for s in remarks.remarks(self.fits[name], self.level) if self._measured(s)]
            of_law += outside(self.predictions(name), self.used.x, self.level)
            sentences += [f"{name}: {sentence}" for sentence in of_law]
        if max(self.new.N, default=0) > self.used.N.max():
            sentences.append(remarks.EXTRAPOLATION)
        if max([*self.new.N, *self.at], default=0) > FURTHEST * self.used.N.max():
            sentences.append(f"forecasts beyond {FURTHEST:g} times the last load were not checked")
        if self.level > 0.95:
            sentences.append("intervals of forecasts were checked up to a level of 0.95")
        return sentences

    def _measured(self, sentence: str) -> bool:
        """Whether a sentence is about no station, or one with a measured utilisation: what is said
        of the demands of others is in their intervals.
        """
        about = re.match(r"[Dc]_(\w+) ", sentence)
        return not about or f"U_{about[1]}" in self.measured

    def predictions(self, name: str) -> list[dict[str, Any]]:
        """What a law predicts of the rows held out."""
        if not len(self.new.N):
            return []
        own = None if isinstance(self.new.weights, str) else self.new.weights
        table = self.fits[name].predict(self.new.N, self.level, own).assign(observed=self.new.X)
        predictions = [{k: figure(v) for k, v in row.items()} for row in table.to_dict("records")]
        return [p | {"inside": inside(p)} for p in predictions]

    @cached_property
    def ahead(self) -> Ahead:
        """What is expected at other loads. If some columns could not be used, the numbers of
        servers are not used either, so that no system is followed.
        """
        known = {} if self.notes else self.known
        known |= {"Z": self.known["Z"]} if "Z" in self.known else {}
        fitted = self.fits.get(closed.CLOSED)
        return Ahead(self.used, self.measured, known, self.level, self.fit, self.chosen, fitted)

    @cached_property
    def wanted(self) -> Wanted | None:
        """Where the target is met, if there is one."""
        return self.target and self.ahead.wanted(self.target, self.at)

    def forecast(self) -> list[dict[str, Any]]:
        """What is expected at the loads asked for, a `Row` each."""
        rows = self.ahead.rows(self.at)
        return [
            dict(zip(Row._fields, [row.by, *map(figure, row[1:])], strict=True)) for row in rows
        ]

    def held_out(self) -> list[dict[str, Any]]:
        """What the forecast says of the rows held out that are beyond the last load, and whether
        the measurement lies in the interval.
        """
        beyond = self.new.where(self.new.N > self.ahead.last)
        order, names, found = np.argsort(beyond.N), ("N", "value", "low", "high"), []
        for row, X in zip(self.ahead.rows(beyond.N[order]), beyond.X[order], strict=True):
            told = dict(zip(names, map(figure, row[1:5]), strict=True)) | {"observed": float(X)}
            found.append(told | {"inside": inside(told)})
        return found

    @property
    def limit(self) -> dict[str, str] | None:
        """What limits the system, and why. None where loads and throughputs are all that is known,
        as they do not tell it, and where several stations may limit.
        """
        found = limit(self.fit) if self.fit and self.chosen == closed.CLOSED else None
        return dict(zip(("what", "why"), found, strict=True)) if found else None

    def picture(self) -> "Picture":
        """The points, the chosen law with its band, and beyond the last load the forecast with its
        interval, as far as twice this load or the loads asked for.
        """
        from nummodel import plot

        labels = plot.plain(self.used.x), plot.plain(self.used.y)
        alt = f"{self.used.y} against {self.used.x}: a dot for each measurement"
        alt += f", the curve of {self.chosen} with its band" * bool(self.fit)
        fan = self.ahead.fan(max([2 * self.ahead.last, *self.new.N, *self.at]))
        alt += ", and the forecast with its interval" * (fan is not None)
        beyond = [N for N in self.at if N > self.ahead.last]
        asked = np.array([row[1:5] for row in self.ahead.rows(beyond)]).T
        held_out = (self.new.N, self.new.X)
        if self.fit:
            return plot.fitted(
                self.fit, *labels, f"{alt}.", self.level, held_out, fan, asked, self.chosen
            )
        picture = plot.Picture(f"{alt}.")
        ax = plot.axes(picture, *labels)
        for points, hollow in ((self.used, False), (self.new, True)):
            plot.points(ax, points.N, points.X, hollow=hollow)
        plot.forecast(ax, fan, asked)
        ax.set_ylim(0)
        return picture


def fit_table(
    path: str | Path,
    x: str | None = None,
    y: str | None = None,
    law: str = "all",
    weights: str = "absolute",
    holdout: str | None = None,
    level: float = 0.95,
    at: str | Iterable[float] = (),
    known: str | None = None,
    target: str | None = None,
    without: tuple[str, str] | None = None,
    use: str | Iterable[str] = (),
    only: str | Iterable[str] = (),
) -> Study:
    """Read a table, and fit one law or all.

    `holdout` is a comparison such as "N>24": the rows for which it is true are not used in the fit,
    but predicted. `at` are loads at which to forecast, as in "200,400". `known` has the think time,
    in the unit of time of the throughput, and numbers of servers, as in "Z=1,c_cpu=4". `target` is
    a throughput or a mean response time to be met, as in "X=1000" or "R=0.5". `without` is a
    utilisation that is not used, nor the servers of its station, and why. `use` says what columns
    hold, and `only` picks rows, as `columns.read` has them. Raises InputError for a file, a column
    or an option that cannot be used.
    """
    if not 0 < level < 1:
        raise InputError(f"--level {level}: expected a number between 0 and 1")
    loads = options.loads(at)
    complete = law == closed.CLOSED
    points = columns.read(path, x, y, weights, complete=complete, use=use, only=only)
    if without:
        name, why = without
        its = (name, name.replace("U_", "c_", 1))
        others = {n: v for n, v in points.others.items() if n not in its}
        warnings = (*points.warnings, f"{name} is not used: {why}")
        points = points._replace(others=others, warnings=warnings)
    wanted = options.target(target, points.y, points.found)
    stations = [n[2:] for n in points.others if n.startswith("U_") and n != "U_lock"]
    given = options.given(known, stations)
    is_new = options.held_out(holdout, points.N, points.x)
    used, new = points.where(~is_new), points.where(is_new)
    if len(used.N) < 2:
        left = f"{len(used.N)} row{'s' * (len(used.N) != 1)}"
        where = f"--holdout {holdout}: leaves" if holdout else f"{path}:"
        raise InputError(f"{where} {left}, expected at least two")
    if holdout and not is_new.any():
        held = f"--holdout {holdout} holds no row out"
        used = used._replace(warnings=(*used.warnings, held))
    used, measured, known_, notes, together, shared = agreed(used, given)
    fits, refused = closed.fit_all(used.N, used.X, used.weights, law, together, **known_)
    if not fits:
        reasons = "; ".join(f"{name} with {reason}" for name, reason in refused.items())
        raise InputError(f"{path}: {reasons}")
    if closed.CLOSED in fits:
        used = used._replace(warnings=(*used.warnings, *_not_measured(given, stations)))
    by_fit = weights == "auto" or [*fits] == [closed.CLOSED]
    kind = next(iter(fits.values())).weights if by_fit else weights
    return Study(
        used, new, fits, refused, level, loads, measured, known_, notes, kind, wanted, shared
    )


def _not_measured(given: dict[str, float], stations: list[str]) -> list[str]:
    """A warning for each station whose number of servers is `given`, but whose utilisation is not
    in the table. A fit always has processors and a lock.
    """
    usual = [*stations, "cpu", "lock"]
    names = [name[2:] for name in given if name != "Z" and name[2:] not in usual]
    return [
        f"--known c_{name}: no column U_{name} is used, so {name} is one more station that was not "
        f"measured; the stations here are {', '.join(dict.fromkeys(usual))}"
        for name in names
    ]
