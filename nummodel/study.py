"""From a table with a load and a throughput column to scaling laws, fitted and compared."""

import operator
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nummodel.errors import InputError
from nummodel.fits import EXTRAPOLATION, Fit, compare, fit, remarks
from nummodel.fits._problem import KINDS, rounding
from nummodel.models import scaling
from nummodel.records import columns, data
from nummodel.records.readers import table

COMPARISONS = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


class Points(NamedTuple):
    """Measurements from a file: loads, throughputs, weights of their own if any, column names, and
    what speaks against fitting them together.
    """

    N: np.ndarray
    X: np.ndarray
    w: np.ndarray | None
    x: str
    y: str
    pooled: tuple[str, ...] = ()

    def where(self, keep: np.ndarray) -> "Points":
        """Those for which `keep` is true."""
        w = None if self.w is None else self.w[keep]
        return self._replace(N=self.N[keep], X=self.X[keep], w=w)


def read(
    path: str | Path, x: str | None = None, y: str | None = None, weights: str = "absolute"
) -> Points:
    """Two columns of a CSV file, or of a published table by its name, in the units printed there.

    Left out, `x` and `y` are the columns that are called N and X, or else what `columns.choose`
    takes for a load and a throughput. `weights` is one of `measured.KINDS` or a third column. "-"
    is standard input. Raises InputError for whatever cannot be used.
    """
    path = data.path(path)
    cells = table.read(path)
    if weights not in KINDS and weights not in cells:
        expected = f"{', '.join(KINDS)}, or a column of: {columns.listed(cells)}"
        raise InputError(f"{path}: weights {weights!r}, expected {expected}")
    load, result = columns.choose(cells, x, y, weights, path)
    N = _numbers(cells, load, path, "" if x or columns.kind(load) == "load" else "x")
    X = _numbers(cells, result, path, "" if y or columns.kind(result) == "throughput" else "y")
    own = None if weights in KINDS else table.numbers(cells, weights, path, positive=True)
    pooled = columns.pooled(cells, {load, result, weights}, N, path)
    return Points(N, X, own, load, result, tuple(pooled))


def fit_laws(
    points: Points, weights: str = "absolute", law: str = "all"
) -> tuple[dict[str, Fit], dict[str, str]]:
    """Fits of one law or all by name, and why the others were refused."""
    if law != "all" and law not in scaling.LAWS:
        raise InputError(f"unknown law {law!r}, expected all or one of: {', '.join(scaling.LAWS)}")
    fits, refused = {}, {}
    for name in scaling.LAWS if law == "all" else [law]:
        measured = {"N": points.N, "X": points.X}
        try:
            used = weights if points.w is None else points.w
            fits[name] = fit(scaling.LAWS[name], measured, used)
        except InputError as refusal:
            refused[name] = str(refusal)
    return fits, refused


def study(
    path: str | Path,
    x: str | None = None,
    y: str | None = None,
    law: str = "all",
    weights: str = "absolute",
    holdout: str | None = None,
    level: float = 0.95,
) -> dict[str, Any]:
    """Read, fit and compare: what the command line prints as JSON.

    `holdout` is a comparison such as "N>24": the rows where it is true are predicted, not used.
    A figure that does not exist is None. Raises InputError for whatever cannot be used.
    """
    if not 0 < level < 1:
        raise InputError(f"--level {level}: expected a number between 0 and 1")
    points = read(path, x, y, weights)
    held = held_out(holdout, points.N, points.x)
    if (~held).sum() < 2:
        raise InputError(f"--holdout {holdout}: leaves {(~held).sum()} rows, expected at least two")
    used, new = points.where(~held), points.where(held)
    fits, refused = fit_laws(used, weights, law)
    if not fits:
        why = "; ".join(f"{name} with {reason}" for name, reason in refused.items())
        raise InputError(f"{path}: {why}")
    laws = {name: _figures(f, new, level) for name, f in fits.items()}
    laws |= {name: {"refused": reason} for name, reason in refused.items()}
    chosen, why = compare.choose(fits)
    warnings = list(points.pooled)
    for name, f in fits.items():
        told = remarks(f, level) + cautions(fits, chosen) * (name == chosen)
        told += _outside(laws[name]["predictions"], points.x, level)
        warnings += [f"{name}: {sentence}" for sentence in told]
    if (new.N > used.N.max()).any():
        warnings.append(EXTRAPOLATION)
    if holdout and not held.any():
        warnings.append(f"--holdout {holdout} holds no row out")
    return {
        "n": len(used.N),
        "x": points.x,
        "y": points.y,
        "weights": weights,
        "laws": laws,
        "chosen": chosen,
        "why": why,
        "warnings": warnings,
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
        raise InputError(f"--holdout {expression!r}: not one comparison, expected one as 'N>24'")
    if match[1] not in ("N", x):
        expected = f"N or {x}" if x != "N" else "N"
        raise InputError(f"--holdout {expression!r}: {match[1]!r} is not the load, {expected}")
    return COMPARISONS[match[2]](N, float(match[3]))


def _outside(predictions: list[dict[str, Any]], x: str, level: float) -> list[str]:
    """A warning, if measurements lie outside the intervals that were predicted for them."""
    missed = [p for p in predictions if not _holds(p)]
    if not missed:
        return []
    sides = ["below" if p["observed"] < p["value"] else "above" for p in missed]
    found = [f"{x} = {p['N']:g} ({side})" for p, side in zip(missed[:5], sides, strict=False)]
    rest = f" and {len(missed) - 5} more" if len(missed) > 5 else ""
    return [
        f"{len(missed)} of {len(predictions)} rows held out lie outside their {100 * level:.15g} % "
        f"intervals: {', '.join(found)}{rest}"
    ]


def _holds(prediction: dict[str, Any]) -> bool:
    """Whether the measurement lies in its interval; an end that does not exist holds it."""
    low, high, observed = (prediction[key] for key in ("low", "high", "observed"))
    return (low is None or low <= observed) and (high is None or observed <= high)


def concerning(result: dict[str, Any]) -> list[str]:
    """The warnings of a study without those of laws that were not chosen, where one was."""
    others = [f"{name}: " for name in result["laws"] if result["chosen"] not in (name, None)]
    return [w for w in result["warnings"] if not w.startswith(tuple(others))]


def text(result: dict[str, Any], level: float) -> str:
    """A study as tables for people."""
    lines = [
        f"{result['y']} against {result['x']}: {result['n']} points, {result['weights']} weights",
        f"in brackets: {100 * level:.15g} % intervals",
    ]
    for name, law in result["laws"].items():
        lines += ["", name]
        if "refused" in law:
            lines.append(f"  refused: {law['refused']}")
            continue
        for q, e in law["estimates"].items():
            error = f"  {_span(e['low'], e['high'])}" + "  on its bound" * e["at_bound"]
            lines.append(f"  {q:<8}{e['value']:>12.5g}{error}")
        if peak := law["peak"]:
            at = f"at {peak['N']:.4g}  {_span(peak['low'], peak['high'])}".rstrip()
            lines.append(f"  peak    {peak['X']:>12.5g}  {at}")
        if law["aicc"] is not None:
            lines.append(f"  AICc    {law['aicc']:>12.1f}")
        if law["loo_rmse"] is not None:
            lines.append(f"  leave-one-out error {law['loo_rmse']:.4g}")
        for p in law["predictions"]:
            verdict = "  inside" if _holds(p) else "  outside"
            verdict = "" if p["low"] is None and p["high"] is None else verdict
            lines.append(
                f"  at {p['N']:<6g}{p['value']:>11.5g}  {_span(p['low'], p['high'])}"
                f"  observed {p['observed']:.5g}{verdict}"
            )
    lines += ["", f"chosen: {result['chosen'] or 'none'} ({result['why']})"]
    return "\n".join(lines)


def _numbers(cells: table.Cells, column: str, path: Path, guessed: str) -> np.ndarray:
    """A column of positive numbers; of one that was guessed, how to name another."""
    try:
        return table.numbers(cells, column, path, positive=True)
    except InputError as error:
        how = f"no {guessed} was given: --{guessed} NAME, in a report -p {guessed}=NAME"
        hint = f" ({how}; the columns are: {columns.listed(cells)})" if guessed else ""
        raise InputError(f"{error}{hint}") from None


def _figures(result: Fit, new: Points, level: float) -> dict[str, Any]:
    estimates = {
        name: {
            **{key: _figure(getattr(e, key)) for key in ("value", "stderr", "low", "high")},
            "at_bound": name in result.at_bound,
            "identified": e.identified,
        }
        for name, e in result.estimates(level).items()
    }
    return {
        "estimates": estimates,
        "aicc": _figure(compare.aicc(result)),
        "loo_rmse": _figure(result.loo_rmse),
        "residuals": result.residuals.tolist(),
        "peak": _peak(result, level),
        "predictions": _predictions(result, new, level) if len(new.N) else [],
    }


def _peak(result: Fit, level: float) -> dict[str, float | None] | None:
    """Load and height of the highest throughput, with the interval of its load."""
    peak = result.peak()
    if not peak:
        return None
    low = high = np.nan
    with suppress(ValueError):  # of several peaks, or one of which algebra finds nothing
        low, high = result.interval("N_opt", level)
    return {"N": peak[0], "X": peak[1], "low": _figure(low), "high": _figure(high)}


def _predictions(result: Fit, new: Points, level: float) -> list[dict[str, Any]]:
    rows = result.predict(new.N, level, new.w).assign(observed=new.X).to_dict("records")
    return [{key: _figure(value) for key, value in row.items()} for row in rows]


def cautions(fits: dict[str, Fit], chosen: str | None) -> list[str]:
    """What speaks against the weights, or against the law that was chosen."""
    return _speaks_for_relative(fits[chosen]) + _contradicted(fits, chosen) if chosen else []


def _speaks_for_relative(result: Fit) -> list[str]:
    """A warning, if the same percentage everywhere explains the residuals clearly better."""
    if result.weights != "absolute" or result.rss <= rounding(result.X, result.w, log=False):
        return []
    relative = fit(result.law, {"N": result.N, "X": result.X}, "relative")
    gain = compare.log_likelihood(relative) - compare.log_likelihood(result)
    if not gain > 2:
        return []
    return [
        "the residuals speak for relative weights (the same percentage everywhere): log-likelihood "
        f"higher by {gain:.1f}; try --weights relative, in a report -p weights=relative"
    ]


def _contradicted(fits: dict[str, Fit], chosen: str) -> list[str]:
    """A warning, if another law predicts left-out points much better than the chosen one."""
    scores = {name: f.loo_rmse for name, f in fits.items() if np.isfinite(f.loo_rmse)}
    other = min(scores, key=scores.__getitem__, default=chosen)
    noise = 1e-9 * fits[chosen].X.mean()
    if chosen not in scores or scores[chosen] <= 2 * scores[other] + noise:
        return []
    ratio = scores[chosen] / max(scores[other], noise)
    return [f"{other} predicts points that are left out {ratio:.1f} times better than {chosen}"]


def _figure(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _span(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return ""
    ends = ["..." if end is None else f"{end:.5g}" for end in (low, high)]
    return f"[{ends[0]}, {ends[1]}]"
