"""The JSON document of `nummodel fit`, and whether rows lie in their prediction intervals.

`study` is a `Study`, of the module `study`, which calls this one.
"""

from contextlib import suppress
from typing import Any

import numpy as np

from nummodel.fits import Fit, LackOfFit, closed, laws


def document(study: Any) -> dict[str, Any]:
    """What the command line prints as JSON. A number that cannot be computed is None."""
    figures: dict[str, Any] = {name: _figures(study, name) for name in study.fits}
    return {
        "n": len(study.used.N),
        "x": study.used.x,
        "y": study.used.y,
        "weights": study.weights,
        "laws": figures | {name: {"refused": reason} for name, reason in study.refused.items()},
        "chosen": study.chosen,
        "why": study.choice[1],
        "lack_of_fit": _test(study.decisive),
        "forecast": study.forecast(),
        "target": _target(study),
        "held_out": study.held_out(),
        "limit": study.limit,
        "warnings": [
            *study.remarks,
            *(f"{study.chosen or closed.CLOSED}: {c}" for c in study.cautions),
        ],
    }


def _figures(study: Any, name: str) -> dict[str, Any]:
    """The figures of a law, with predictions of the rows held out."""
    result, keys = study.fits[name], ("value", "stderr", "low", "high")
    estimates = {
        q: {key: figure(getattr(e, key)) for key in keys}
        | {"at_bound": q in result.at_bound, "identified": e.identified}
        for q, e in result.estimates(study.level).items()
    }
    return {
        "estimates": estimates,
        "aicc": figure(laws.aicc(result)),
        "loo_rmse": figure(result.loo_rmse),
        "lack_of_fit": _test(study.lack_of_fit[name]),
        "residuals": result.residuals.tolist(),
        "peak": _peak(result, study.level),
        "predictions": study.predictions(name),
    }


def _target(study: Any) -> dict[str, Any] | None:
    if not study.wanted or not study.target:
        return None
    ends = {end: figure(getattr(study.wanted, end)) for end in ("load", "low", "high")}
    chances = [{"N": N, "chance": p} for N, p in study.wanted.chances.items()]
    return study.target._asdict() | ends | {"said": study.wanted.said, "chances": chances}


def _peak(result: Fit, level: float) -> dict[str, float | None] | None:
    """Load and height of the highest throughput, with the interval of its load."""
    peak = result.peak()
    if not peak:
        return None
    low = high = np.nan
    with suppress(ValueError):  # several peaks, or none that algebra finds
        low, high = result.interval("N_opt", level)
    return {"N": peak[0], "X": peak[1], "low": figure(low), "high": figure(high)}


def _test(test: LackOfFit | None) -> dict[str, Any] | None:
    return test and test._asdict()


def figure(value: float) -> float | None:
    """A number, or None if it is not finite."""
    return float(value) if np.isfinite(value) else None


def inside(prediction: dict[str, Any]) -> bool | None:
    """Whether the measurement lies in its interval, of which an end may not exist; None if there is
    no interval.
    """
    low, high, observed = (prediction[key] for key in ("low", "high", "observed"))
    if low is high is None:
        return None
    return (low is None or low <= observed) and (high is None or observed <= high)


def outside(predictions: list[dict[str, Any]], x: str, level: float) -> list[str]:
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
