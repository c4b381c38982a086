"""From a table with a load and a throughput column to scaling laws, fitted and compared."""

import operator
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nummodel import compare, data, scaling
from nummodel.errors import InputError
from nummodel.fit import Fit, fit
from nummodel.measured import KINDS
from nummodel.readers import table
from nummodel.remarks import EXTRAPOLATION, remarks

COMPARISONS = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


class Points(NamedTuple):
    """Measurements from a file: loads, throughputs, weights of their own if any, column names."""

    N: np.ndarray
    X: np.ndarray
    w: np.ndarray | None
    x: str
    y: str

    def where(self, keep: np.ndarray) -> "Points":
        """Those for which `keep` is true."""
        w = None if self.w is None else self.w[keep]
        return self._replace(N=self.N[keep], X=self.X[keep], w=w)


def read(
    path: str | Path, x: str | None = None, y: str | None = None, weights: str = "absolute"
) -> Points:
    """Two columns of a CSV file, or of a published table by its name, in the units printed there.

    Left out, `x` is N or the first column and `y` is X or the one after `x`. `weights` is one of
    `measured.KINDS` or a third column. Raises InputError for whatever cannot be used.
    """
    path = data.path(path)
    cells = table.read(path)
    load, result = _columns(cells, x, y, weights, path)
    if weights not in KINDS and weights not in cells:
        expected = f"{', '.join(KINDS)}, or a column of: {', '.join(cells)}"
        raise InputError(f"{path}: weights {weights!r}, expected {expected}")
    N = _numbers(cells, load, path, "" if x else "x")
    X = _numbers(cells, result, path, "" if y else "y")
    own = None if weights in KINDS else table.numbers(cells, weights, path, positive=True)
    return Points(N, X, own, load, result)


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
    warnings = [f"{name}: {remark}" for name in fits for remark in remarks(fits[name], level)]
    warnings += cautions(fits, chosen)
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
    match = re.fullmatch(rf"\s*(?:N|{re.escape(x)})\s*(<=|>=|==|<|>)\s*({number})\s*", expression)
    if not match:
        raise InputError(f"--holdout {expression!r}: no comparison, expected one such as 'N>24'")
    return COMPARISONS[match[1]](N, float(match[2]))


def text(result: dict[str, Any], level: float) -> str:
    """A study as tables for people."""
    lines = [
        f"{result['y']} against {result['x']}: {result['n']} points, {result['weights']} weights",
        f"in brackets: {100 * level:g} % intervals",
    ]
    for name, law in result["laws"].items():
        lines += ["", name]
        if "refused" in law:
            lines.append(f"  refused: {law['refused']}")
            continue
        for q, e in law["estimates"].items():
            error = f"  {_span(e['low'], e['high'])}" + "  on its bound" * e["at_bound"]
            lines.append(f"  {q:<8}{e['value']:>12.5g}{error}")
        if law["peak"]:
            lines.append(f"  peak    {law['peak']['X']:>12.5g}  at {law['peak']['N']:.4g}")
        if law["aicc"] is not None:
            lines.append(f"  AICc    {law['aicc']:>12.1f}")
            lines.append(f"  leave-one-out error {law['loo_rmse']:.4g}")
        for p in law["predictions"]:
            low, high = (-np.inf if p["low"] is None else p["low"], p["high"] or np.inf)
            verdict = "  inside" if low <= p["observed"] <= high else "  outside"
            verdict = "" if p["low"] is None and p["high"] is None else verdict
            lines.append(
                f"  at {p['N']:<6g}{p['value']:>11.5g}  {_span(p['low'], p['high'])}"
                f"  observed {p['observed']:.5g}{verdict}"
            )
    lines += ["", f"chosen: {result['chosen'] or 'none'} ({result['why']})"]
    return "\n".join(lines)


def _columns(
    cells: table.Cells, x: str | None, y: str | None, weights: str, path: Path
) -> tuple[str, str]:
    """Load and throughput column, by name, by custom or by position."""
    names = [c for c in cells if c != weights or c in (x, y)]
    if len(names) < 2 or (x is not None and x == y):
        raise InputError(f"{path}: only {x or next(iter(cells))}, expected a column for X as well")
    free = [c for c in names if c not in (x, y)]
    x = x or ("N" if "N" in free else free[0])
    if y:
        return x, y
    others = [c for c in names if c != x]
    after = others[names.index(x) :] if x in names else others
    if not after and "X" not in others:
        found = ", ".join(cells)
        raise InputError(f"{path}: no column after {x!r}, expected y; the columns are: {found}")
    return x, "X" if "X" in others else after[0]


def _numbers(cells: table.Cells, column: str, path: Path, guessed: str) -> np.ndarray:
    """A column of positive numbers; of one that was guessed, how to name another."""
    try:
        return table.numbers(cells, column, path, positive=True)
    except InputError as error:
        how = f"no {guessed} was given: --{guessed} NAME, in a report -p {guessed}=NAME"
        hint = f" ({how}; the columns are: {', '.join(cells)})" if guessed else ""
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
    peak = result.peak()
    return {
        "estimates": estimates,
        "aicc": _figure(compare.aicc(result)),
        "loo_rmse": _figure(result.loo_rmse),
        "residuals": result.residuals.tolist(),
        "peak": {"N": peak[0], "X": peak[1]} if peak else None,
        "predictions": _predictions(result, new, level) if len(new.N) else [],
    }


def _predictions(result: Fit, new: Points, level: float) -> list[dict[str, Any]]:
    rows = result.predict(new.N, level, new.w).assign(observed=new.X).to_dict("records")
    return [{key: _figure(value) for key, value in row.items()} for row in rows]


def cautions(fits: dict[str, Fit], chosen: str | None) -> list[str]:
    """What speaks against the weights, or against the law that was chosen."""
    return _speaks_for_relative(fits[chosen]) + _contradicted(fits, chosen) if chosen else []


def _speaks_for_relative(result: Fit) -> list[str]:
    """A warning, if the same percentage everywhere explains the residuals clearly better."""
    if result.weights != "absolute":
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
