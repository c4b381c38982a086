"""memtier_benchmark 1 and 2: the totals of each run."""

import re

from nummodel.records.readers._declared import Field, Run, Tool
from nummodel.records.readers._lines import figure

#: Columns by their headings, but for percentiles.
HEADINGS = {"Ops/sec": "X", "Avg. Latency": "R", "Latency": "R"}


def finish(run: Run) -> None:
    """Connections of all threads, and the last row of totals: the average of several runs."""
    each, threads = run.row.pop("each", None), run.row.pop("threads", None)
    if each and threads:
        run.row["N"] = each * threads
    header: list[str] = []
    for line, text in run.lines:
        cells = re.split(" {2,}", text)
        if text.startswith("Type "):
            header = cells
        for heading, cell in zip(header, cells, strict=False) if cells[0] == "Totals" else ():
            late = re.fullmatch(r"p([0-9.]+) Latency", heading)
            name = f"R_p{late[1]}" if late else HEADINGS.get(heading, "")
            value = figure(cell, "ms" if name != "X" else "", line, heading) if name else None
            run.row |= {name: value} if value is not None else {}


MEMTIER = Tool(
    begins=(r"[0-9]+ +Threads$", r"ALL STATS|AGGREGATED AVERAGE", r"Type +Ops/sec "),
    known=r"Type +Ops/sec +Hits/sec",
    fields=(
        Field("threads", r"([0-9]+) +Threads$"),
        Field("each", r"([0-9]+) +Connections per thread$"),
        Field("time", r"([0-9]+) +Seconds$"),
        Field("events", r"([0-9]+) +Requests in total$"),
    ),
    notes=((r"(BEST|WORST) RUN RESULTS", "the average of several runs is read"),),
    finish=finish,
    needs={"X": "row of Totals"},
    clients="connections",
    why=": a connection may have several requests under way (--pipeline)",
)
recognises, parse = MEMTIER.recognises, MEMTIER.parse
