"""Gatling 2 to 3: "Global Information" of its console, and `stats.json` or `global_stats.json`."""

from nummodel.records.readers._declared import Field, Run, Tool

VALUE = r"(?: \(\w+\))?[ |]+([0-9][0-9.,]*)"
STATS = r"(?:stats\.)?"


def finish(run: Run) -> None:
    """The percentiles of a file, which does not name them."""
    found = [run.row.pop(f"late{i}", None) for i in range(1, 5)]
    percents = (50, 75, 95, 99) if found[2] is not None else (95, 99)
    late = {f"R_p{p}": R for p, R in zip(percents, found, strict=False) if R is not None}
    if late:
        run.row |= late
        run.notes.append(f"percentiles are taken to be {', '.join(n[3:] for n in late)}")


GATLING = Tool(
    begins=(r"-+ Global Information -+",),
    ends=r"-+ Response Time Distribution",
    keys=('"meanNumberOfRequestsPerSecond"', '"meanResponseTime"'),
    fields=(
        Field(
            "events failed",
            r"> request count[ |]+([0-9,]+)(?: +(?:\(OK=|\| +)\S+ +(?:KO=|\| +)([0-9,-]+))?",
        ),
        Field("R:ms", rf"> mean response time{VALUE}"),
        Field("R_p{}:ms", rf"> response time ([0-9.]+)(?:st|nd|rd|th) percentile{VALUE}"),
        Field("X", rf"> mean (?:requests/sec|throughput){VALUE}"),
        Field("events", rf"{STATS}numberOfRequests\.total: (\S+)"),
        Field("failed", rf"{STATS}numberOfRequests\.ko: (\S+)"),
        Field("R:ms", rf"{STATS}meanResponseTime\.total: (\S+)"),
        *(Field(f"late{i}:ms", rf"{STATS}percentiles{i}\.total: (\S+)") for i in range(1, 5)),
        Field("X", rf"{STATS}meanNumberOfRequestsPerSecond\.total: (\S+)"),
    ),
    finish=finish,
    needs={"events": "request count", "X": "mean requests/sec"},
    clients="users",
)
recognises, parse = GATLING.recognises, GATLING.parse
