"""k6 0.26 to 1: a summary in JSON, from --summary-export or handleSummary.

Admitted with recordings of one version, 0.57, in both forms.
"""

import json
import re
from typing import Any

from nummodel.records.readers._reading import Column, Malformed, Reading, column

USED = {
    "http_req_duration",
    "http_req_failed",
    "iteration_duration",
    "iterations",
    "vus",
    "vus_max",
}
OWN = {
    "R_min": Column("s", "shortest response time"),
    "R_max": Column("s", "longest response time"),
    "R_p50": Column("s", "median of the response time"),
    "iterations": Column("1/s", "runs of the script by a user"),
    "failed": Column("-", "share of requests that failed"),
    "events": Column("-", "requests of the run"),
}


def recognises(text: str) -> bool:
    """Whether a text is JSON with the metrics of k6."""
    begins = text.lstrip()[:1] == "{" and '"metrics"' in text
    return begins and re.search(r'"(http_reqs|iterations|vus)"', text) is not None


def parse(text: str) -> Reading:
    """One row. N is the highest number of virtual users. Raises Malformed without a throughput."""
    import pandas as pd

    try:
        metrics = json.loads(text)["metrics"]
        found = {name: _figures(metric) for name, metric in metrics.items()}
    except json.JSONDecodeError as error:
        raise Malformed(error.lineno, f"no JSON: {error.msg}, expected a summary of k6") from None
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise Malformed(0, "expected an object with metrics, as k6 writes it") from None
    work = "http_reqs" if "http_reqs" in found else "iterations"
    times = found.get("http_req_duration" if work == "http_reqs" else "iteration_duration", {})
    users = found.get("vus", found.get("vus_max", {}))
    row = {
        "N": users.get("max", users.get("value")),
        "X": found.get(work, {}).get("rate"),
        "R": _ms(times.get("avg")),
        "R_min": _ms(times.get("min")),
        "R_p50": _ms(times.get("med")),
        "R_max": _ms(times.get("max")),
        "events": found.get(work, {}).get("count"),
        "iterations": found.get("iterations", {}).get("rate"),
        "failed": _failed(found.get("http_req_failed", {})),
    }
    late = {f"R_p{n[2:-1]}": _ms(v) for n, v in times.items() if re.fullmatch(r"p\([0-9.]+\)", n)}
    known: dict[str, float] = {n: v for n, v in (row | late).items() if v is not None}
    if not known.get("N"):
        raise Malformed(0, "no vus, or none of them, expected a run of some seconds with users")
    if "X" not in known:
        raise Malformed(0, "no rate of http_reqs or iterations, expected a summary of k6")
    columns = {n: OWN[n] if n in OWN else column(n) for n in known}
    return Reading(pd.DataFrame([known]), columns, tuple(_odd(known, found, work)))


def _figures(metric: dict[str, Any]) -> dict[str, float]:
    """The figures of a metric: its `values`, or itself in an older summary."""
    values = metric.get("values", metric)
    return {n: float(v) for n, v in values.items() if isinstance(v, int | float)}


def _ms(value: float | None) -> float | None:
    """Milliseconds in seconds, with the digits that are printed."""
    return (
        None if value is None else float(f"{value!r}e-3") if "e" not in repr(value) else value / 1e3
    )


def _failed(metric: dict[str, float]) -> float | None:
    return metric.get("rate", metric.get("value"))


def _odd(row: dict[str, float], found: dict[str, dict[str, float]], work: str) -> list[str]:
    """What is left out, and what does not agree."""
    told = []
    if work == "iterations":
        told.append("X counts runs of the script, as there are no HTTP requests")
    users = found.get("vus", {})
    if found.get("dropped_iterations", {}).get("count"):
        told.append("iterations came at a rate that was given, so N is no load")
    elif users.get("min", row["N"]) < row["N"]:
        fewest = f"between {users['min']:g} and {row['N']:g}"
        told.append(f"the number of users was {fewest}: a ramp is no measurement at one load")
    if row.get("failed"):
        told.append(f"{100 * row['failed']:.3g} % of the requests failed")
    per_user = found.get("iteration_duration", {}).get("avg")
    if per_user and "iterations" in row:
        busy = row["iterations"] * per_user / 1e3
        if abs(busy / row["N"] - 1) > 0.1:
            told.append(f"{busy:.3g} users were at work on average, and N is {row['N']:g}")
    rest = sorted(set(found) - {work, *USED})
    return [*told, f"left out: {', '.join(rest)}"] if rest else told
