"""sysbench 0.4 to 1.1: the summary of each run, and its intermediate reports.

Admitted with recordings of one version, 1.0.20; the others are read as they are documented.
"""

import re

from nummodel.records.readers._declared import Field, Run, Tool
from nummodel.records.readers._lines import scaled
from nummodel.records.readers._reading import Column

#: An intermediate report of a database test; that of version 0.5 calls its columns otherwise.
REPORT = re.compile(
    r"\[ *([0-9.]+)s ?\] *(?:thds|threads): ([0-9]+),? (?:tps|eps): ([0-9.]+),?(?: qps: ([0-9.]+))?"
)
LATE = re.compile(r"lat \(ms, ?([0-9.]+)%\): ([0-9.]+)|response time: ([0-9.]+)ms \(([0-9.]+)%\)")


def samples(line: int, text: str) -> list[dict[str, float]] | None:
    """The intermediate reports in a line: several where an editor joined the lines, none of a test
    of files.
    """
    if not text.startswith("["):
        return None
    reports = []
    for one in re.split(r"(?=\[ *[0-9.]+s ?\])", text):
        if not (found := REPORT.match(one)):
            continue
        figures = zip(("t", "N", "X", "queries"), found.groups(), strict=True)
        row = {n: scaled(v, 0, line, n) for n, v in figures if v is not None}
        if late := LATE.search(one[:1000]):
            percent, R = (late[1], late[2]) if late[1] else (late[4], late[3])
            row[f"R_p{percent}"] = scaled(R, -3, line, "latency")
        reports.append(row)
    return reports


def finish(run: Run) -> None:
    """The throughput of a test of files, and errors that were ignored."""
    row = run.row
    if "X" not in row and "reads" in row:
        row["X"] = round(row["reads"] + row.get("writes", 0.0), 6)
        run.notes.append("X counts reads and writes, and no calls of fsync")
    if row.get("errors"):
        run.errors.append(f"{row['errors']:g} errors a second were ignored")


SYSBENCH = Tool(
    begins=(r"sysbench [0-9]+\.[0-9]", r"sysbench [0-9]"),
    part=r"Number of|FATAL",  # to prepare a test and to clean up after it is no run
    fields=(
        Field("N", r"Number of threads: (\S+)"),
        Field("X", r"transactions: [^(]*\(([^ ()]+) per sec\.\)"),
        Field("X", r"events per second: *(\S+)"),
        Field("X", r"events/s \(eps\): *(\S+)"),
        Field("X", r"([0-9.]+) +Requests/sec executed"),
        Field("X", r"(?:Total operations|Operations performed): [^(]*\(([^ ()]+) (?:per s|ops/s)"),
        Field("queries", r"(?:queries|read/write requests): [^(]*\(([^ ()]+) per sec\.\)"),
        Field("errors", r"ignored errors: [^(]*\(([^ ()]+) per sec\.\)"),
        Field("reads", r"(?:reads/s:|read: IOPS=) *([0-9.]+)"),
        Field("writes", r"(?:writes/s:|write: IOPS=) *([0-9.]+)"),
        Field("time", r"(?:total time|time elapsed): *([0-9.]+)s"),
        Field("events", r"total number of events: *(\S+)"),
        Field("R_min:ms", r"min: *([0-9.]+)(?:ms)?$"),
        Field("R:ms", r"avg: *([0-9.]+)(?:ms)?$"),
        Field("R_max:ms", r"max: *([0-9.]+)(?:ms)?$"),
        Field("R_p{}:ms", r"(?:approx\. *)?([0-9.]+)(?:th)? percentile: *([0-9.]+)(?:ms)?$"),
    ),
    needs={"N": "number of threads", "time": "total time", "events": "number of events"},
    errors=r"(?:FATAL|ALERT): ",
    rated=r"Target (?:transaction )?rate",
    notes=((r"[^|]*\|", "the histogram of response times is left out"),),
    own={
        "queries": Column("1/s", "queries or requests of a database"),
        "errors": Column("1/s", "errors that were ignored"),
        "reads": Column("1/s", "reads of files"),
        "writes": Column("1/s", "writes of files"),
    },
    samples=samples,
    finish=finish,
    last=True,  # as checkpoints come before the end
    clients="threads",
    agree=0.05,
)
recognises, parse = SYSBENCH.recognises, SYSBENCH.parse
