"""redis-benchmark 2 to 8 and valkey-benchmark: each test as text, with -q, and with --csv."""

from nummodel.records.readers._declared import Field, Tool

LATENCIES = "R:ms R_min:ms R_p50:ms R_p95:ms R_p99:ms R_max:ms"
REDIS = Tool(
    begins=(
        r"====== .{1,200} ======$",
        r".{1,80}: [0-9.]+ requests per second",
        r'"(?!test")[^"]{1,80}","[0-9.]+"',
    ),
    known=r'====== .{1,200} ======$|.{1,80}: [0-9.]+ requests per second|"test","rps"',
    fields=(
        Field("series:text", r"====== (.{1,200}) ======$"),
        Field("events time", r"([0-9]+) requests completed in ([0-9.]+) seconds"),
        Field("N", r"([0-9]+) parallel clients"),
        Field("X", r"(?:throughput summary: )?([0-9.]+) requests per second"),
        Field(LATENCIES, " +".join([r"([0-9.]+)"] * 6) + "$"),
        Field(
            "series:text X R_p50:ms",
            r"(.{1,80}): ([0-9.]+) requests per second(?:, p50=([0-9.]+) msec)?",
        ),
        Field(
            f"series:text X {LATENCIES}",
            r'"(?!test")([^"]{1,80})","([0-9.]+)"' + r'(?:,"([0-9.]+)")?' * 6,
        ),
    ),
    needs={"X": "requests per second"},
)
recognises, parse = REDIS.recognises, REDIS.parse
