"""What `nummodel fit` says of a table: an answer, a document of JSON, tables and a figure."""

import operator
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nummodel.arguments import LARGEST
from nummodel.errors import InputError
from nummodel.fits import (
    EXTRAPOLATION,
    Fit,
    LackOfFit,
    advice,
    answer,
    compare,
    doubling,
    lack_of_fit,
    laws,
    remarks,
)
from nummodel.fits._closed import Face, contradictions, limit
from nummodel.nomenclature import show
from nummodel.records import columns
from nummodel.records.columns import Points
from nummodel.records.readers.table import is_number

if TYPE_CHECKING:
    from nummodel.plot import Picture

#: A curve is too high if it asks a station for more than all of its time, by this share.
FULLER = 0.02
#: Servers that one user may keep busy: more of them count the work of others.
OTHERS = 1.5
COMPARISONS = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


@dataclass(frozen=True)
class Study:
    """Laws fitted to the points of a table, the points held out, and what else was asked: loads at
    which to forecast, and the think time, which is NaN where it is not known.
    """

    used: Points
    new: Points
    fits: dict[str, Fit]
    refused: dict[str, str]
    level: float
    at: list[float]
    Z: float
    notes: list[str]
    weights: str

    @cached_property
    def choice(self) -> tuple[str | None, str]:
        """The law that the points support, and why."""
        return laws.choose(self.fits)

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
        return {name: lack_of_fit(f.whole) for name, f in self.fits.items()}

    @property
    def decisive(self) -> LackOfFit | None:
        """The test of the chosen law, or without one, of the law that passes it best."""
        if self.chosen:
            return self.lack_of_fit[self.chosen]
        tests = [test for test in self.lack_of_fit.values() if test]
        return max(tests, key=lambda test: test.p, default=None)

    def answer(self) -> str:
        """Where throughput stops growing, how sure that is, what the next doubling brings, what
        speaks against all this, and which load to measure next.
        """
        N, X, _, x, y, *_ = self.used
        if self.fit:
            found = [answer(self.fit, x, y, self.level), doubling(self.fit, x, self.level)]
            if self.limit:
                found.insert(1, f"What limits it is {self.limit['what']}: {self.limit['why']}.")
            starts = ["But", *["Also,"] * len(self.cautions)]
            against = [f"{a} {b}." for a, b in zip(starts, self.cautions, strict=False)]
            against.append(advice(self.fit, x, self.level))
            return " ".join(found + against).strip()
        why = f"No law is chosen: {self.choice[1]}"
        if " rejected: " in why and "too few points to compare" not in why:
            why = "No law fits these points: all laws are rejected, for the reasons below"
        highest = f"The highest {y} measured is {show(X.max())}, at {x} = {show(N[X.argmax()])}"
        refused = "".join(f" {sentence[:1].upper()}{sentence[1:]}." for sentence in self.cautions)
        return f"{why}. {highest}.{refused}"

    @cached_property
    def cautions(self) -> list[str]:
        """What speaks against the chosen law, its weights or its intervals."""
        found = laws.cautions(self.fits, self.chosen, self.used.run) if self.chosen else []
        if laws.CLOSED in self.refused:
            found.append(f"a closed system was not fitted: {self.refused[laws.CLOSED]}")
        return [*found, *self._too_high()]

    def _too_high(self) -> list[str]:
        """Stations that would have to be more than fully in use at twice the last load. Nothing
        where X was once higher: then not every transaction needs as much.
        """
        if not self.fit or self.chosen == laws.CLOSED:
            return []
        N, X, _, x, y, *_ = self.used
        at_last, sentences = N == N.max(), []
        then = float(self.fit.at([2 * N.max()])[0])
        for name, share in self.used.others.items():
            U = share[at_last].mean() if name.startswith("U_") else 0.0
            most = X[at_last].mean() / U if 0 < U <= 1 + FULLER else np.inf
            if then > most * (1 + FULLER) and most >= X.max():
                sentences.append(
                    f"{name} is {show(U, '%')} at {x} = {show(N.max())}: as long as each "
                    f"transaction needs as much of it, {y} cannot exceed {show(most)}, which the "
                    "curve does at twice the last load"
                )
        return sentences

    @cached_property
    def remarks(self) -> list[str]:
        """What a reader must know of the table, and of the chosen law, or of all if none is."""
        sentences = [*self.used.warnings, *self.notes]
        for name in [self.chosen] if self.chosen else self.fits:
            of_law = remarks(self.fits[name], self.level)
            of_law += _outside(self.predictions(name), self.used.x, self.level)
            sentences += [f"{name}: {sentence}" for sentence in of_law]
        if max([*self.new.N, *self.at], default=0) > self.used.N.max():
            sentences.append(EXTRAPOLATION)
        return sentences

    def predictions(self, name: str) -> list[dict[str, Any]]:
        """What a law predicts of the rows held out."""
        if not len(self.new.N):
            return []
        own = None if isinstance(self.new.weights, str) else self.new.weights
        table = self.fits[name].predict(self.new.N, self.level, own).assign(observed=self.new.X)
        predictions = [{k: _figure(v) for k, v in row.items()} for row in table.to_dict("records")]
        return [p | {"inside": _inside(p)} for p in predictions]

    def forecast(self) -> list[dict[str, float | None]]:
        """Throughput and response time at the loads asked for, by the chosen law."""
        N = np.array(self.at)
        X = np.full((3, len(N)), np.nan)
        if self.fit and len(N):
            X = self.fit.predict(N, self.level)[["value", "low", "high"]].to_numpy().T
        with np.errstate(divide="ignore"):
            R, most, least = N / X - self.Z
        R[R <= 0] = np.nan  # such a think time contradicts the curve
        low, high = np.where(np.isnan(R), np.nan, [np.maximum(least, 0.0), most])
        if isinstance(self.fit, Face) and len(N):
            R, low, high = self.fit.response(N, self.level)[["value", "low", "high"]].to_numpy().T
        keys = ("N", "X", "low", "high", "R", "R_low", "R_high")
        rows = zip(N, *X, R, low, high, strict=True)
        return [dict(zip(keys, map(_figure, row), strict=True)) for row in rows]

    @property
    def limit(self) -> dict[str, str] | None:
        """What limits the system, and why. None where loads and throughputs are all that is known,
        as they do not tell it, and where several stations may limit.
        """
        found = limit(self.fit) if isinstance(self.fit, Face) else None
        return dict(zip(("what", "why"), found, strict=True)) if found else None

    def picture(self) -> "Picture":
        """The points and, where one is chosen, the law with its band and what it forecasts."""
        from nummodel import plot

        labels = plot.plain(self.used.x), plot.plain(self.used.y)
        alt = f"{self.used.y} against {self.used.x}: a dot for each measurement"
        if self.fit:
            held_out = (self.new.N, self.new.X)
            alt += f", and the curve of {self.chosen} with its band."
            return plot.fitted(self.fit, *labels, alt, self.level, held_out, self.at)
        picture = plot.Picture(f"{alt}.")
        ax = plot.axes(picture, *labels)
        for points, hollow in ((self.used, False), (self.new, True)):
            plot.points(ax, points.N, points.X, hollow=hollow)
        ax.set_ylim(0)
        return picture

    def document(self) -> dict[str, Any]:
        """What the command line prints as JSON. A number that cannot be computed is None."""
        figures: dict[str, Any] = {name: self._figures(name) for name in self.fits}
        return {
            "n": len(self.used.N),
            "x": self.used.x,
            "y": self.used.y,
            "weights": self.weights,
            "laws": figures | {name: {"refused": reason} for name, reason in self.refused.items()},
            "chosen": self.chosen,
            "why": self.choice[1],
            "lack_of_fit": _test(self.decisive),
            "forecast": self.forecast(),
            "limit": self.limit,
            "warnings": [
                *self.remarks,
                *(f"{self.chosen or laws.CLOSED}: {c}" for c in self.cautions),
            ],
        }

    def _figures(self, name: str) -> dict[str, Any]:
        """The figures of a law, with predictions of the rows held out."""
        result, keys = self.fits[name], ("value", "stderr", "low", "high")
        estimates = {
            q: {key: _figure(getattr(e, key)) for key in keys}
            | {"at_bound": q in result.at_bound, "identified": e.identified}
            for q, e in result.estimates(self.level).items()
        }
        return {
            "estimates": estimates,
            "aicc": _figure(compare.aicc(result)),
            "loo_rmse": _figure(result.loo_rmse),
            "lack_of_fit": _test(self.lack_of_fit[name]),
            "residuals": result.residuals.tolist(),
            "peak": _peak(result, self.level),
            "predictions": self.predictions(name),
        }


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
) -> Study:
    """Read a table, and fit one law or all.

    `holdout` is a comparison such as "N>24": the rows for which it is true are not used in the fit,
    but predicted. `at` are loads at which to forecast, as in "200,400". `known` has the think time,
    in the unit of time of the throughput, and numbers of servers, as in "Z=1,c_cpu=4". Raises
    InputError for a file, a column or an option that cannot be used.
    """
    if not 0 < level < 1:
        raise InputError(f"--level {level}: expected a number between 0 and 1")
    loads, given = _loads(at), _given(known)
    points = columns.read(path, x, y, weights)
    is_new = held_out(holdout, points.N, points.x)
    used, new = points.where(~is_new), points.where(is_new)
    if len(used.N) < 2:
        left = f"{len(used.N)} row{'s' * (len(used.N) != 1)}"
        where = f"--holdout {holdout}: leaves" if holdout else f"{path}:"
        raise InputError(f"{where} {left}, expected at least two")
    measured, constant = _of_system(used.others)
    changing = [n for n in used.others if n not in {*measured, *constant, *given}]
    given = constant | given
    told: dict[str, Any] = {"Z": given.get("Z")} | measured
    notes = contradictions(used.N, used.X, **told)
    busy = _too_busy(used.N, measured, given)
    if notes:
        notes.append("R and utilisations are not used, as columns contradict each other")
        measured = {}
    notes += [*busy, *(f"{n} is not the same in all rows, and is not used" for n in changing)]
    if holdout and not is_new.any():
        notes.append(f"--holdout {holdout} holds no row out")
    fits, refused = laws.fit_all(used.N, used.X, used.weights, law, measured, **given)
    if not fits:
        reasons = "; ".join(f"{name} with {reason}" for name, reason in refused.items())
        raise InputError(f"{path}: {reasons}")
    Z = given.get("Z", np.nan)
    if np.isnan(Z) and "R" in measured:
        Z = max(float(np.median(used.N / used.X - measured["R"])), 0.0)
    by_fit = weights == "auto" or [*fits] == [laws.CLOSED]
    kind = next(iter(fits.values())).weights if by_fit else weights
    return Study(used, new, fits, refused, level, loads, Z, notes, kind)


def _loads(at: str | Iterable[float]) -> list[float]:
    """The loads at which to forecast. Raises InputError for what is no load."""
    items = [str(item).strip() for item in (at.split(",") if isinstance(at, str) else at)]
    loads = [float(item) for item in items if is_number(item)]
    if len(loads) < len(items) or not all(0 < load < LARGEST for load in loads):
        raise InputError(f"--at {','.join(items)}: expected positive loads, as in 200,400")
    return loads


def _given(known: str | None) -> dict[str, float]:
    """The think time and the numbers of servers in a text such as "Z=1,c_cpu=4". Raises
    InputError.
    """
    given = {}
    for one in known.split(",") if known else []:
        name, _, value = (part.strip() for part in one.partition("="))
        good = is_number(value) and 0 <= float(value) < LARGEST
        servers = re.fullmatch(r"c_[A-Za-z]\w*", name) and good and float(value) >= 1
        if not (good and name == "Z") and not (servers and float(value).is_integer()):
            raise InputError(f"--known {one}: expected a think time or servers, as in Z=1,c_cpu=4")
        given[name] = float(value) if name == "Z" else int(float(value))
    return given


def _too_busy(N: np.ndarray, measured: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Stations at which more servers are busy than users are there, in sentences."""
    sentences = []
    for name, share in measured.items():
        busy = np.asarray(share) * given.get(name.replace("U_", "c_", 1), 0.0)
        worst = int(np.argmax(busy / N))
        if name.startswith("U_") and busy[worst] > OTHERS * N[worst]:
            sentences.append(
                f"{name} says that {show(busy[worst])} servers are busy at N = {show(N[worst])}, "
                "more than so many users keep busy: it may count the work of others as well"
            )
    return sentences


def _of_system(others: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Response times and utilisations; the think time and the numbers of servers, if they are the
    same in all rows.
    """
    measured = {n: v for n, v in others.items() if n == "R" or n.startswith("U_")}
    return measured, {
        n: float(v[0]) for n, v in others.items() if n not in measured and (v == v[0]).all()
    }


def held_out(expression: str | None, N: np.ndarray, x: str = "N") -> np.ndarray:
    """The loads for which a comparison such as "N>24" is true. Raises InputError.

    The load may be called N or by the name of its column.

    >>> held_out("N > 24", np.array([6, 24, 30]))
    array([False, False,  True])
    """
    if expression is None:
        return np.zeros(len(N), dtype=bool)
    number = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    match = re.fullmatch(rf"\s*(.*?)\s*(<=|>=|==|<|>)\s*({number})\s*", expression)
    if not match:
        raise InputError(f"--holdout {expression!r}: no comparison, expected one such as 'N>24'")
    if match[1] not in ("N", x):
        expected = f"N or {x}" if x != "N" else "N"
        raise InputError(f"--holdout {expression!r}: {match[1]!r} is not the load, {expected}")
    return COMPARISONS[match[2]](N, float(match[3]))


def text(result: dict[str, Any], level: float, fits: Mapping[str, Fit]) -> str:
    """The result as tables for people."""
    lines = [
        "{y} against {x}: {n} points, {weights} weights".format(**result),
        f"in brackets: {100 * level:.15g} % intervals",
    ]
    meanings = {q: f.law.meaning(q).meaning for f in fits.values() for q in f.free}
    width = max((len(q) + 2 for q in meanings), default=0)
    lines += [f"{q:<{width}}{meaning}" for q, meaning in meanings.items()]
    for name, law in result["laws"].items():
        lines += ["", name]
        if "refused" in law:
            lines.append(f"  refused: {law['refused']}")
            continue
        for q, e in law["estimates"].items():
            on_bound = "  on its bound" * e["at_bound"]
            lines.append(f"  {q:<8}{e['value']:>12.5g}  {_span(e)}{on_bound}")
        if peak := law["peak"]:
            at = f"at {peak['N']:.4g}  {_span(peak)}".rstrip()
            lines.append(f"  peak    {peak['X']:>12.5g}  {at}")
        if law["aicc"] is not None:
            lines.append(f"  AICc    {law['aicc']:>12.1f}")
        if law["loo_rmse"] is not None:
            lines.append(f"  leave-one-out error {law['loo_rmse']:.4g}")
        if test := law["lack_of_fit"]:
            lines.append(f"  lack of fit: p = {test['p']:.2g}, {test['how']}")
        for p in law["predictions"]:
            verdict = {None: "", True: "  inside", False: "  outside"}[p["inside"]]
            lines.append(
                f"  at {p['N']:<6g}{p['value']:>11.5g}  {_span(p)}"
                f"  observed {p['observed']:.5g}{verdict}"
            )
    reasons = [f"  {reason}" for reason in result["why"].split("; ")]
    lines += ["", f"chosen: {result['chosen'] or 'none'}", *reasons]
    forecast = result["forecast"] if result["chosen"] else []
    lines += ["", f"forecast by {result['chosen']}"] if forecast else []
    for f in forecast:
        time = {"low": f["R_low"], "high": f["R_high"]}
        R = "" if f["R"] is None else f"  R {f['R']:.4g}  {_span(time)}"
        lines.append(f"  at {f['N']:<6g}{f['X']:>11.5g}  {_span(f)}{R}")
    return "\n".join(lines)


def _span(ends: dict[str, Any]) -> str:
    """An interval in brackets; an end that does not exist is left open."""
    low, high = ("..." if ends[end] is None else f"{ends[end]:.5g}" for end in ("low", "high"))
    return "" if low == high == "..." else f"[{low}, {high}]"


def _inside(prediction: dict[str, Any]) -> bool | None:
    """Whether the measurement lies in its interval, of which an end may not exist; None if there is
    no interval.
    """
    low, high, observed = (prediction[key] for key in ("low", "high", "observed"))
    if low is high is None:
        return None
    return (low is None or low <= observed) and (high is None or observed <= high)


def _outside(predictions: list[dict[str, Any]], x: str, level: float) -> list[str]:
    """A warning, if more rows lie outside their prediction intervals than chance explains.

    Of few rows, where chance puts less than one outside on average, a single row outside is a
    surprise. Of many rows, only a number that chance reaches in less than 1 % of cases is one.
    """
    from scipy.special import bdtrc

    missed = [p for p in predictions if p["inside"] is False]
    rows, share = len(predictions), 1 - level
    if not missed or (rows * share >= 1 and bdtrc(len(missed) - 1, rows, share) >= 0.01):
        return []
    sides = ["below" if p["observed"] < p["value"] else "above" for p in missed]
    first = [f"{x} = {p['N']:g} ({side})" for p, side in zip(missed[:5], sides, strict=False)]
    rest = f" and {len(missed) - 5} more" if len(missed) > 5 else ""
    return [
        f"{len(missed)} of {rows} rows held out lie outside their {100 * level:.15g} % "
        f"intervals: {', '.join(first)}{rest}"
    ]


def _peak(result: Fit, level: float) -> dict[str, float | None] | None:
    """Load and height of the highest throughput, with the interval of its load."""
    peak = result.peak()
    if not peak:
        return None
    low = high = np.nan
    with suppress(ValueError):  # several peaks, or none that algebra finds
        low, high = result.interval("N_opt", level)
    return {"N": peak[0], "X": peak[1], "low": _figure(low), "high": _figure(high)}


def _test(test: LackOfFit | None) -> dict[str, Any] | None:
    return test and test._asdict()


def _figure(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
