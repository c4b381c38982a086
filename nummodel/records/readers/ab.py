"""ab, Apache's benchmark, 2.3: the report of each run."""

import re

from nummodel.records.readers._declared import Field, Run, Tool


def finish(run: Run) -> None:
    """Failures, without responses that only differ in length."""
    lengths = (re.search(r"Length: ([0-9]{1,18})", text[:200]) for _, text in run.lines)
    if other := sum(int(found[1]) for found in lengths if found):
        run.notes.append(f"{other} responses differ in length, which ab calls failed")
    run.row["failed"] = run.row.get("failed", 0.0) - other + run.row.pop("non_2xx", 0.0)


AB = Tool(
    begins=(r"This is ApacheBench", r"Server Software:", r"Concurrency Level:"),
    fields=(
        Field("N", r"Concurrency Level: +([0-9]+)"),
        Field("time", r"Time taken for tests: +([0-9.]+) seconds"),
        Field("events", r"Complete requests: +([0-9]+)"),
        Field("failed", r"Failed requests: +([0-9]+)"),
        Field("non_2xx", r"Non-2xx responses: +([0-9]+)"),
        Field("X", r"Requests per second: +([0-9.]+)"),
        Field("R:ms", r"Time per request: +([0-9.]+) \[ms\] \(mean\)"),
        Field("R_p{}:ms", r"([0-9]+)% +([0-9]+)$"),
        Field("series:text", r"Document Path: +(\S+)"),
    ),
    finish=finish,
    needs={"N": "Concurrency Level", "X": "Requests per second"},
    errors=r"apr_|ab: |Total of [0-9]+ requests completed",
)
recognises, parse = AB.recognises, AB.parse
