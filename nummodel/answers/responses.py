"""What `nummodel compare` says of two tables: of throughputs as `change` has it, and of response
times, where both tables have them.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from nummodel.answers import change
from nummodel.errors import InputError
from nummodel.nomenclature import show
from nummodel.records import columns
from nummodel.records.columns import Points

#: What is said of the loads at which a ratio is shown to be lower or higher than 1, or neither.
SHOWN = {
    "lower": "The mean response time is shorter",
    "higher": "The mean response time is longer",
    None: "No difference of response times is shown",
}


def document(
    before: str | Path,
    after: str | Path,
    x: str | None,
    y: str | None,
    weights: str,
    level: float,
    use: str | Iterable[str] = (),
    only: str | Iterable[str] = (),
) -> dict[str, Any]:
    """Read and compare two tables: what the command line prints as JSON, with `response` if both
    have mean response times. Raises InputError as `change.compared` does, for tables whose
    throughputs have different names, and for an option that cannot be used.
    """
    if not 0 < level < 1:
        raise InputError(f"--level {level}: expected a number between 0 and 1")
    how: dict[str, Any] = {"system": False, "use": use, "only": only}
    tables = [columns.read(path, x, y, weights, **how) for path in (before, after)]
    names = [points.y for points in tables]
    if names[0].lower() != names[1].lower():
        raise InputError(
            f"{after}: the throughput is {names[1]}, and {names[0]} in {before}, expected one "
            "column in both; if both are the same work in the same unit, give them one name"
        )
    result = change.compared(tables, weights, level)
    some = [points for points in tables if "R" in points.others]
    if len(some) == 1:
        without = after if "R" in tables[0].others else before
        told = f"{without} has no mean response time that is known: name it by --use 'R[ms]=...'"
        result["warnings"].append(told)
    elif some and tables[0].seconds != tables[1].seconds:
        result["warnings"].append(
            "response times are not compared, as their unit is known in one file only: call the "
            "column R_ms or R_s in both"
        )
    elif some and all((points.others["R"] > 0).all() for points in some):
        result["response"] = found = compared(tables, level)
        result["answer"] += f"\n{_answer(found, result['x'], level)}"
    elif some:
        result["warnings"].append("response times are not compared, as one is 0")
    return result


def compared(tables: list[Points], level: float) -> dict[str, Any]:
    """The mean response times before and after, at each load that both tables have and at all of
    them together. Repeated loads tell how far these times may be off. Where no load was
    repeated, the scatter of the ratios around a straight line over the logarithm of the load tells.
    """
    times = [points._replace(X=points.others["R"], weights="log") for points in tables]
    loads = np.intersect1d(times[0].N, times[1].N)
    first, then = (change.repeats(points, loads, log=True) for points in times)
    before, after = np.exp(first.height), np.exp(then.height)
    rows = np.full((len(loads) + 1, 3), np.nan)
    if repeated := first.dof + then.dof >= change.REPEATS:
        rows = change.ratios(first, then, True, level)
    if not repeated and len(loads) >= change.LOADS:
        first, then = change.paired([first, then], loads)
        rows = change.ratios(first, then, True, level)
    if rows[-1, 2] - rows[-1, 1] < 1e-6:
        rows[:, 1:] = np.nan  # no scatter at all: rounding hides it
    keys = "N", "before", "after", "measured", "ratio", "low", "high"
    figures = np.column_stack([loads, before, after, after / before, rows[:-1]])
    return {
        "unit": "s" if tables[0].seconds else "",
        "loads": [change.checked(dict(zip(keys, row, strict=True))) for row in figures],
        "together": change.checked(dict(zip(keys[4:], rows[-1], strict=True))),
    }


def _answer(found: dict[str, Any], x: str, level: float) -> str:
    """By how much the response time changed, and at which loads, in sentences."""
    rows, together = found["loads"], found["together"]
    last = rows[-1]
    ends = " to ".join(show(last[key], found["unit"]) for key in ("before", "after"))
    went = f"At {x} = {show(last['N'])}, the mean response time went from {ends}"
    if together["low"] is None:
        return f"{went}; whether this is a change cannot be said, as errors are not known."
    sentences = []
    at = {kind: [show(r["N"]) for r in rows if r["shown"] == kind] for kind in SHOWN}
    for kind, said in SHOWN.items():
        if at[kind]:
            sentences.append(f"{said} at {x} = {', '.join(at[kind])}.")
    spans = [
        "{:+.3g} % ({:.15g} % interval: {:+.3g} to {:+.3g} %)".format(
            100 * (row["ratio"] - 1),
            100 * level,
            100 * (row["low"] - 1),
            100 * (row["high"] - 1),
        )
        for row in (last, together)
    ]
    sentences.append(f"{went}, by {spans[0]}.")
    if len(rows) > 1:
        over = f"Over the {len(rows)} loads that both files have"
        sentences.append(f"{over}, the mean response time changes by {spans[1]}.")
    return " ".join(sentences)
