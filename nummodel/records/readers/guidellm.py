"""guidellm 0.x: a row for each benchmark of its report in JSON."""

from nummodel.records.readers._declared import Field, Run, Tool
from nummodel.records.readers._reading import Column

STRATEGY = r"(?:args|config|scheduler)\.strategy\."
LATENCY = r"metrics\.request_latency\.successful\."


def finish(run: Run) -> None:
    """One request at a time has no number of streams."""
    if run.row.get("series") == "synchronous":
        run.row["N"] = 1.0


GUIDELLM = Tool(
    keys=('"benchmarks"', '"requests_per_second"', '"request_latency"'),
    each="benchmarks",
    fields=(
        Field("series:text", rf"{STRATEGY}type_: (\w+)"),
        Field("N", rf"{STRATEGY}streams: (\S+)"),
        Field("rate", rf"{STRATEGY}rate: (\S+)"),
        Field("X", r"metrics\.requests_per_second\.successful\.mean: (\S+)"),
        Field("R", rf"{LATENCY}mean: (\S+)"),
        Field("R_p{}", rf"{LATENCY}percentiles\.p([5-9][0-9]): (\S+)"),
        Field("busy", r"metrics\.request_concurrency\.successful\.mean: (\S+)"),
        Field("events", r"metrics\.request_totals\.successful: (\S+)"),
        Field("lost", r"metrics\.request_totals\.errored: (\S+)"),
        Field("ttft:ms", r"metrics\.time_to_first_token_ms\.successful\.mean: (\S+)"),
    ),
    rated=rf"{STRATEGY}type_: (?:constant|poisson|async)",
    finish=finish,
    needs={"X": "requests_per_second"},
    own={
        "busy": Column("-", "mean number of requests under way"),
        "ttft": Column("s", "mean time until the first token"),
    },
    clients="streams",
)
recognises, parse = GUIDELLM.recognises, GUIDELLM.parse
