"""Serving benchmarks of vLLM and SGLang: the table of each run, and the result in JSON."""

from nummodel.records.readers._declared import Field, Tool
from nummodel.records.readers._reading import Column

RATE = r"(?:Request rate configured \(RPS\)|Traffic request rate): +"
E2E = r"(?:E2EL|E2E Latency) \(ms\): +(\S+)"
SERVING = Tool(
    begins=(r"=+ Serving Benchmark Result =+",),
    ends=r"=+$",
    precede=True,
    keys=('"request_throughput"', '"completed"', '"duration"'),
    fields=(
        Field("N", r"Max(?:imum)? req\w+ concurrency: +([0-9]+)"),
        Field("rate", rf"{RATE}([0-9.]+)"),
        Field("events", r"Successful requests: +([0-9]+)"),
        Field("lost", r"Failed requests: +([0-9]+)"),
        Field("time", r"Benchmark duration \(s\): +(\S+)"),
        Field("tokens", r"Output token throughput \(tok/s\): +(\S+)"),
        Field("busy", r"Concurrency: +(\S+)"),
        Field("R:ms", rf"Mean {E2E}"),
        Field("R_p50:ms", rf"Median {E2E}"),
        Field("R_p{}:ms", rf"P([0-9.]+) {E2E}"),
        Field("ttft:ms", r"Mean TTFT \(ms\): +(\S+)"),
        Field("tpot:ms", r"Mean TPOT \(ms\): +(\S+)"),
        Field("N", r"max_concurrency: ([0-9]+)"),
        Field("rate", r"request_rate: ([0-9.]+)"),
        Field("events", r"completed: (\S+)"),
        Field("lost", r"failed: (\S+)"),
        Field("time", r"duration: (\S+)"),
        Field("X", r"request_throughput: (\S+)"),
        Field("tokens", r"output_throughput: (\S+)"),
        Field("R:ms", r"mean_e2el?(?:_latency)?_ms: (\S+)"),
        Field("R_p50:ms", r"median_e2el?(?:_latency)?_ms: (\S+)"),
        Field("R_p{}:ms", r"p([0-9]+)_e2el?(?:_latency)?_ms: (\S+)"),
        Field("ttft:ms", r"mean_ttft_ms: (\S+)"),
        Field("tpot:ms", r"mean_tpot_ms: (\S+)"),
    ),
    rated=rf"{RATE}[0-9]|request_rate: [0-9]",
    needs={"events": "number of successful requests", "time": "benchmark duration"},
    own={
        "tokens": Column("1/s", "tokens that were generated"),
        "busy": Column("-", "mean number of requests under way"),
        "ttft": Column("s", "mean time until the first token"),
        "tpot": Column("s", "mean time for each further token"),
    },
    no_rate="the rate that is printed has two decimals",
)
recognises, parse = SERVING.recognises, SERVING.parse
