"""pgbench 9 to 17: the summary of each run, with its progress (-P).

Admitted with recordings of one version, 15; the others are read as they are documented.
"""

import re

from nummodel.records.readers._declared import Field, Run, Tool
from nummodel.records.readers._lines import scaled
from nummodel.records.readers._reading import Column

PROGRESS = re.compile(
    r"progress: ([0-9.]+) s, ([0-9.]+) tps, lat (?:([0-9.]+)|-?nan) ms stddev (?:([0-9.]+)|-?nan)"
    r"(?:, ([0-9]+) failed)?"
)


def samples(line: int, text: str) -> list[dict[str, float]] | None:
    """A report of the progress."""
    if not (found := PROGRESS.match(text)):
        return None
    powers = zip(("t", "X", "R", "R_sd", "failed"), (0, 0, -3, -3, 0), strict=True)
    cells = zip(powers, found.groups(), strict=True)
    report = {n: scaled(v, p, line, n) for (n, p), v in cells if v is not None}
    idle = report["X"] == 0  # then a latency of 0.000 is printed, and is none
    return [{n: v for n, v in report.items() if not (idle and n in ("R", "R_sd"))}]


def finish(run: Run) -> None:
    """Which of the throughputs counts, and what did not come through."""
    if "with" in run.row:
        run.row["X"] = run.row.pop("with")
        run.notes.append("each transaction made a connection of its own, which X and R count")
    counts = {n: run.row[n] for n in ("failed", "skipped") if run.row.get(n)}
    run.errors += [f"{count:g} transactions {n}" for n, count in counts.items()]


PGBENCH = Tool(
    begins=(r"pgbench \([0-9]", r"starting vacuum\.\.\.", r"transaction type: "),
    known=r"pgbench \([0-9]|transaction type: |progress: [0-9.]+ s, [0-9.]+ tps",
    fields=(
        Field("N", r"number of clients: (\S+)"),
        Field("X", r"tps = (\S+) \((?:without initial|excluding)"),
        Field("with", r"tps = (\S+) \(including reconnection"),
        Field("R:ms", r"latency average[:=]? =? ?([0-9.]+) ms"),
        Field("R_sd:ms", r"latency stddev[:=]? =? ?([0-9.]+) ms"),
        Field("events", r"number of transactions actually processed: ([0-9]+)"),
        Field("failed", r"number of failed transactions: ([0-9]+)"),
        Field("skipped", r"number of transactions skipped: ([0-9]+)"),
        Field("lag:ms", r"rate limit schedule lag: avg ([0-9.]+) "),
        Field("series:text", r"transaction type: (.+)"),
        Field("mode:text", r"query mode: (\S+)"),
    ),
    ends=r"statement latencies|SQL script 1:",
    needs={"N": "number of clients", "X": "tps without the time to connect"},
    errors=r"pgbench: error|Run was aborted",
    rated=r"rate limit schedule lag: avg",
    notes=(
        (
            r"statement latencies|SQL script 1:",
            "figures of single statements and scripts are left out",
        ),
    ),
    own={
        "skipped": Column("-", "transactions that were skipped, as they were too late"),
        "lag": Column("s", "mean delay until a transaction of a given rate could start"),
    },
    samples=samples,
    finish=finish,
    work="transactions",
    failures="",
    agree=0.05,
)
recognises, parse = PGBENCH.recognises, PGBENCH.parse
