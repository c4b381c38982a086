"""pgbench 9 to 17: the summary of each run with its progress (-P), and aggregate logs.

Admitted with recordings of one version, 15; the others are read as they are documented.
"""

import re
from itertools import pairwise
from typing import Any

from nummodel.records.readers._lines import parts, scaled
from nummodel.records.readers._reading import Column, Malformed, Reading, column

#: Lines that a run may begin with: its version, or what it does before its first report.
BEGINS = (r"pgbench \([0-9]", r"starting vacuum\.\.\.", r"transaction type: ")
PROGRESS = re.compile(
    r"progress: ([0-9.]+) s, ([0-9.]+) tps, lat (?:([0-9.]+)|-?nan) ms stddev (?:([0-9.]+)|-?nan)"
    r"(?:, ([0-9]+) failed)?"
)
#: Lines of the summary: what they tell, and the power of ten of its unit.
SUMMARY = (
    ("N", 0, re.compile(r"number of clients: (\S+)")),
    ("X", 0, re.compile(r"tps = (\S+) \((?:without initial|excluding)")),
    ("with", 0, re.compile(r"tps = (\S+) \(including reconnection")),
    ("R", -3, re.compile(r"latency average[:=]? =? ?([0-9.]+) ms")),
    ("R_sd", -3, re.compile(r"latency stddev[:=]? =? ?([0-9.]+) ms")),
    ("events", 0, re.compile(r"number of transactions actually processed: ([0-9]+)")),
    ("failed", 0, re.compile(r"number of failed transactions: ([0-9]+)")),
    ("skipped", 0, re.compile(r"number of transactions skipped: ([0-9]+)")),
    ("lag", -3, re.compile(r"rate limit schedule lag: avg ([0-9.]+) ")),
)
OWN = {
    "R_sd": Column("s", "standard deviation of the response times"),
    "events": Column("-", "transactions that were processed"),
    "failed": Column("-", "transactions that failed"),
    "skipped": Column("-", "transactions that were skipped, as they were too late"),
    "lag": Column("s", "mean delay until a transaction of a given rate could start"),
    "run": Column("-", "number of the run in the file"),
}
#: Fields of a line of an aggregate log, up to the last that all versions have.
LOG = ("t", "events", "sum", "squares", "least", "most")


def recognises(text: str) -> bool:
    """Whether a text has a summary of pgbench, or is an aggregate log of whole seconds."""
    if re.search(
        r"^(pgbench \([0-9]|transaction type: |progress: [0-9.]+ s, )", text[:20000], re.M
    ):
        return re.search(r"^(number of clients|progress|pgbench)", text, re.M) is not None
    return _is_log(text)


def _is_log(text: str) -> bool:
    """Whether all of the first lines are whole numbers, a time of day first."""
    first = [line for line in text[:4000].split("\n")[:10] if line.strip()]
    return bool(first) and all(
        re.fullmatch(r"[0-9]{9,11}( [0-9]{1,30}){5,20}", one) for one in first
    )


def parse(text: str) -> Reading:
    """A row for each run, or one for a log. Throughputs are without the time to connect. Raises
    Malformed for a run without its summary.
    """
    import pandas as pd

    if _is_log(text):
        return _log(text)
    rows, samples, told = [], [], []
    runs = [lines for lines in parts(text, _starts(text))]
    for run, lines in enumerate(runs, 1):
        row, reports, more = _run(lines)
        rows.append(row)
        samples += [{"run": run, **report} for report in reports]
        told += [f"run {run}: {what}" for what in more]
    used = dict.fromkeys(n for row in [*rows, *samples[:1]] for n in row)
    columns = {n: OWN[n] if n in OWN else column(n) for n in used}
    series = pd.DataFrame(samples) if samples else None
    return Reading(pd.DataFrame(rows), columns, tuple(told), series)


def _starts(text: str) -> re.Pattern:
    """The first of `BEGINS` that the text has."""
    return re.compile(next((p for p in BEGINS if re.search(f"^{p}", text, re.M)), BEGINS[0]))


def _run(lines: list[tuple[int, str]]) -> tuple[dict[str, Any], list[dict], list[str]]:
    """The summary of a run, its progress, and what is odd."""
    row: dict[str, Any] = {}
    reports, told = [], []
    for line, text in lines:
        if found := PROGRESS.match(text):
            powers = zip(("t", "X", "R", "R_sd", "failed"), (0, 0, -3, -3, 0), strict=True)
            cells = zip(powers, found.groups(), strict=True)
            report = {n: scaled(v, p, line, n) for (n, p), v in cells if v is not None}
            idle = report["X"] == 0  # then a latency of 0.000 is printed, and is none
            reports.append({n: v for n, v in report.items() if not (idle and n in ("R", "R_sd"))})
        elif text.startswith(("pgbench: error", "Run was aborted")):
            told.append(f"line {line} says: {text[:200]}")
        elif text.startswith(("statement latencies", "SQL script 1:")):
            told.append("figures of single statements and scripts are left out")
            break
        else:
            for name, power, pattern in SUMMARY:
                if (found := pattern.match(text)) and name not in row:
                    row[name] = scaled(found[1], power, line, name)
                    break
    if "with" in row:
        row["X"] = row.pop("with")
        told.append("each transaction made a connection of its own, which X and R count")
    if missing := [n for n in ("N", "X") if n not in row]:
        what = {"N": "number of clients", "X": "tps without the time to connect"}[missing[0]]
        why = told[-1] if told else "the output was cut, or the run failed"
        raise Malformed(lines[-1][0], f"no {what} of the run from line {lines[0][0]} on: {why}")
    if row["N"] < 1:
        raise Malformed(lines[0][0], "the run has no clients, expected one at least")
    if "lag" in row:
        told.append("transactions came at a rate that was given, so N is no load")
    elif row.get("R") and abs(row["X"] * row["R"] / row["N"] - 1) > 0.05:
        busy = f"X R = {row['X'] * row['R']:.3g} transactions are under way"
        told.append(f"{busy}, and there are {row['N']:g} clients")
    told += [f"{row[n]:g} transactions {n}" for n in ("failed", "skipped") if row.get(n)]
    return {n: row[n] for n in ("N", "X", "R") if n in row} | row, reports, told


def _log(text: str) -> Reading:
    """Samples of an aggregate log, without the first and the last, whose time may be shorter."""
    import pandas as pd

    rows = []
    for line, cells in enumerate(map(str.split, text.split("\n")), 1):
        if not cells:
            continue
        if len(cells) < len(LOG) or not all(cell.isdigit() and cell.isascii() for cell in cells):
            raise Malformed(line, "expected whole numbers: a time, transactions, sums of latencies")
        rows.append([float(cell[:30]) for cell in cells[: len(LOG)]])
    steps = {b[0] - a[0] for a, b in pairwise(rows)}
    if len(steps) != 1 or min(steps) <= 0:
        raise Malformed(1, "expected intervals of the same length, two at least")
    every = steps.pop()
    inside = rows[1:-1]
    if not any(row[1] for row in inside):
        raise Malformed(1, "no transactions in any whole interval, expected three intervals")
    samples = [
        {
            "t": row[0] - rows[0][0] + every,
            "X": row[1] / every,
            "R": row[2] / row[1] / 1e6 if row[1] else None,
        }
        for row in inside
    ]
    series = pd.DataFrame(samples).astype(float)
    events, times = (sum(row[i] for row in inside) for i in (1, 2))
    whole = {"X": events / every / len(inside), "R": times / events / 1e6}
    told = (
        "a log is that of one thread of pgbench, and does not say how many clients there were",
        "the first and the last interval are left out",
    )
    return Reading(pd.DataFrame([whole]), {n: column(n) for n in series}, told, series)
