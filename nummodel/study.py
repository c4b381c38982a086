"""What `nummodel fit` prints: the laws fitted to a table, as a document of JSON and as text."""

import operator
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from nummodel.errors import InputError
from nummodel.fits import EXTRAPOLATION, Fit, compare, laws, remarks
from nummodel.records import columns
from nummodel.records.columns import Points

COMPARISONS = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


def document(
    path: str | Path,
    x: str | None = None,
    y: str | None = None,
    law: str = "all",
    weights: str = "absolute",
    holdout: str | None = None,
    level: float = 0.95,
) -> dict[str, Any]:
    """Read, fit and compare: what the command line prints as JSON.

    `holdout` is a comparison such as "N>24": the rows for which it is true are not used in the fit,
    but predicted. A number that cannot be computed is None. Raises InputError for a file, a column
    or an option that cannot be used.
    """
    if not 0 < level < 1:
        raise InputError(f"--level {level}: expected a number between 0 and 1")
    points = columns.read(path, x, y, weights)
    is_new = held_out(holdout, points.N, points.x)
    used, new = points.where(~is_new), points.where(is_new)
    if len(used.N) < 2:
        left = f"{len(used.N)} row{'s' * (len(used.N) != 1)}"
        raise InputError(f"--holdout {holdout}: leaves {left}, expected at least two")
    fits, refused = laws.fit_all(used.N, used.X, used.weights, law)
    if not fits:
        reasons = "; ".join(f"{name} with {reason}" for name, reason in refused.items())
        raise InputError(f"{path}: {reasons}")
    figures = {name: _figures(f, new, level) for name, f in fits.items()}
    chosen, why = compare.choose(fits)
    warnings = list(points.warnings)
    for name, f in fits.items():
        of_law = remarks(f, level) + (laws.cautions(fits, chosen) if name == chosen else [])
        of_law += _outside(figures[name]["predictions"], points.x, level)
        warnings += [f"{name}: {sentence}" for sentence in of_law]
    if (new.N > used.N.max()).any():
        warnings.append(EXTRAPOLATION)
    if holdout and not is_new.any():
        warnings.append(f"--holdout {holdout} holds no row out")
    return {
        "n": len(used.N),
        "x": points.x,
        "y": points.y,
        "weights": weights,
        "laws": figures | {name: {"refused": reason} for name, reason in refused.items()},
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
        raise InputError(f"--holdout {expression!r}: no comparison, expected one such as 'N>24'")
    if match[1] not in ("N", x):
        expected = f"N or {x}" if x != "N" else "N"
        raise InputError(f"--holdout {expression!r}: {match[1]!r} is not the load, {expected}")
    return COMPARISONS[match[2]](N, float(match[3]))


def concerning(result: dict[str, Any]) -> list[str]:
    """The warnings for a reader: where a law was chosen, without the warnings of other laws."""
    chosen = result["chosen"]
    others = tuple(f"{name}: " for name in result["laws"] if chosen not in (name, None))
    return [w for w in result["warnings"] if not w.startswith(others)]


def text(result: dict[str, Any], level: float) -> str:
    """The result as tables for people."""
    lines = [
        "{y} against {x}: {n} points, {weights} weights".format(**result),
        f"in brackets: {100 * level:.15g} % intervals",
    ]
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
        for p in law["predictions"]:
            verdict = {None: "", True: "  inside", False: "  outside"}[p["inside"]]
            lines.append(
                f"  at {p['N']:<6g}{p['value']:>11.5g}  {_span(p)}"
                f"  observed {p['observed']:.5g}{verdict}"
            )
    lines += ["", f"chosen: {result['chosen'] or 'none'} ({result['why']})"]
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


def _figures(result: Fit, new: Points, level: float) -> dict[str, Any]:
    """The figures of a law, with predictions of the rows held out."""
    keys = ("value", "stderr", "low", "high")
    estimates = {
        name: {key: _figure(getattr(e, key)) for key in keys}
        | {"at_bound": name in result.at_bound, "identified": e.identified}
        for name, e in result.estimates(level).items()
    }
    predictions = []
    if len(new.N):
        own = None if isinstance(new.weights, str) else new.weights
        table = result.predict(new.N, level, own).assign(observed=new.X)
        predictions = [{k: _figure(v) for k, v in row.items()} for row in table.to_dict("records")]
        predictions = [p | {"inside": _inside(p)} for p in predictions]
    return {
        "estimates": estimates,
        "aicc": _figure(compare.aicc(result)),
        "loo_rmse": _figure(result.loo_rmse),
        "residuals": result.residuals.tolist(),
        "peak": _peak(result, level),
        "predictions": predictions,
    }


def _peak(result: Fit, level: float) -> dict[str, float | None] | None:
    """Load and height of the highest throughput, with the interval of its load."""
    peak = result.peak()
    if not peak:
        return None
    low = high = np.nan
    with suppress(ValueError):  # several peaks, or none that algebra finds
        low, high = result.interval("N_opt", level)
    return {"N": peak[0], "X": peak[1], "low": _figure(low), "high": _figure(high)}


def _figure(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
