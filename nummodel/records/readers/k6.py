"""k6 0.26 to 1: a summary in JSON, from --summary-export or handleSummary, or on the screen.

Admitted with recordings of one version, 0.57, in both forms of JSON.
"""

import re

from nummodel.records.readers._declared import Run, Tool
from nummodel.records.readers._lines import NOTHING, figure
from nummodel.records.readers._reading import Column

#: A metric in a document, and on the screen with its figures.
VALUE = re.compile(r"metrics\.(\w+)\.(?:values\.)?([\w().]+): ([0-9.eE+-]+)$")
METRIC = re.compile(r"(?:[✓✗] )?(\w+)\.{2,}: +(\S.*)")
FIGURE = re.compile(r"([\w().]+)=([0-9.hmsnuµμ]+)")
COUNT = re.compile(r"([0-9]+)(?: +([0-9.]+)/s)?(?: |$)")
USED = {
    "http_req_duration",
    "http_req_failed",
    "iteration_duration",
    "iterations",
    "vus",
    "vus_max",
}
#: Columns by the names of k6.
TIMES = {"avg": "R", "min": "R_min", "med": "R_p50", "max": "R_max"}


def _metrics(run: Run) -> dict[str, dict[str, float]]:
    """The figures of each metric; times are in seconds."""
    metrics: dict[str, dict[str, float]] = {}
    for line, text in run.lines:
        figures: list[tuple[str, str, str]] = []
        if found := VALUE.match(text):
            name, cells = found[1], [(found[2], found[3])]
            figures = [(n, cell, "ms" if name.endswith("duration") else "") for n, cell in cells]
        elif found := METRIC.match(text[:1000]):
            name, rest = found[1], found[2]
            figures = [(n, c, "time" if c[-1] == "s" else "") for n, c in FIGURE.findall(rest)]
            if percent := re.match(r"([0-9.]+)%", rest):
                figures.append(("percent", percent[1], ""))
            elif count := COUNT.match(rest):
                figures += [("count", count[1], ""), ("rate", count[2] or "-", "")]
        for what, cell, unit in figures:
            value = None if cell in NOTHING else figure(cell, unit, line, f"{name} {what}")
            if isinstance(value, float):
                metrics.setdefault(name, {})[what] = value
    return metrics


def finish(run: Run) -> None:
    """The row of a run. N is the highest number of virtual users, if all were at work."""
    found = _metrics(run)
    work = "http_reqs" if "http_reqs" in found else "iterations"
    times = found.get("http_req_duration" if work == "http_reqs" else "iteration_duration", {})
    users = found.get("vus", found.get("vus_max", {}))
    failed = found.get("http_req_failed", {})
    share = failed.get("rate", failed.get("value", failed.get("percent", 0.0) / 100))
    row: dict[str, float | None] = {
        "N": users.get("max", users.get("value", users.get("count"))),
        "X": found.get(work, {}).get("rate"),
        **{name: times.get(k6) for k6, name in TIMES.items()},
        "events": found.get(work, {}).get("count"),
        "iterations": found.get("iterations", {}).get("rate"),
        "failed": share if failed else None,
    }
    late = {f"R_p{n[2:-1]}": v for n, v in times.items() if re.fullmatch(r"p\([0-9.]+\)", n)}
    run.row = {n: v for n, v in (row | late).items() if v is not None}
    if not run.row.get("N"):
        run.row.pop("N", None)
    if share:
        run.failed = share * (run.row.get("events") or 0.0)
        run.errors.append(f"{100 * share:.3g} % of the requests failed")
    _load(run, found, work)
    if rest := sorted(set(found) - {work, *USED}):
        run.notes.append(f"left out: {', '.join(rest)}")


def _load(run: Run, found: dict[str, dict[str, float]], work: str) -> None:
    """What is said of the load, which is none for a rate that was given and for a ramp."""
    row, users = run.row, found.get("vus", {})
    if work == "iterations":
        run.notes.append("X counts runs of the script, as there are no HTTP requests")
    run.open |= bool(found.get("dropped_iterations", {}).get("count"))
    per_user = found.get("iteration_duration", {}).get("avg")
    busy = row["iterations"] * per_user if per_user and "iterations" in row else None
    idle = busy is not None and "N" in row and abs(busy / row["N"] - 1) > 0.1
    ramp = "N" in row and users.get("min", row["N"]) < row["N"]
    if ramp and not run.open:
        fewest = f"between {users['min']:g} and {row['N']:g}"
        run.notes.append(f"the number of users was {fewest}: a ramp is no measurement at one load")
    if idle:
        run.notes.append(f"{busy:.3g} users were at work on average, and N is {row['N']:g}")
    if idle and ramp and not run.open:
        row["clients"] = row.pop("N")


K6 = Tool(
    begins=(r"execution: local", r"scenarios: \(", r"(?:[✓✗] )?(?:checks|data_received)\.+: "),
    known=r"(?:[✓✗] )?(?:http_reqs|iterations)\.+: +[0-9]",
    keys=('"metrics"',),
    fields=(),
    rated=r"\* .{1,80}iterations/s",
    finish=finish,
    needs={"X": "rate of http_reqs or iterations"},
    own={
        "R_p50": Column("s", "median of the response time"),
        "iterations": Column("1/s", "runs of the script by a user"),
        "failed": Column("-", "share of requests that failed"),
    },
    work="iterations",
    clients="users",
    agree=float("inf"),
    failures="",
)
parse = K6.parse


def recognises(text: str) -> bool:
    """Whether a text is JSON with the metrics of k6, or its screen."""
    named = re.search(r'"(http_reqs|iterations|vus)"', text) or text.lstrip()[:1] != "{"
    return bool(named) and K6.recognises(text)
