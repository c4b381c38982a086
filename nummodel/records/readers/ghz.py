"""ghz 0.x: the summary of each run, and its report in JSON, which says how many workers it had."""

from nummodel.records.readers._declared import Field, Tool

TIME = r"([0-9.]+ ?[a-zµ]+)$"
GHZ = Tool(
    begins=(r"Summary:$",),
    known=r"Summary:[ \t]*\n(?:[ \t]*Name:.*\n)?[ \t]*Count:[ \t]",
    keys=('"rps"', '"fastest"', '"slowest"', '"latencyDistribution"'),
    fields=(
        Field("events", r"[Cc]ount:\s+([0-9]+)"),
        Field("time:time", rf"Total:\s+{TIME}"),
        Field("R:time", rf"Average:\s+{TIME}"),
        Field("X", r"(?:Requests/sec|rps):\s+([0-9.]+)$"),
        Field("R_p{}:time", rf"([0-9.]+) % in {TIME}"),
        Field("N", r"options\.concurrency: (\S+)"),
        Field("rate", r"options\.rps: (\S+)"),
        Field("time:ns", r"total: (\S+)"),
        Field("R:ns", r"average: (\S+)"),
    ),
    codes=r"^\[(\w+)\]\s+([0-9]+) responses|^statusCodeDistribution\.(\w+): ([0-9]+)",
    good="OK$",
    rated=r"options\.rps: [1-9]",
    needs={"X": "Requests/sec", "events": "Count"},
    clients="workers",
)
recognises, parse = GHZ.recognises, GHZ.parse
