"""hey 0.1 and oha: the summary of each run, which does not say how many clients there were."""

from nummodel.records.readers._declared import Field, Tool

TIME = r"([0-9.]+ ?[a-zµ]+)$"
HEY = Tool(
    begins=(r"Summary:$",),
    known=r"Summary:[ \t]*\n(?:[ \t]*Success rate:.*\n)?[ \t]*Total:[ \t]",
    keys=('"successRate"', '"requestsPerSec"', '"summary"'),
    fields=(
        Field("time:time", rf"Total:\s+{TIME}"),
        Field("R:time", rf"Average:\s+{TIME}"),
        Field("X", r"(?:Requests/sec:|summary\.requestsPerSec:)\s+(\S+)$"),
        Field("R_p{}:time", rf"([0-9.]+)%%? in {TIME}"),
        Field("time", r"summary\.total: (\S+)"),
        Field("R", r"summary\.average: (\S+)"),
        Field("R_p{}", r"latencyPercentiles\.p([0-9.]+): (\S+)"),
    ),
    codes=r"^\[([0-9]{3})\]\s+([0-9]+) responses|^statusCodeDistribution\.([0-9]+): ([0-9]+)",
    lost=r"(?:\[|errorDistribution.{1,200}: )([0-9]+)(?:$|\]\s+(?![0-9]+ responses))",
    notes=((r"\[([0-9]+)\]\s+(?![0-9]+ responses)(.+)", "{} requests failed: {}"),),
    needs={"X": "Requests/sec"},
)
recognises, parse = HEY.recognises, HEY.parse
