"""vegeta 8 to 12: its report as text and in JSON. Requests come at a rate, so there is no load."""

from nummodel.records.readers._declared import Field, Tool

TIME = r"([0-9.hmsnuµμ]+)"
VEGETA = Tool(
    begins=(r"Requests +\[total, rate",),
    keys=('"latencies"', '"bytes_in"', '"throughput"'),
    fields=(
        Field("events rate X", r"Requests +\[total, rate, throughput\] +(\S+), (\S+), (\S+)$"),
        Field("events rate", r"Requests +\[total, rate\] +(\S+), (\S+)$"),
        Field("time:time", rf"Duration +\[[^]]*\] +{TIME}"),
        Field(
            "R_min:time R:time R_p50:time R_p90:time R_p95:time R_p99:time R_max:time",
            rf"Latencies +\[min, mean, 50, 90, 95, 99, max\] +{', '.join([TIME] * 7)}$",
        ),
        Field(
            "R:time R_p50:time R_p95:time R_p99:time R_max:time",
            rf"Latencies +\[mean, 50, 95, 99, max\] +{', '.join([TIME] * 5)}$",
        ),
        Field("events", r"requests: (\S+)"),
        Field("rate", r"rate: (\S+)"),
        Field("X", r"throughput: (\S+)"),
        Field("time:ns", r"duration: (\S+)"),
        Field("R:ns", r"latencies\.mean: (\S+)"),
        Field("R_p{}:ns", r"latencies\.([0-9]+)th: (\S+)"),
    ),
    codes=r"(?<= )([0-9]+):([0-9]+)(?= |$)|^status_codes\.([0-9]+): ([0-9]+)",
    rated=r"Requests +\[|requests: ",
    needs={"events": "Requests [total, rate, throughput]", "R": "Latencies"},
    no_rate="this version prints the rate that was set only",
)
recognises, parse = VEGETA.recognises, VEGETA.parse
