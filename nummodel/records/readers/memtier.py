"""memtier_benchmark 1 and 2: the totals of each run."""

from nummodel.records.readers._declared import Field, Grid, Run, Tool


def finish(run: Run) -> None:
    """Connections of all threads."""
    each = run.row.pop("each", None)
    if each and "threads" in run.row:
        run.row["N"] = each * run.row["threads"]
    run.row.pop("threads", None)


MEMTIER = Tool(
    begins=(r"[0-9]+ +Threads$", r"ALL STATS|AGGREGATED AVERAGE", r"Type +Ops/sec "),
    known=r"Type +Ops/sec +Hits/sec",
    fields=(
        Field("threads", r"([0-9]+) +Threads$"),
        Field("each", r"([0-9]+) +Connections per thread$"),
        Field("time", r"([0-9]+) +Seconds$"),
        Field("events", r"([0-9]+) +Requests in total$"),
    ),
    grids=(
        Grid(
            r"Type +Ops/sec ",
            r"Totals ",
            {"Ops/sec": "X", "Avg. Latency": "R:ms", "Latency": "R:ms"},
            "ms",
        ),
    ),
    notes=((r"(BEST|WORST) RUN RESULTS", "the average of several runs is read"),),
    finish=finish,
    last=True,  # the average comes after the best and the worst run
    needs={"X": "row of Totals"},
    clients="connections",
    why=": a connection may have several requests under way (--pipeline)",
)
recognises, parse = MEMTIER.recognises, MEMTIER.parse
