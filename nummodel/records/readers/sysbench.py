"""sysbench 0.4 to 1.1: the summary of each run, and its intermediate reports.

Admitted with recordings of one version, 1.0.20; the others are read as they are documented.
"""

import re
from typing import Any

from nummodel.records.readers._lines import parts, scaled
from nummodel.records.readers._reading import Column, Malformed, Reading, column

BEGINS = re.compile(r"sysbench [0-9]")
#: An intermediate report of a database test; that of version 0.5 calls its columns otherwise.
REPORT = re.compile(
    r"\[ *([0-9.]+)s ?\] *(?:thds|threads): ([0-9]+),? (?:tps|eps): ([0-9.]+),?(?: qps: ([0-9.]+))?"
)
LATE = re.compile(r"lat \(ms, ?([0-9.]+)%\): ([0-9.]+)|response time: ([0-9.]+)ms \(([0-9.]+)%\)")
#: Lines of the summary: what they tell, and the power of ten of its unit.
SUMMARY = (
    ("N", 0, re.compile(r"Number of threads: (\S+)")),
    ("X", 0, re.compile(r" *transactions: .*\(([^ ()]+) per sec\.\)")),
    ("X", 0, re.compile(r" *events per second: *(\S+)")),
    ("X", 0, re.compile(r" *events/s \(eps\): *(\S+)")),
    ("X", 0, re.compile(r" *([0-9.]+) +Requests/sec executed")),
    (
        "X",
        0,
        re.compile(r"(?:Total operations|Operations performed): .*\(([^ ()]+) (?:per s|ops/s)"),
    ),
    ("queries", 0, re.compile(r" *(?:queries|read/write requests): .*\(([^ ()]+) per sec\.\)")),
    ("errors", 0, re.compile(r" *ignored errors: .*\(([^ ()]+) per sec\.\)")),
    ("reads", 0, re.compile(r" *(?:reads/s:|read: IOPS=) *([0-9.]+)")),
    ("writes", 0, re.compile(r" *(?:writes/s:|write: IOPS=) *([0-9.]+)")),
    ("time", 0, re.compile(r" *(?:total time|time elapsed): *([0-9.]+)s")),
    ("events", 0, re.compile(r" *total number of events: *(\S+)")),
    ("R_min", -3, re.compile(r" *min: *([0-9.]+)(?:ms)?$")),
    ("R", -3, re.compile(r" *avg: *([0-9.]+)(?:ms)?$")),
    ("R_max", -3, re.compile(r" *max: *([0-9.]+)(?:ms)?$")),
)
PERCENTILE = re.compile(r" *(?:approx\. *)?([0-9.]+)(?:th)? percentile: *([0-9.]+)(?:ms)?$")
FAILED = re.compile(r"(FATAL|ALERT): (.*)")
OWN = {
    "R_min": Column("s", "shortest response time"),
    "R_max": Column("s", "longest response time"),
    "queries": Column("1/s", "queries or requests of a database"),
    "errors": Column("1/s", "errors that were ignored"),
    "reads": Column("1/s", "reads of files"),
    "writes": Column("1/s", "writes of files"),
    "time": Column("s", "duration of the run"),
    "events": Column("-", "transactions or operations of the run"),
}


def recognises(text: str) -> bool:
    """Whether a text has the head of a run."""
    return re.search(r"^sysbench [0-9]+\.[0-9]", text[:20000], re.MULTILINE) is not None


def parse(text: str) -> Reading:
    """A row for each run in the text. N = X R holds for a sysbench without a rate: the sentences
    say where it does not. Raises Malformed for a run without its summary.
    """
    import pandas as pd

    rows, samples, told = [], [], []
    for run, lines in enumerate(_runs(text), 1):
        row, reports, more = _run(lines)
        rows.append(row)
        samples += [{"run": run, **report} for report in reports]
        told += [f"run {run}: {what}" for what in more]
    own = OWN | {"run": Column("-", "number of the run in the file")}
    used = [*dict.fromkeys(n for row in [*rows, *samples[:1]] for n in row)]
    columns = {n: own[n] if n in own else column(n) for n in used}
    table = pd.DataFrame(rows)
    return Reading(table, columns, tuple(told), pd.DataFrame(samples) if samples else None)


def _runs(text: str) -> list[list[tuple[int, str]]]:
    """The parts of a text that are runs: to prepare a test and to clean up after it is none."""
    every = [*parts(text, BEGINS)]
    runs = [p for p in every if any(line.startswith(("Number of", "FATAL")) for _, line in p)]
    return runs or every


def _run(lines: list[tuple[int, str]]) -> tuple[dict[str, Any], list[dict], list[str]]:
    """The summary of a run, its reports, and what is odd."""
    row: dict[str, Any] = {}
    reports, told, histogram, odd = [], [], 0, 0
    for line, text in lines:
        if text.startswith("["):
            if report := _report(line, text):
                reports.append(report)
            odd += not report
            continue
        if failed := FAILED.match(text):
            told.append(f"line {line} says {failed[1]}: {failed[2][:200]}")
        histogram += "|" in text
        if text.startswith(("Target transaction rate", "Target rate")):
            told.append("requests came at a rate that was given, so N is no load")
        if found := PERCENTILE.match(text):
            row[f"R_p{found[1]}"] = scaled(found[2], -3, line, "percentile")
        for name, power, pattern in SUMMARY:
            if found := pattern.match(text):  # the last, as checkpoints come before the end
                row[name] = scaled(found[1], power, line, name)
                break
    first, last = lines[0][0], lines[-1][0]
    if missing := [n for n in ("N", "time", "events") if n not in row]:
        why = told[-1] if told else "the output was cut, or the run failed"
        names = {"N": "number of threads", "time": "total time", "events": "number of events"}
        raise Malformed(last, f"no {names[missing[0]]} of the run from line {first} on: {why}")
    if row["N"] < 1:
        raise Malformed(first, "the run has no threads, expected one at least")
    if odd:
        told.append("reports that have no throughput are left out")
    if histogram:
        told.append("the histogram of response times is left out")
    return _completed(row, told), reports, told


def _completed(row: dict[str, Any], told: list[str]) -> dict[str, Any]:
    """With the throughput of a test that prints none; and what does not agree."""
    if "X" not in row and "reads" in row:
        row["X"] = round(row["reads"] + row.get("writes", 0.0), 6)
        told.append("X counts reads and writes, and no calls of fsync")
    if "X" not in row and row["time"] > 0:
        row["X"] = row["events"] / row["time"]
        told.append("X is events over total time: this test prints no rate")
    if row.get("errors"):
        told.append(f"{row['errors']:g} errors a second were ignored")
    if row.get("R") and "X" in row:
        busy = row["X"] * row["R"]
        if abs(busy / row["N"] - 1) > 0.05 and not any("rate that was given" in t for t in told):
            told.append(
                f"X R = {busy:.3g} requests are under way, and there are {row['N']:g} threads"
            )
    return {n: row[n] for n in ("N", "X", "R") if n in row} | row


def _report(line: int, text: str) -> dict[str, float]:
    """The figures of an intermediate report; none of a test of files."""
    found = REPORT.match(text)
    if not found:
        return {}
    figures = zip(("t", "N", "X", "queries"), found.groups(), strict=True)
    row = {n: scaled(v, 0, line, n) for n, v in figures if v is not None}
    if late := LATE.search(text[:1000]):
        percent, R = (late[1], late[2]) if late[1] else (late[4], late[3])
        row[f"R_p{percent}"] = scaled(R, -3, line, "latency")
    return row
