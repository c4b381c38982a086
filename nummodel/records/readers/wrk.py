"""wrk 4 and wrk2: the summary of each run.

Admitted with recordings of one version, wrk 4.1.0; wrk2 is read as it is documented.
"""

from nummodel.records.readers._declared import Field, Tool
from nummodel.records.readers._reading import Column

WRK = Tool(
    begins=(r"Running .{1,40} test @ ",),
    unlike=r"[0-9]+ connections?(?: with .*)?$|[│┌]",  # autocannon begins as wrk does
    fields=(
        Field("series:text", r"Running .{1,40} test @ (\S+)"),
        Field("threads N", r"([0-9]+) threads? and ([0-9]+) connections?$"),
        Field("R:time R_sd:time R_max:time", r"Latency +(-?nan\S*|[0-9]\S*) +(\S+) +(\S+) "),
        Field("R_p{}:time", r"([0-9.]+)% +([0-9.]+[a-zµμ]+)$"),
        Field("events time:time", r"([0-9]+) requests in (\S+), "),
        Field("X", r"Requests/sec: +(\S+)$"),
        Field("lost:sum", r"Socket errors: (.*)"),
        Field("failed", r"Non-2xx or 3xx responses: ([0-9]+)"),
    ),
    needs={"N": "number of connections", "X": "Requests/sec"},
    rated=r"Thread calibration",
    notes=(
        (r"Socket errors: (.*)", "errors of sockets: {}"),
        (
            r"Non-2xx or 3xx responses: ([0-9]+)",
            "{} responses are no success, and are counted in X",
        ),
        (r"Detailed Percentile", "the detailed percentiles are left out"),
    ),
    own={"threads": Column("-", "threads of wrk itself")},
    clients="connections",
    failures="",
    why=": requests may have come at a rate (wrk2), or latencies are corrected",
)
recognises, parse = WRK.recognises, WRK.parse
